//! What the records since a point add up to, path by path.

use std::collections::BTreeMap;

use crate::defect::Defect;
use crate::path::TreePath;
use crate::record::{Change, Checkpoint, Source};
use crate::state::State;

/// What the records since a point say of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Folded {
    /// What it was at the point.
    pub(crate) target: State,
    /// What the agent left there last; `None`: nobody looked.
    pub(crate) expected: Option<State>,
    /// What somebody had changed between two changes of the agent's: what it should have been, and what it was.
    pub(crate) broken: Option<(State, State)>,
    /// It changed when no tool ran.
    pub(crate) outside: bool,
    /// What was seen last, before or after a change.
    seen: Option<State>,
}

/// What the records since a point add up to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fold {
    pub(crate) paths: BTreeMap<TreePath, Folded>,
    /// Why this may not be all there is.
    pub(crate) incomplete: Vec<String>,
    /// What whole-tree captures did not look at.
    pub(crate) left_out: BTreeMap<TreePath, String>,
}

impl Fold {
    /// Adds up records, in the order in which they were made.
    pub(crate) fn of<'a>(records: impl Iterator<Item = &'a Checkpoint>) -> Self {
        let mut fold = Self::default();
        for record in records {
            let unreadable = record.unreadable.iter().cloned();
            let missed = record.missed.iter().filter(|_| !Defect::ForgetTheMissed.is_on());
            let missed = missed.map(|missed| format!("not captured: {missed}"));
            fold.incomplete.extend(unreadable.chain(missed));
            record.changes.iter().for_each(|change| fold.add(change));
        }
        fold
    }

    fn add(&mut self, change: &Change) {
        let unsaid = || State::Unknown { why: "what it was before was not recorded".into() };
        let folded = self.paths.entry(change.path.clone()).or_insert_with(|| Folded {
            target: change.before.clone().unwrap_or_else(unsaid),
            expected: None,
            broken: None,
            outside: false,
            seen: None,
        });
        folded.add(change);
    }
}

impl Folded {
    fn add(&mut self, change: &Change) {
        if let (Some(before), true) = (&change.before, Defect::TakeTheLastBefore.is_on()) {
            self.target = before.clone();
        }
        if let (Some(expected), Some(before)) = (&self.expected, &change.before)
            && before.is_certain()
            && expected.is_certain()
            && !before.same(expected)
            && change.source != Source::Outside
        {
            self.broken.get_or_insert_with(|| (expected.clone(), before.clone()));
        }
        match change.source {
            Source::Outside => self.outside |= !Defect::TakeTheOutsideForOurs.is_on(),
            // What was there is saved in the receipt, and what is there now is ours.
            Source::Rewind => (self.broken, self.outside) = (None, false),
            Source::Named | Source::Window => {}
        }
        self.expected = change.after.clone().filter(State::is_certain);
        self.seen = change.after.clone().or_else(|| change.before.clone());
    }

    /// Returns whether what is on disk now must be taken for the agent's, because nobody looked after its last change.
    pub(crate) fn is_assumed(&self, now: &State) -> bool {
        self.expected.is_none() && !self.seen.as_ref().is_some_and(|seen| seen.same(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::What;
    use crate::state::{File, Present};
    use rethread_store::{BlobId, EntryId};

    fn state(content: &str) -> State {
        let file = File {
            hash: BlobId::of(content.as_bytes()),
            size: content.len() as u64,
            mode: None,
            names: 1,
            place: None,
        };
        State::Present(Present::File(file))
    }

    fn fold(changes: &[(Option<State>, Option<State>, Source)]) -> Folded {
        let path = TreePath::parse(b"a").unwrap();
        let records: Vec<Checkpoint> = changes
            .iter()
            .map(|(before, after, source)| {
                let mut record = Checkpoint::new(EntryId::generate(), What::Before);
                let (path, before, after) = (path.clone(), before.clone(), after.clone());
                record.changes.push(Change { path, before, after, source: *source });
                record
            })
            .collect();
        Fold::of(records.iter()).paths.remove(&path).unwrap()
    }

    #[test]
    fn the_first_before_is_the_target_and_the_last_after_is_expected() {
        use Source::Named;
        let folded = fold(&[
            (Some(state("0")), None, Named),
            (None, Some(state("1")), Named),
            (Some(state("1")), None, Named),
            (None, Some(state("2")), Named),
        ]);
        assert_eq!((folded.target, folded.expected), (state("0"), Some(state("2"))));
        assert_eq!((folded.broken, folded.outside), (None, false));
    }

    #[test]
    fn an_edit_between_two_changes_breaks_the_chain_until_a_rewind_has_saved_it() {
        use Source::{Named, Rewind};
        let mut changes = vec![
            (Some(state("0")), Some(state("1")), Named),
            (Some(state("edited")), Some(state("2")), Named),
        ];
        assert_eq!(fold(&changes).broken, Some((state("1"), state("edited"))));
        changes.push((Some(state("2")), Some(state("0")), Rewind));
        assert_eq!(fold(&changes).broken, None);
    }

    #[test]
    fn what_was_only_seen_before_is_assumed_to_be_the_agents_unless_it_is_still_the_same() {
        let folded = fold(&[(Some(state("0")), None, Source::Named)]);
        assert!(folded.is_assumed(&state("1")));
        assert!(!folded.is_assumed(&state("0")));
    }

    #[test]
    fn what_was_never_seen_before_its_change_is_unknown() {
        let folded = fold(&[(None, Some(state("1")), Source::Named)]);
        assert!(matches!(folded.target, State::Unknown { .. }));
    }
}
