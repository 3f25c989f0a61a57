//! What goes into sessions: entries one by one, in groups and in batches, metadata, transcripts; blobs and memories.

use std::path::Path;
use std::time::Duration;

use rethread_store::backend::Expect;
use rethread_store::{BlobId, Claim};

use super::Run;
use crate::fire::ledger::{Account, SessionState};
use crate::kit::{entry_id, run};

/// Returns a blob that says this, over and over.
pub(super) fn content_of(text: &str) -> Vec<u8> {
    text.as_bytes().repeat(300)
}

impl Run {
    pub(crate) fn append(&mut self, id: &str) {
        self.append_sized(id, 20);
    }

    pub(crate) fn append_sized(&mut self, id: &str, size: usize) {
        let session = self.session(id);
        let (what, entry) = self.entry(size);
        self.account(id, |account| account.accept(vec![what], |_| {}));
        let ticket = run(session.append(entry)).expect("the queue takes it");
        self.wait(&ticket).expect("a disk's error passes");
        self.promised(id);
    }

    /// Appends to a disk that is told to fail until the store says so, and does not wait for it to be well again.
    pub(crate) fn append_in_vain(&mut self, id: &str, size: usize) {
        let session = self.session(id);
        let (what, entry) = self.entry(size);
        self.account(id, |account| account.accept(vec![what], |_| {}));
        let _ticket = run(session.append(entry)).expect("the queue takes it");
        while self.store.health().is_ok() {
            std::thread::yield_now();
        }
    }

    /// Appends after an earlier entry, counted from the session's own first.
    pub(crate) fn branch(&mut self, id: &str, at: usize) {
        let parent = self.own_entry(id, at);
        let session = self.session(id);
        let handle = self.attempt(|_, _| run(session.at(&entry_id(&parent))));
        let (what, entry) = self.entry(20);
        self.account(id, |account| account.accept(vec![what], |_| {}));
        let ticket = run(handle.append(entry)).expect("the queue takes it");
        self.wait(&ticket).expect("a disk's error passes");
        self.promised(id);
    }

    pub(crate) fn select(&mut self, id: &str, at: usize) {
        let entry = self.own_entry(id, at);
        let session = self.session(id);
        self.note(id, &["note:leaf"], |_| {}, |_, _| run(session.select(&entry_id(&entry))));
    }

    /// Appends entries that are all there after a crash, or none of them.
    pub(crate) fn group(&mut self, id: &str, count: usize, size: usize) {
        let session = self.session(id);
        let (whats, entries): (Vec<_>, Vec<_>) = (0..count).map(|_| self.entry(size)).unzip();
        self.account(id, |account| account.accept(whats, |_| {}));
        let ticket = run(session.append_all(entries)).expect("the queue takes them");
        self.wait(&ticket).expect("a disk's error passes");
        self.promised(id);
    }

    /// Appends entries that wait for the disk and then go in with one write, each a record by itself.
    pub(crate) fn batch(&mut self, id: &str, sizes: &[usize]) {
        let session = self.session(id);
        self.disk.hold_appends();
        let begun = self.account(id, |account| account.messages.len());
        let mut tickets = Vec::new();
        for &size in sizes {
            let (what, entry) = self.entry(size);
            self.account(id, |account| account.accept(vec![what], |_| {}));
            tickets.push(run(session.append(entry)).expect("the queue takes it"));
            if tickets.len() == 1 {
                // The first is on its way alone; the others wait for it.
                while self.store.health().queued > 0 && self.store.health().is_ok() && !self.disk.is_holding()
                {
                    std::thread::yield_now();
                }
            }
        }
        self.disk.release();
        for (index, ticket) in tickets.iter().enumerate() {
            self.wait(ticket).expect("a disk's error passes");
            self.account(id, |account| account.acknowledge(begun + index + 1));
        }
    }

    pub(crate) fn rename(&mut self, id: &str, name: &str) {
        let session = self.session(id);
        let named = |state: &mut SessionState| state.name = Some(name.to_owned());
        self.note(id, &["note:set"], named, |_, _| {
            let name = name.to_owned();
            run(session.update(move |metadata| metadata.name = Some(name.clone()))).map(drop)
        });
    }

    pub(crate) fn append_and_rename(&mut self, id: &str, name: &'static str) {
        let session = self.session(id);
        let (what, entry) = self.entry(20);
        let whats = vec![what, "note:set".to_owned()];
        self.account(id, |account| account.accept(whats, |state| state.name = Some(name.to_owned())));
        let change = move |metadata: &mut rethread_store::Metadata| metadata.name = Some(name.to_owned());
        let ticket = run(session.append_and_save(entry, change)).expect("the queue takes it");
        self.wait(&ticket).expect("a disk's error passes");
        self.promised(id);
    }

    pub(crate) fn append_transcript(&mut self, id: &str) {
        let session = self.session(id);
        let (what, entry) = self.entry(900);
        self.account(id, |account| account.accept_transcript(what));
        let ticket = run(session.append_transcript(entry)).expect("the queue takes it");
        self.wait(&ticket).expect("a disk's error passes");
        self.account(id, Account::acknowledge_transcript);
    }

    /// Becomes the driver, appends as such, and gives the session back.
    pub(crate) fn drive(&mut self, id: &str) {
        let session = self.session(id);
        self.account(id, |account| account.driven.ask(true));
        let lease = std::sync::Mutex::new(None);
        self.note(
            id,
            &["note:fence"],
            |_| {},
            |_, again| {
                let claim = if again { Claim::TakeOver } else { Claim::IfFree };
                let taken = run(session.lease("a test", Duration::from_secs(3600), claim))?;
                *lease.lock().expect("no test panics here") = Some(taken);
                Ok(())
            },
        );
        self.account(id, |account| account.driven.confirm());
        let lease = lease.into_inner().expect("no test panics here").expect("it was taken");
        let (what, entry) = self.entry(20);
        self.account(id, |account| account.accept(vec![what], |_| {}));
        let ticket = run(lease.session().append(entry)).expect("the queue takes it");
        self.wait(&ticket).expect("a disk's error passes");
        self.promised(id);
        self.account(id, |account| account.driven.ask(false));
        self.attempt(|_, _| run(lease.renew()));
        let lease = std::sync::Mutex::new(Some(lease));
        self.attempt(|_, again| match lease.lock().expect("no test panics here").take() {
            Some(lease) => run(lease.release()),
            None if again => Ok(()),
            None => unreachable!("it is taken once"),
        });
        if !self.under_fault {
            self.account(id, |account| account.driven.confirm());
        }
    }

    pub(crate) fn put_blob(&mut self, content: &str) {
        let bytes = content_of(content);
        self.ledger().blobs.entry(bytes.clone()).or_default().ask(true);
        let blob = BlobId::of(&bytes);
        self.attempt(|run_, _| run(run_.store.backend().put_blob(&blob, &mut bytes.as_slice())));
        self.ledger().blobs.entry(bytes).or_default().confirm();
    }

    /// Puts several at once, which the disk syncs together.
    pub(crate) fn put_blobs(&mut self, contents: &[&str]) {
        let contents: Vec<Vec<u8>> = contents.iter().map(|content| content_of(content)).collect();
        for bytes in &contents {
            self.ledger().blobs.entry(bytes.clone()).or_default().ask(true);
        }
        let blobs: Vec<_> = contents.iter().map(|bytes| (BlobId::of(bytes), bytes.clone().into())).collect();
        self.attempt(|run_, _| run(run_.store.backend().put_blobs(&blobs)));
        for bytes in contents {
            self.ledger().blobs.entry(bytes).or_default().confirm();
        }
    }

    /// Remembers where some content is, which keeps it.
    pub(crate) fn refer_to(&mut self, content: &str) {
        self.remember(&format!("see {}", BlobId::of(&content_of(content))));
    }

    pub(crate) fn remember(&mut self, text: &str) {
        self.ledger().memory.ask(Some(text.to_owned()));
        self.attempt(|run_, _| {
            run(run_.store.set_project_memory(Path::new("/tmp"), text, Expect::Any)).map(drop)
        });
        self.ledger().memory.confirm();
    }

    pub(super) fn own_entry(&self, id: &str, at: usize) -> String {
        let is_entry = |what: &&String| !what.contains(':');
        let whats = self.account(id, |account| {
            account.messages.iter().map(|record| record.what.clone()).collect::<Vec<_>>()
        });
        whats.iter().filter(is_entry).nth(at).expect("it has that many entries").clone()
    }
}
