//! A log of valid records that was damaged: cut, flipped, doubled, swapped, glued, zeroed, mixed with another's.

use rethread_store::backend::Backend;
use rethread_store::{Kind, Stamp};

use super::choices::Choices;
use super::home::{Home, run};
use super::sample::{self, RECORDS, joined, stamped};
use super::soundness;

/// How much each entry is padded: one look from the end takes in 16 KiB, a sync block is 4 KiB.
const PADDINGS: [usize; 4] = [0, 300, 1500, 5000];
/// More damage than this finds nothing that less does not.
const STEPS: usize = 12;

/// Damages a log step by step and checks it.
pub fn damage(data: &[u8]) {
    let mut choices = Choices::new(data);
    let home = Home::default();
    home.put("messages.jsonl", &joined(&sample::lines(0)));
    // The index that a writer leaves: it still knows how long the log was.
    run(home.backend().settle(&home.messages())).expect("a whole log");
    home.put("messages.jsonl", &damaged(&mut choices));
    soundness::check(&home);
}

/// Returns a sample log after so many steps of damage.
pub fn damaged(choices: &mut Choices) -> Vec<u8> {
    let padding = PADDINGS[choices.below(PADDINGS.len())];
    let mut file = joined(&sample::lines(padding));
    for _ in 0..STEPS {
        if choices.is_empty() {
            break;
        }
        step(&mut file, choices, padding);
    }
    file
}

fn step(file: &mut Vec<u8>, choices: &mut Choices, padding: usize) {
    match choices.byte() % 13 {
        0 => file.truncate(choices.below(file.len() + 1)),
        1 => {
            let at = choices.below(file.len());
            let bit = choices.byte() % 8;
            file.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << bit);
        }
        2 => {
            let (from, length) = (choices.below(file.len() + 1), choices.below(6000));
            let to = file.len().min(from + length);
            file[from..to].fill(0);
        }
        3 => {
            let at = choices.below(file.len() + 1);
            let count = choices.below(40);
            file.splice(at..at, choices.take(count).iter().copied());
        }
        // An older copy of the whole log after it, as a careless merge leaves it.
        4 => file.extend(joined(&sample::lines(padding))),
        other => {
            let mut lines: Vec<Vec<u8>> = file.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            let ended = lines.last().is_some_and(Vec::is_empty);
            lines.truncate(lines.len() - usize::from(ended));
            step_by_line(&mut lines, other, choices, padding);
            *file = joined(&lines);
            file.truncate(file.len().saturating_sub(usize::from(!ended)));
        }
    }
}

fn step_by_line(lines: &mut Vec<Vec<u8>>, way: u8, choices: &mut Choices, padding: usize) {
    let count = lines.len();
    let (one, other) = (choices.below(count), choices.below(count));
    let (from, to) = (one.min(other), (one.max(other) + 1).min(count));
    match way {
        5 => drop(lines.drain(from..to)),
        6 if count > 0 => lines.swap(one, other),
        7 => {
            let copies = lines[from..to].to_vec();
            let at = choices.below(count + 1);
            lines.splice(at..at, copies);
        }
        8 if one + 1 < count => {
            let next = lines.remove(one + 1);
            if !choices.coin() {
                let length = lines[one].len();
                lines[one].truncate(choices.below(length + 1));
            }
            lines[one].extend(next);
        }
        9 if count > 0 => lines[one].truncate(choices.below(500)),
        10 => lines.insert(one, Vec::new()),
        11 => lines.insert(
            one,
            sample::line(choices.number() % (RECORDS + 4), "other-", padding).as_bytes().to_vec(),
        ),
        12 => lines.insert(one, odd(choices)),
        _ => {}
    }
}

/// A whole line whose stamp says anything.
fn odd(choices: &mut Choices) -> Vec<u8> {
    let kind = [Kind::Entry, Kind::Note, Kind::Copy][choices.below(3)];
    let stamp = Stamp {
        position: choices.number(),
        parent: choices.coin().then(|| choices.number()),
        depth: choices.number(),
        kind,
        id: "odd".parse().expect("an id"),
        left: choices.number(),
        unsettled: choices.number(),
    };
    stamped(r#"{"uuid":"odd"}"#, stamp).as_bytes().to_vec()
}
