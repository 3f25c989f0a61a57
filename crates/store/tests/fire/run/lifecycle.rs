//! What happens to whole sessions: forks, trash, purges, exports and imports, clearing away.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use rethread_store::{BlobId, Cleaning, Error, Filter, Fork, Mode};

use super::contents::content_of;
use super::{Run, made_before};
use crate::fire::aftermath::Survivors;
use crate::fire::ledger::{Account, Ledger, Register};
use crate::kit::{entry_id, run, session_id};

impl Run {
    /// Forks after an entry of the parent's own, counted from its first.
    pub(crate) fn fork(&mut self, parent: &str, at: usize, id: &str) {
        let entry = self.own_entry(parent, at);
        let session = self.session(parent);
        let history = self.attempt(|_, _| run(session.messages_up_to(&entry_id(&entry))));
        let inherits = history.entries().map(|entry| entry.id().to_string()).collect();
        let account = Account { inherits, parent: Some(parent.to_owned()), ..Account::default() };
        self.ledger().sessions.insert(id.to_owned(), account);
        let for_good = self.for_good;
        self.note(
            id,
            &["note:created"],
            |_| {},
            |_, again| {
                let fork = Fork::default().at(entry_id(&entry)).id(session_id(id));
                match run(session.fork(fork)) {
                    Err(Error::SessionExists(_)) if again => made_before(for_good),
                    made => made.map(drop),
                }
            },
        );
    }

    /// Copies what a fork inherits into its own log.
    pub(crate) fn materialize(&mut self, id: &str) {
        let session = self.session(id);
        let before = self.account(id, |account| account.messages.len());
        self.account(id, Account::accept_copies);
        self.attempt(|run_, again| {
            if again {
                run_.account(id, Account::accept_copies);
                run_.account(id, |account| account.doubt(before));
            }
            run(session.materialize()).map(drop)
        });
        self.account(id, Account::acknowledge_all);
    }

    pub(crate) fn delete(&mut self, id: &str) {
        self.note(
            id,
            &["note:trashed"],
            |state| state.trashed = true,
            |store, _| run(store.delete(&session_id(id))).map(|there| assert!(there)),
        );
    }

    pub(crate) fn restore(&mut self, id: &str) {
        self.note(
            id,
            &["note:restored"],
            |state| state.trashed = false,
            |store, _| run(store.restore(&session_id(id))).map(drop),
        );
    }

    /// Removes a session for good; its attached forks get copies first.
    pub(crate) fn purge(&mut self, id: &str, forks: &[&str]) {
        let before: Vec<usize> =
            forks.iter().map(|fork| self.account(fork, |account| account.messages.len())).collect();
        self.focus(&[&[id], forks].concat());
        self.account(id, |account| account.removed.ask(true));
        forks.iter().for_each(|fork| self.account(fork, Account::accept_copies));
        let ledger = self.ledger.clone();
        self.note(
            id,
            &["note:purging"],
            |state| state.purging = true,
            |store, again| {
                if again {
                    let mut ledger = ledger.lock().expect("no test panics here");
                    for (fork, &before) in forks.iter().zip(&before) {
                        let account = ledger.sessions.get_mut(*fork).expect("a fork of the run");
                        account.accept_copies();
                        account.doubt(before);
                    }
                }
                let purged = run(store.purge(&session_id(id)));
                if purged.is_err() {
                    may_have_come_back(&mut ledger.lock().expect("no test panics here"), id);
                }
                purged.map(drop)
            },
        );
        self.account(id, |account| account.removed.confirm());
        forks.iter().for_each(|fork| self.account(fork, Account::acknowledge_all));
    }

    /// Exports a session and imports it under another id.
    pub(crate) fn transfer(&mut self, id: &str, to: &str) {
        let bundle = self.attempt(|run_, _| {
            let mut bundle = Vec::new();
            run(run_.store.export(&session_id(id), &mut bundle)).map(|_| bundle)
        });
        let (messages, transcript) =
            self.account(id, |account| (account.messages.clone(), account.transcript.clone()));
        let bundle = Arc::new(bundle);
        let arrives = Some((messages.len(), transcript.len()));
        let mut account = Account { arrives, bundle, messages, transcript, ..Account::default() };
        for record in account.messages.iter_mut().chain(&mut account.transcript) {
            record.acknowledged = false;
        }
        self.ledger().sessions.insert(to.to_owned(), account);
        self.import(to);
    }

    /// Imports a session from the bundle that the ledger has for it.
    pub(crate) fn import(&mut self, id: &str) {
        self.focus(&[id]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        let bundle = self.account(id, |account| account.bundle.clone());
        std::fs::write(file.path(), &*bundle).expect("a file");
        self.attempt(|run_, again| match run(run_.store.import_bundle(file.path(), Some(session_id(id)))) {
            Err(Error::SessionExists(_)) if again => made_before(run_.for_good),
            imported => imported.map(drop),
        });
        self.account(id, Account::acknowledge_all);
        self.account(id, Account::acknowledge_transcript);
        // From here on it is a session like any other.
        self.account(id, |account| account.arrives = None);
    }

    /// Uses the store as the next process may: clears away, begins what is not there, adds to what is.
    pub(crate) fn go_on(&mut self, found: &Survivors, rng: &mut Rng) {
        *self.ledger() = found.ledger.clone();
        if rng.bool() {
            let late = rng.bool();
            if late {
                self.disk.age(Duration::from_secs(7_200));
            }
            found.purging.iter().for_each(|id| self.finish_purge(id));
            self.clear_away();
            found.purging.iter().for_each(|id| self.account(id, |account| account.removed.confirm()));
            let leftover = |path: &String| path.ends_with(".tmp") || path.starts_with("/store/trash/");
            let left = self.disk.paths().into_iter().find(|path| late && leftover(path));
            assert_eq!(left, None, "it was cleared away late, and this is still there");
            // What was removed just now leaves word of that.
            let stray = if late && found.purging.is_empty() { self.stray_keys() } else { Vec::new() };
            assert_eq!(stray, Vec::<String>::new(), "keys without sessions");
        }
        for id in &found.trashed {
            self.restore(id);
        }
        for id in &found.absent {
            match self.account(id, |account| account.arrives) {
                Some(_) => self.import(id),
                None => self.create(id),
            }
        }
        for id in found.live.iter().chain(&found.trashed).chain(&found.absent) {
            // A name that it has already would change nothing.
            let (name, _) = self.entry(0);
            if rng.u8(..4) == 0 {
                self.repair(id);
            }
            // One record alone shows best what its sync has covered.
            match rng.u8(..4) {
                0 => self.append(id),
                1 => self.rename(id, &name),
                2 => self.append_transcript(id),
                _ => {
                    self.append_sized(id, 5_000);
                    self.append(id);
                    self.rename(id, &name);
                }
            }
        }
        if rng.u8(..4) == 0 {
            self.put_blob("blob");
        }
    }

    /// Returns the keys whose sessions are not there.
    fn stray_keys(&self) -> Vec<String> {
        let paths = self.disk.paths();
        let session = |path: &String| {
            let (session, file) = path.strip_prefix("/store/sessions/")?.split_once('/')?;
            (file == "messages.jsonl").then(|| BlobId::of(session.as_bytes()).to_string())
        };
        let there: HashSet<String> = paths.iter().filter_map(session).collect();
        let stray = |path: &&String| {
            let key = path.strip_prefix("/store/keys/").and_then(|name| name.strip_suffix(".json"));
            key.is_some_and(|key| !there.contains(key))
        };
        paths.iter().filter(stray).cloned().collect()
    }

    /// Leaves something in the newest file of a log that is no record, as another program or a bad sector may.
    pub(crate) fn damage(&mut self, id: &str) {
        let log = format!("/store/sessions/{id}/messages.");
        let paths = self.disk.paths().into_iter();
        let files = paths.filter(|path| path.starts_with(&log) && path.ends_with(".jsonl"));
        let newest = files.max_by_key(|path| (path.len(), path.clone())).expect("it has a log");
        self.disk.scribble(&newest, b"what is this?\n");
    }

    /// Mends a session: torn ends go, and nothing else changes.
    pub(crate) fn repair(&mut self, id: &str) {
        self.focus(&[id]);
        let repair = self.attempt(|run_, _| run(run_.store.repair(&session_id(id), Mode::Apply)));
        assert!(repair.after.is_some_and(|report| report.is_ok()), "{id}: {:?}", repair.before);
        assert!(repair.rewrites.iter().all(|(_, rewrite)| rewrite.lost.is_empty()), "{:?}", repair.rewrites);
    }

    /// Clearing away finishes purges, and gives forks their copies first.
    fn finish_purge(&self, id: &str) {
        for account in self.ledger().sessions.values_mut() {
            let done = account.messages.iter().any(|record| record.what == "note:materialized");
            if account.parent.as_deref() == Some(id) && !account.messages.is_empty() && !done {
                account.accept_copies();
            }
        }
    }

    pub(crate) fn clear_away(&mut self) {
        let cleaned = self.attempt(|run_, _| run(run_.store.gc(&Cleaning::default())));
        assert!(self.under_fault || cleaned.failed.is_empty(), "{:?}", cleaned.failed);
    }

    /// Clears away all that may go: a session in the trash, without forks, and contents that nothing refers to.
    pub(crate) fn expire(&mut self, id: &str, unused: &[&str]) {
        self.focus(&[id]);
        self.account(id, |account| account.removed.ask(true));
        let unused: Vec<Vec<u8>> = unused.iter().map(|content| content_of(content)).collect();
        let note = |run: &Self, change: fn(&mut Register<bool>)| {
            let mut ledger = run.ledger();
            unused.iter().for_each(|content| change(ledger.blobs.entry(content.clone()).or_default()));
        };
        note(self, |blob| blob.ask(false));
        let all = Cleaning {
            trash_after: Some(Duration::ZERO),
            blobs_after: Duration::ZERO,
            grace: Duration::ZERO,
            ..Cleaning::default()
        };
        // What cannot be looked at stays, and goes another time.
        let (count, all_goes, errors) = (unused.len(), !self.under_fault, self.errors);
        let ledger = self.ledger.clone();
        self.note(
            id,
            &["note:purging"],
            |state| state.purging = true,
            |store, _| {
                let cleaned = run(store.gc(&all)).and_then(|mut cleaned| {
                    // It stops at nothing, and tells in the end.
                    if cleaned.failed.is_empty() { Ok(cleaned) } else { Err(cleaned.failed.remove(0).1) }
                });
                if cleaned.is_err() {
                    may_have_come_back(&mut ledger.lock().expect("no test panics here"), id);
                }
                let cleaned = cleaned?;
                assert!(!all_goes || cleaned.purged == [session_id(id)], "{:?}", cleaned.purged);
                assert!(!all_goes || cleaned.blobs.len() == count, "{:?}", cleaned.blobs);
                Ok(())
            },
        );
        // Whoever only finds it gone, after a try that failed, knows nothing of the next power cut: with that it may come
        // back, and is cleared away then.
        if self.errors == errors {
            self.account(id, |account| account.removed.confirm());
        }
        // On a disk that fails it may come back with the next power cut, and goes another time.
        if !self.under_fault {
            note(self, Register::confirm);
        }
    }

    /// Lists everything: what cannot be read is named, never left out.
    pub(crate) fn list(&mut self) {
        let listing = self.attempt(|run_, _| run(run_.store.list(&Filter::everything())));
        assert!(self.under_fault || listing.unreadable.is_empty(), "{:?}", listing.unreadable);
        let listed = listing.sessions.iter().map(|metadata| metadata.session_id.to_string());
        let listed: HashSet<String> =
            listed.chain(listing.unreadable.iter().map(|(id, _)| id.to_string())).collect();
        let there = |account: &&Account| account.removed.may_be(&false) && !account.messages.is_empty();
        let there = self.ledger().sessions.values().filter(there).count();
        assert_eq!(listed.len(), there, "{listed:?}");
    }
}

/// A purge that fails before its forks can do without the session takes it back, and it is as it was.
fn may_have_come_back(ledger: &mut Ledger, id: &str) {
    let account = ledger.sessions.get_mut(id).expect("a session of the run");
    let from = account.messages.len();
    let was_trashed = account.messages.last().is_some_and(|last| last.state.trashed);
    account.accept(vec!["note:restored".to_owned()], |state| {
        (state.purging, state.trashed) = (false, false);
    });
    if was_trashed {
        account.accept(vec!["note:trashed".to_owned()], |state| state.trashed = true);
    }
    account.doubt(from);
}
