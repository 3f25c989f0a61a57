//! What a run has asked the store for, and what it was told is done: what a crash may leave follows from it.

use std::collections::BTreeMap;
use std::sync::Arc;

use rethread_encrypted::MasterKey;

/// The whole run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// What everything is encrypted with, if it is.
    pub(crate) key: Option<MasterKey>,
    /// The sessions that the last operation is about.
    pub(crate) focus: Vec<String>,
    /// How many entries were made.
    pub(crate) entries: usize,
    pub(crate) sessions: BTreeMap<String, Account>,
    pub(crate) blobs: BTreeMap<Vec<u8>, Register<bool>>,
    pub(crate) memory: Register<Option<String>>,
}

/// One session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Account {
    pub(crate) messages: Vec<Accepted>,
    pub(crate) transcript: Vec<Accepted>,
    /// The session it was forked from, and the entries that it inherits.
    pub(crate) parent: Option<String>,
    pub(crate) inherits: Vec<String>,
    /// So many records of each log come as a whole, from this file: an import that may not be over.
    pub(crate) arrives: Option<(usize, usize)>,
    pub(crate) bundle: Arc<Vec<u8>>,
    pub(crate) removed: Register<bool>,
    pub(crate) driven: Register<bool>,
}

/// A record that the store was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    /// The id of an entry, `copy:` and the id, or `note:` and its kind.
    pub(crate) what: String,
    /// Records with the same number go in together.
    pub(crate) group: usize,
    pub(crate) acknowledged: bool,
    /// The call returned an error, or was made again after one: it may have had its effect, or none.
    pub(crate) doubtful: bool,
    /// What is known of the session from this record on.
    pub(crate) state: SessionState,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SessionState {
    pub(crate) name: Option<String>,
    pub(crate) trashed: bool,
    pub(crate) purging: bool,
}

/// Something that has one value at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Register<T> {
    /// Every value that was asked for since the last one that is certain, that one first.
    values: Vec<T>,
}

impl<T: Clone + PartialEq + Default> Register<T> {
    pub(crate) fn ask(&mut self, value: T) {
        if self.values.is_empty() {
            self.values.push(T::default());
        }
        self.values.push(value);
    }

    pub(crate) fn confirm(&mut self) {
        self.values.drain(..self.values.len().saturating_sub(1));
    }

    pub(crate) fn is_certain(&self) -> bool {
        self.values.len() < 2
    }

    pub(crate) fn may_be(&self, value: &T) -> bool {
        self.values.contains(value) || (self.values.is_empty() && *value == T::default())
    }
}

impl Account {
    /// Notes records that go in together, or not at all. `change` says what they make of the session.
    pub(crate) fn accept(&mut self, whats: Vec<String>, change: impl Fn(&mut SessionState)) {
        let mut state = self.messages.last().map(|last| last.state.clone()).unwrap_or_default();
        let group = self.messages.len();
        let count = whats.len();
        for (index, what) in whats.into_iter().enumerate() {
            if index + 1 == count {
                change(&mut state);
            }
            let state = state.clone();
            self.messages.push(Accepted { what, group, acknowledged: false, doubtful: false, state });
        }
    }

    pub(crate) fn accept_transcript(&mut self, what: String) {
        let (group, state) = (self.transcript.len(), SessionState::default());
        self.transcript.push(Accepted { what, group, acknowledged: false, doubtful: false, state });
    }

    /// The first records of the conversation are durable, so it was said.
    pub(crate) fn acknowledge(&mut self, count: usize) {
        self.messages[..count].iter_mut().for_each(|record| record.acknowledged = true);
    }

    pub(crate) fn acknowledge_all(&mut self) {
        self.acknowledge(self.messages.len());
    }

    pub(crate) fn acknowledge_transcript(&mut self) {
        self.transcript.iter_mut().for_each(|record| record.acknowledged = true);
    }

    /// Notes copies of everything that is inherited, and then that they are complete.
    pub(crate) fn accept_copies(&mut self) {
        let copies = self.inherits.iter().map(|id| format!("copy:{id}")).collect();
        self.accept(copies, |_| {});
        self.accept(vec!["note:materialized".to_owned()], |_| {});
    }

    /// Everything from here on may or may not have happened.
    pub(crate) fn doubt(&mut self, from: usize) {
        self.messages[from..].iter_mut().for_each(|record| record.doubtful = true);
    }
}

/// Looks whether what was found is what may be there. Returns how many of the accepted records that settles.
pub(crate) fn prefix_of(accepted: &[Accepted], found: &[String]) -> Result<usize, String> {
    let wanted = || accepted.iter().map(|record| record.what.as_str()).collect::<Vec<_>>();
    let mut at = 0;
    for what in found {
        while accepted.get(at).is_some_and(|record| record.doubtful && record.what != *what) {
            at += 1;
        }
        if accepted.get(at).is_none_or(|record| record.what != *what) {
            return Err(format!("{found:?} is no prefix of {:?}: {what} at {at}", wanted()));
        }
        at += 1;
    }
    let rest = &accepted[at..];
    if let Some(lost) = rest.iter().find(|record| record.acknowledged && !record.doubtful) {
        return Err(format!("{} was acknowledged and is lost; found {found:?}", lost.what));
    }
    if let (Some(last), Some(next)) = (at.checked_sub(1).map(|last| &accepted[last]), rest.first())
        && last.group == next.group
    {
        return Err(format!("half of a group is there: {} without {}", last.what, next.what));
    }
    Ok(at)
}
