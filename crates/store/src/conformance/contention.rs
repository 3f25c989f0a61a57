//! What the contract says of logs that many threads use at once.

use pollster::block_on;

use super::reading::whole;
use super::record::{group, messages, singles};
use super::rule::{Rule, meanwhile, together};
use crate::backend::{Append, Backend, Durability, From, LogKey, Position};
use crate::stamp::Line;

const THREADS: usize = 6;
const ROUNDS: usize = 16;

/// Everybody appends at the same position.
pub(super) fn one_position(backend: &dyn Backend) {
    let rule = Rule("of several appends at the same position, one wins and nothing of the others is added");
    let log = &messages("a");
    let mut expected: Vec<Line> = Vec::new();
    for round in 0..ROUNDS {
        let at = expected.len() as Position;
        let batch = |thread| batch(at, thread, round);
        let answers = together(THREADS, |thread| {
            let lines = batch(thread);
            rule.ok_in_turn(|| block_on(backend.append(log, at, &lines, Durability::Written)))
        });
        let winners: Vec<_> =
            (0..THREADS).filter(|&thread| matches!(answers[thread], Append::Done { .. })).collect();
        let [winner] = winners[..] else {
            rule.broken(format!("threads {winners:?} won at {at}"));
        };
        expected.extend(batch(winner));
        let next = expected.len() as Position;
        for (thread, answer) in answers.into_iter().enumerate() {
            if thread != winner {
                rule.same(answer, Append::Moved { next });
            }
        }
        block_on(whole(rule, backend, log, &expected));
    }
}

/// Everybody appends wherever the log ends.
pub(super) fn one_log(backend: &dyn Backend) {
    append_from_all(&[backend]);
}

/// Appends from several threads to one log, through any number of handles, and checks that all of it is there.
pub(super) fn append_from_all(handles: &[&dyn Backend]) {
    let rule = Rule("of many appenders to one log nothing is lost, doubled or reordered");
    let log = &messages("a");
    let appended = together(THREADS, |thread| {
        let backend = handles[thread % handles.len()];
        let mut at = 0;
        let mut appended = Vec::new();
        for round in 0..ROUNDS {
            let lines = append_at_the_end(rule, backend, log, &mut at, &|at| batch(at, thread, round));
            seen(backend, log, &lines);
            appended.push(lines);
        }
        appended
    });
    let mut batches: Vec<Vec<Line>> = appended.into_iter().flatten().collect();
    batches.sort_by_key(|batch| batch[0].stamp().position);
    for handle in handles {
        block_on(whole(rule, *handle, log, &batches.concat()));
    }
}

fn seen(backend: &dyn Backend, log: &LogKey, lines: &[Line]) {
    let rule = Rule("what append has added is seen by every reader that starts afterwards");
    let mut rest = lines;
    while let Some(first) = rest.first() {
        let from = From::Position(first.stamp().position);
        let found = rule.ok_in_turn(|| block_on(backend.read(log, from, 1 << 20))).lines;
        rule.check(!found.is_empty(), &found);
        let (given, later) = rest.split_at(found.len().min(rest.len()));
        rule.same_lines(&found[..given.len()], given);
        rest = later;
    }
}

/// Somebody reads on and on while another appends.
pub(super) fn read_while_written(backend: &dyn Backend) {
    let rule = Rule("a reader beside a writer sees whole groups in order, and each record once");
    let log = &messages("a");
    let mut lines: Vec<Line> = Vec::new();
    let write = || {
        let mut at = 0;
        for round in 0..ROUNDS * 4 {
            append_at_the_end(rule, backend, log, &mut at, &|at| batch(at, round, round));
        }
    };
    meanwhile(write, || {
        loop {
            let from = From::Position(lines.len() as Position);
            let chunk = rule.ok_in_turn(|| block_on(backend.read(log, from, 700)));
            rule.same(&chunk.damage, &Vec::new());
            if chunk.lines.is_empty() {
                break;
            }
            for line in chunk.lines {
                rule.same(line.stamp().position, lines.len() as Position);
                lines.push(line);
            }
            rule.same(chunk.next, lines.len() as Position);
            rule.same(lines.last().map_or(0, |line| line.stamp().left), 0);
        }
    });
    let expected: u64 = (0..ROUNDS * 4).map(|round| count(round, round)).sum();
    rule.same(lines.len() as u64, expected);
    block_on(whole(rule, backend, log, &lines));
}

/// Appends at `at`, or wherever the answer says that the log ends, until it is done.
fn append_at_the_end(
    rule: Rule,
    backend: &dyn Backend,
    log: &LogKey,
    at: &mut Position,
    batch: &dyn Fn(Position) -> Vec<Line>,
) -> Vec<Line> {
    // Each refusal is another thread's success, so there are only so many.
    for _ in 0..=THREADS * ROUNDS {
        let lines = batch(*at);
        match rule.ok_in_turn(|| block_on(backend.append(log, *at, &lines, Durability::Written))) {
            Append::Done { .. } => {
                *at += lines.len() as Position;
                return lines;
            }
            Append::Moved { next } => *at = next,
            part @ Append::Part { .. } => rule.broken(format!("found {part:?}, although there is room")),
        }
    }
    rule.broken("appends are refused although nobody else's succeeded");
}

/// Returns what a thread appends in a round: single records or a group, told apart by their tag.
fn batch(at: Position, thread: usize, round: usize) -> Vec<Line> {
    let tag = format!("{thread}-{round}");
    match thread % 2 {
        0 => singles(at, count(thread, round), &tag),
        _ => group(at, count(thread, round), &tag),
    }
}

fn count(thread: usize, round: usize) -> u64 {
    1 + ((thread + round) % 4) as u64
}
