//! The ways that a transcript's conversations take through its file, so that what many of them share is read once.

use std::collections::HashMap;

use rethread_store::EntryId;
use rethread_transcripts::Chain;

/// Ways that were gone. A step is an entry, after all the steps that lead to it.
#[derive(Debug, Default)]
pub(crate) struct Steps {
    /// The numbers of steps, by the step before each and the place of its entry in the file.
    numbers: HashMap<(Option<usize>, u64), usize>,
    /// The way that was gone last: each entry's place, and the step's number.
    last: Vec<(u64, usize)>,
    /// For each step the last entry so far that a store has.
    stored: Vec<Option<EntryId>>,
}

impl Steps {
    /// Goes a way. Returns how many of its first steps were gone before.
    pub(crate) fn go(&mut self, chain: &Chain) -> usize {
        let places: Vec<u64> = chain.spans().map(|span| span.offset).collect();
        // Most ways depart from the one before, and nothing has to be looked up that far.
        let same = self.last.iter().zip(&places).take_while(|((last, _), place)| last == *place).count();
        self.last.truncate(same);
        let mut gone = same;
        for &place in &places[same..] {
            let (before, next) = (self.last.last().map(|(_, step)| *step), self.numbers.len());
            let step = *self.numbers.entry((before, place)).or_insert(next);
            gone += usize::from(step < next);
            self.last.push((place, step));
        }
        gone
    }

    /// Returns the last entry that a store has among the first steps of the way that was gone last.
    pub(crate) fn stored_before(&self, steps: usize) -> Option<&EntryId> {
        let (_, step) = self.last.get(steps.checked_sub(1)?)?;
        self.stored.get(*step)?.as_ref()
    }

    /// Notes what a store has of the last way's other steps: of each its entry, if it was not refused.
    pub(crate) fn note(&mut self, gone: usize, entries: impl Iterator<Item = Option<EntryId>>) {
        let mut stored = self.stored_before(gone).cloned();
        for entry in entries {
            stored = entry.or(stored);
            self.stored.push(stored.clone());
        }
    }
}
