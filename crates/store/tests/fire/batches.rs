//! One write that holds many records, each larger than a block or far smaller, of which a power cut keeps any part.

use super::crash::{check_and_go_on, moments_of};
use super::effort::Effort;
use super::ledger::Ledger;
use super::run::Run;
use super::simulated_disk::Journals;

#[test]
fn a_power_cut_in_a_batch_leaves_a_prefix_of_it() {
    for round in Effort::new("power cuts within a batch of records", 12) {
        let mut rng = round.rng();
        // From a small part of a sector to three blocks.
        let mut size = || (1 << rng.u32(4..13)) + rng.usize(..4_000) / 2;
        let mut sizes = |count: usize| (0..count).map(|_| size()).collect::<Vec<usize>>();
        let (before, first, second) = (sizes(3), sizes(6), sizes(9));
        let journals = if rng.bool() { Journals::Early } else { Journals::Never };
        let moments = moments_of(
            |run: &mut Run| {
                run.create("a");
                before.iter().for_each(|&size| run.append_sized("a", size));
                run.batch("a", &first);
                run.group("a", 4, 2_000);
                run.batch("a", &second);
            },
            journals,
            round.seed,
            Ledger::default(),
        );
        // Right before a sync, everything written since the last one may be lost.
        let risky = |story: &str| {
            story.starts_with("Sync")
                && (story.ends_with("messages.jsonl") || story.ends_with("messages.journal"))
        };
        for (moment, ledger) in moments.iter().filter(|(moment, _)| risky(&moment.story)).skip(4) {
            for state in 0..8 {
                let story = format!("sizes {before:?}, {first:?}, {second:?}, state {state}");
                check_and_go_on(&moment.after_crash(&mut rng), ledger, &mut rng, &story);
            }
        }
    }
}
