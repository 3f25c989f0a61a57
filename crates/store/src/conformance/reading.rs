//! What the contract says of reading logs.

use super::logs::append;
use super::record::{group, messages, singles, varied};
use super::rule::Rule;
use crate::backend::{Backend, Chunk, From, LogKey, Position};
use crate::stamp::Line;

/// From every position, in pages of every size.
pub(super) async fn paged(backend: &dyn Backend) {
    let rule = Rule("read gives lines in order of position, byte for byte, from where it was told");
    let log = &messages("a");
    let mut lines: Vec<Line> = Vec::new();
    for batch in varied() {
        append(rule, backend, log, &batch).await;
        lines.extend(batch);
    }
    for max_bytes in [0, 1, 150, 1_000, 30_000, 1 << 20, usize::MAX] {
        let mut from = 0;
        while from < lines.len() {
            from += part(rule, backend, log, &lines, from, max_bytes).await;
        }
    }
    // Backwards, so that no read goes on where another stopped.
    for from in (0..=lines.len()).rev() {
        part(rule, backend, log, &lines, from, 1).await;
        part(rule, backend, log, &lines, from, 2_000).await;
    }
}

/// The last record, and what lies beyond it.
pub(super) async fn from_the_end(backend: &dyn Backend) {
    let log = &messages("a");
    let mut lines: Vec<Line> = Vec::new();
    for batch in [singles(0, 1, "a"), group(1, 3, "b"), singles(4, 2, "c")] {
        let rule = Rule("the last record is given alone, even if it ends a group");
        append(rule, backend, log, &batch).await;
        lines.extend(batch);
        for max_bytes in [1, usize::MAX] {
            let last = rule.ok(backend.read(log, From::Last, max_bytes).await);
            undamaged(&last);
            rule.same_lines(&last.lines, &lines[lines.len() - 1..]);
            rule.same(last.next, lines.len() as Position);
        }

        let rule = Rule("a read past the end is empty and goes on where it began");
        for beyond in [0, 1, 1_000_000] {
            let from = lines.len() as Position + beyond;
            let expected = Chunk { next: from, ..Chunk::default() };
            rule.same(rule.ok(backend.read(log, From::Position(from), 1).await), expected);
        }
    }

    let rule = Rule("a read past the end hides nothing that is appended later");
    rule.ok(backend.read(log, From::Position(9), 1 << 20).await);
    append(rule, backend, log, &singles(6, 6, "d")).await;
    lines.extend(singles(6, 6, "d"));
    part(rule, backend, log, &lines, 9, 1 << 20).await;
    whole(rule, backend, log, &lines).await;
}

/// Groups, entered from every side.
pub(super) async fn grouped(backend: &dyn Backend) {
    let rule = Rule("a read that begins inside a group gives the rest of it");
    let log = &messages("a");
    let batch = [singles(0, 1, "a"), group(1, 5, "b"), singles(6, 1, "c")].concat();
    append(rule, backend, log, &batch).await;
    let size = |lines: &[Line]| lines.iter().map(|line| line.as_bytes().len()).sum::<usize>();
    for from in 0..7 {
        for lines in 1..=7 - from {
            // A limit that falls exactly on the end of a line, and one on either side of it.
            let limit = size(&batch[from..from + lines]);
            for max_bytes in [limit - 1, limit, limit + 1] {
                part(rule, backend, log, &batch, from, max_bytes).await;
            }
        }
    }
}

/// Checks that a log holds these lines and nothing else.
pub(super) async fn whole(rule: Rule, backend: &dyn Backend, log: &LogKey, lines: &[Line]) {
    let mut found: Vec<Line> = Vec::new();
    loop {
        let chunk = page(rule, backend, log, found.len(), 4 << 20).await;
        if chunk.lines.is_empty() {
            break;
        }
        found.extend(chunk.lines);
        // Now rather than at the end, which a backend that repeats itself never comes to.
        rule.check(found.len() <= lines.len(), format!("more than {} lines", lines.len()));
    }
    rule.same_lines(&found, lines);
}

/// Checks one read of a log that holds `all`, and returns how many lines came.
pub(super) async fn part(
    rule: Rule,
    backend: &dyn Backend,
    log: &LogKey,
    all: &[Line],
    from: usize,
    max_bytes: usize,
) -> usize {
    let Chunk { lines: given, ends, .. } = page(rule, backend, log, from, max_bytes).await;
    let rest = &all[from..];
    rule.same_lines(&given, &rest[..given.len().min(rest.len())]);
    let rule = Rule("a read that says nothing more is there has read to the end");
    rule.check(!ends || given.len() == rest.len(), format!("{} of {} lines", given.len(), rest.len()));
    let rule = Rule("read gives at least one line where there is one, however large");
    rule.check(
        rest.is_empty() || !given.is_empty(),
        format!("nothing from {from} of {} with {max_bytes} bytes", all.len()),
    );
    given.len()
}

/// Reads once, and checks what holds for any read of an undamaged log.
async fn page(rule: Rule, backend: &dyn Backend, log: &LogKey, from: usize, max_bytes: usize) -> Chunk {
    let start = From::Position(from as Position);
    let chunk = rule.ok(backend.read(log, start, max_bytes).await);
    let given = &chunk.lines;
    let positions: Vec<_> = given.iter().map(|line| line.stamp().position).collect();
    rule.same(positions, (from as Position..).take(given.len()).collect());
    undamaged(&chunk);

    let rule = Rule("read never gives part of an atomic group");
    rule.same(given.last().map_or(0, |line| line.stamp().left), 0);

    let rule = Rule("read stops once it holds the size it was given");
    let last =
        given.iter().rposition(|line| line.stamp().left == 0 && line.stamp().position < chunk.next - 1);
    let before: usize =
        given[..last.map_or(0, |last| last + 1)].iter().map(|line| line.as_bytes().len()).sum();
    rule.check(
        before < max_bytes.max(1),
        format!("{before} bytes and one more in {} lines with {max_bytes} bytes", given.len()),
    );

    let rule = Rule("read says where to go on: after its last line, or where it began");
    rule.same(chunk.next, (from + given.len()) as Position);
    chunk
}

fn undamaged(chunk: &Chunk) {
    let rule = Rule("a log that nothing happened to shows no damage");
    rule.same((&chunk.damage, &chunk.tail), (&Vec::new(), &None));
}
