//! A log of several files, as a failed sync leaves it, with damage in any of them, or with headers that say anything.

use rethread_store::{Kind, Stamp};

use super::choices::Choices;
use super::home::Home;
use super::sample::{self, RECORDS, joined, stamped};
use super::soundness;

/// Makes a log of up to three files and checks what becomes of it.
pub fn segments(data: &[u8]) {
    let mut choices = Choices::new(data);
    let home = Home::default();
    let honest = choices.below(4) > 0;
    let mut files = if honest { written(&mut choices) } else { made_up(&mut choices) };
    while !choices.is_empty() {
        let count = files.len();
        hurt(&mut files[choices.below(count)], &mut choices);
    }
    for (number, file) in files.iter().enumerate() {
        home.put(&name(number), file);
    }
    match honest {
        true => soundness::check(&home),
        // Nobody promises which records a header that lies leaves visible, but nothing may break or vanish.
        false => soundness::survives(&home),
    }
}

fn name(number: usize) -> String {
    if number == 0 { "messages.jsonl".into() } else { format!("messages.{number}.jsonl") }
}

/// Returns the files that a writer leaves whose syncs failed: each goes on where the one before is believed.
fn written(choices: &mut Choices) -> Vec<Vec<u8>> {
    let lines = sample::lines([0, 400][choices.below(2)]);
    let mut files = vec![Vec::new()];
    let mut next = 0;
    for _ in 0..1 + choices.below(2) {
        let until = (next + choices.below(RECORDS as usize)).min(lines.len());
        // Not within a group: those are never split.
        let until = if (7..=8).contains(&until) { 6 } else { until }.max(next);
        let number = files.len() as u64 - 1;
        let last = files.last_mut().expect("the first one");
        last.extend(joined(&lines[next..until]));
        let end = last.len() as u64;
        // What the failed sync may have lost is still to be read there.
        let condemned = (until + choices.below(4)).min(lines.len());
        last.extend(joined(&lines[until..condemned]));
        next = until;
        files.push(header(number, end, next as u64));
    }
    let last = files.last_mut().expect("the first one");
    last.extend(joined(&lines[next..]));
    files
}

/// Returns files whose headers say anything.
fn made_up(choices: &mut Choices) -> Vec<Vec<u8>> {
    let lines = sample::lines(0);
    let part = |choices: &mut Choices| {
        let (one, other) = (choices.below(lines.len()), choices.below(lines.len()));
        joined(&lines[one.min(other)..one.max(other)])
    };
    let mut files = vec![part(choices)];
    for _ in 0..1 + choices.below(3) {
        let header = header(choices.number(), choices.number(), choices.number());
        files.push([header, part(choices)].concat());
    }
    files
}

fn header(after: u64, end: u64, first: u64) -> Vec<u8> {
    let body = format!(r#"{{"segment":{{"after":{after},"end":{end},"first":{first}}}}}"#);
    let id = "segment".parse().expect("an id");
    let stamp =
        Stamp { position: first, parent: None, depth: 0, kind: Kind::Note, id, left: 0, unsettled: 0 };
    [stamped(&body, stamp).as_bytes(), b"\n"].concat()
}

fn hurt(file: &mut Vec<u8>, choices: &mut Choices) {
    let at = choices.below(file.len() + 1);
    match choices.byte() % 4 {
        0 => file.truncate(at),
        1 => file.get_mut(at).into_iter().for_each(|byte| *byte ^= 1 << (choices.byte() % 8)),
        2 => {
            let to = file.len().min(at + choices.below(600));
            file[at..to].fill(0);
        }
        _ => drop(file.splice(at..at, choices.take(8).iter().copied())),
    }
}
