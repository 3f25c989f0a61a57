//! What is left after a crash, held against what was promised before it.

use std::path::Path;

use rethread_store::backend::{From, LogKey, LogName};
use rethread_store::{BlobId, Error, Filter, Gap, Kind, Line, Problem, Store};

use super::ledger::{Accepted, Account, Ledger, prefix_of};
use crate::kit::{run, session_id};

/// What a store holds, and what it should.
pub(crate) struct Aftermath<'a> {
    pub(crate) store: &'a Store,
    pub(crate) ledger: &'a Ledger,
    pub(crate) scope: Scope,
}

/// Which sessions are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    All,
    /// Those that the last operation was about, and one in so many of the others.
    Focus {
        others: u64,
        seed: u64,
    },
}

/// What there is.
#[derive(Debug)]
pub(crate) struct Survivors {
    /// The ledger without what did not get through.
    pub(crate) ledger: Ledger,
    pub(crate) live: Vec<String>,
    pub(crate) trashed: Vec<String>,
    /// Those that are not there: they never began, or are gone for good.
    pub(crate) absent: Vec<String>,
    /// Those whose purge is not finished.
    pub(crate) purging: Vec<String>,
}

/// Why a promise is broken.
type Verdict<T = ()> = Result<T, String>;

impl Aftermath<'_> {
    /// Checks every promise. Returns which sessions are there.
    pub(crate) fn check(&self) -> Verdict<Survivors> {
        let (live, trashed, absent, purging) = Default::default();
        let mut found = Survivors { ledger: self.ledger.clone(), live, trashed, absent, purging };
        for (id, account) in self.ledger.sessions.iter().filter(|(id, account)| self.looks_at(id, account)) {
            self.check_session(id, account, &mut found)
                .map_err(|broken| format!("session {id}: {broken}"))?;
        }
        self.check_listing(&found)?;
        self.check_blobs()?;
        let memory = run(self.store.project_memory(Path::new("/tmp"))).map_err(|error| error.to_string())?;
        let text = memory.map(|memory| memory.text);
        let known = self.ledger.memory.may_be(&text);
        if known { Ok(found) } else { Err(format!("the memory is {text:?}")) }
    }

    fn looks_at(&self, id: &str, account: &Account) -> bool {
        let focused = || self.ledger.focus.iter().any(|focus| focus == id) || !account.removed.is_certain();
        match self.scope {
            Scope::All => true,
            Scope::Focus { others, seed } => {
                let own = id.bytes().fold(seed, |seed, byte| seed.rotate_left(8) ^ u64::from(byte));
                focused() || fastrand::Rng::with_seed(own).u64(..others) == 0
            }
        }
    }

    fn check_session(&self, id: &str, account: &Account, found: &mut Survivors) -> Verdict {
        let loaded = run(self.store.load(&session_id(id)));
        if account.arrives.is_some() && matches!(loaded, Ok(None)) {
            found.absent.push(id.to_owned());
            let due = account.messages.iter().any(|record| record.acknowledged);
            return if due { Err("the import was done, and it is gone".into()) } else { Ok(()) };
        }
        let records = self.read(id, LogName::Messages)?;
        if records.is_empty() && account.removed.may_be(&true) {
            found.absent.push(id.to_owned());
            return match loaded {
                Ok(None) => Ok(()),
                other => Err(format!("it was removed, and to load it gives {other:?}")),
            };
        }
        let count = prefix_of(&account.messages, &records)?;
        if account.arrives.is_some_and(|(whole, _)| count < whole) {
            return Err(format!("an import is half there: {records:?}"));
        }
        if !account.removed.may_be(&false) {
            return Err(format!("it was removed, and has {records:?}"));
        }
        let transcript = self.check_transcript(id, account)?;
        self.check_verify(id)?;
        if let Some(left) = found.ledger.sessions.get_mut(id) {
            left.messages.truncate(count);
            left.transcript.truncate(transcript);
        }
        let settled = account.messages[..count].last();
        match (settled, loaded) {
            (None, Ok(None)) => found.absent.push(id.to_owned()),
            (Some(last), Ok(None)) if last.state.purging => found.purging.push(id.to_owned()),
            (Some(last), Err(Error::Trashed(_))) if last.state.trashed => found.trashed.push(id.to_owned()),
            (Some(last), Ok(Some(session))) if !last.state.purging && !last.state.trashed => {
                let history = run(session.messages()).map_err(|error| error.to_string())?;
                check_chain(
                    account,
                    &history.records.iter().map(|record| record.entry.id().to_string()).collect(),
                )?;
                check_gaps(&history.gaps, history.records.len())?;
                let metadata = run(session.metadata()).map_err(|error| error.to_string())?;
                if metadata.name != last.state.name {
                    return Err(format!("its name is {:?}, not {:?}", metadata.name, last.state.name));
                }
                let driver = run(session.driver()).map_err(|error| error.to_string())?;
                if !account.driven.may_be(&driver.is_some()) {
                    return Err(format!("its driver is {driver:?}"));
                }
                found.live.push(id.to_owned());
            }
            (settled, loaded) => return Err(format!("after {settled:?}, to load it gives {loaded:?}")),
        }
        Ok(())
    }

    fn check_transcript(&self, id: &str, account: &Account) -> Verdict<usize> {
        let records = self.read(id, LogName::Transcript)?;
        let count = prefix_of(&account.transcript, &records)?;
        match account.arrives {
            Some((_, whole)) if count < whole => Err("an import lacks its transcript".into()),
            _ => Ok(count),
        }
    }

    /// Reads a session's conversation.
    pub(crate) fn records(&self, id: &str) -> Verdict<Vec<String>> {
        self.check_verify(id)?;
        self.read(id, LogName::Messages)
    }

    /// Reads a log's records, which must stand at dense positions with nothing lost between them.
    fn read(&self, id: &str, name: LogName) -> Verdict<Vec<String>> {
        let (log, mut from, mut records) = (LogKey::new(session_id(id), name), 0, Vec::new());
        loop {
            let chunk = run(self.store.backend().read(&log, From::Position(from), usize::MAX))
                .map_err(|error| error.to_string())?;
            if let Some(gap) = chunk.damage.iter().find(|damage| !damage.lost.is_empty()) {
                return Err(format!("{gap}, after {records:?}"));
            }
            for line in &chunk.lines {
                if line.stamp().position != records.len() as u64 {
                    return Err(format!("position {} after {records:?}", line.stamp().position));
                }
                records.push(what_is(line));
            }
            if chunk.next == from {
                return Ok(records);
            }
            from = chunk.next;
        }
    }

    /// Nothing may be wrong but torn ends, with or without records after them.
    fn check_verify(&self, id: &str) -> Verdict {
        let report = match run(self.store.verify(&session_id(id))) {
            Err(Error::SessionNotFound(_)) => return Ok(()),
            report => report.map_err(|error| error.to_string())?,
        };
        let torn =
            |problem: &&Problem| matches!(problem, Problem::Damage(_, damage) if damage.lost.is_empty());
        match report.problems.iter().find(|problem| !torn(problem)) {
            Some(problem) => Err(format!("verify says: {problem}")),
            None if report.repeated.is_empty() => Ok(()),
            None => Err(format!("twice: {:?}", report.repeated)),
        }
    }

    fn check_listing(&self, found: &Survivors) -> Verdict {
        let listing = run(self.store.list(&Filter::everything())).map_err(|error| error.to_string())?;
        if let Some((id, error)) = listing.unreadable.first() {
            return Err(format!("session {id} cannot be listed: {error}"));
        }
        let mut listed: Vec<String> =
            listing.sessions.iter().map(|metadata| metadata.session_id.to_string()).collect();
        let mut there: Vec<String> = found.live.iter().chain(&found.trashed).cloned().collect();
        if self.scope != Scope::All {
            listed.retain(|id| there.contains(id) || found.absent.contains(id) || found.purging.contains(id));
        }
        listed.sort();
        there.sort();
        if listed == there { Ok(()) } else { Err(format!("listed are {listed:?}, there are {there:?}")) }
    }

    fn check_blobs(&self) -> Verdict {
        for (content, register) in &self.ledger.blobs {
            let blob = BlobId::of(content);
            let there =
                run(self.store.backend().get_blob(&blob, 0..u64::MAX)).map_err(|error| error.to_string())?;
            if !register.may_be(&there.is_some()) {
                return Err(format!("blob {blob} is lost"));
            }
            if there.is_some_and(|there| there != *content) {
                return Err(format!("blob {blob} is not what was put"));
            }
        }
        Ok(())
    }
}

fn check_chain(account: &Account, chain: &Vec<String>) -> Verdict {
    if !chain.starts_with(&account.inherits) {
        return Err(format!("it inherits {:?} and reads {chain:?}", account.inherits));
    }
    let is = |id: &str, what: &str| what.strip_prefix("copy:").unwrap_or(what) == id;
    let known = |id: &&String| account.messages.iter().any(|Accepted { what, .. }| is(id, what));
    match chain[account.inherits.len()..].iter().find(|id| !known(id)) {
        Some(foreign) => Err(format!("{foreign} is not its own")),
        None => Ok(()),
    }
}

/// A damaged end may have been an entry, so it is shown as a gap; there must be no other.
fn check_gaps(gaps: &[Gap], length: usize) -> Verdict {
    match gaps.iter().find(|gap| *gap.depths.start() <= length as u64) {
        Some(gap) => Err(gap.to_string()),
        None => Ok(()),
    }
}

fn what_is(line: &Line) -> String {
    let id = line.stamp().id.to_string();
    match line.stamp().kind {
        Kind::Entry => id,
        Kind::Copy => format!("copy:{id}"),
        Kind::Note => {
            let note: serde_json::Value = serde_json::from_slice(&line.body()).expect("a note is JSON");
            format!("note:{}", note["note"].as_str().unwrap_or_default())
        }
    }
}
