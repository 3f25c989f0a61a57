//! What the contract means where several processes use one place.

use pollster::block_on;

use super::blobs;
use super::contention::append_from_all;
use super::documents::{done, get, holds};
use super::logs::{append, moved};
use super::reading::{part, whole};
use super::record::{entry_id, group, key, messages, session, singles};
use super::rule::{Rule, together};
use crate::backend::{Backend, Expect, Position, Put, Space, Target};
use crate::stamp::Line;

/// Two appenders that take turns.
pub(super) async fn logs(one: &dyn Backend, other: &dyn Backend) {
    let rule = Rule("what one handle appends, another sees and goes on from");
    let log = &messages("a");
    let mut lines: Vec<Line> = Vec::new();
    for turn in 0..6 {
        let (writer, reader) = if turn % 2 == 0 { (one, other) } else { (other, one) };
        let at = lines.len() as Position;
        // The reader remembers where the log ended, whatever form its memory has.
        whole(rule, reader, log, &lines).await;
        rule.ok(reader.changed(log, at).await);
        let tag = format!("turn-{turn}");
        let batch = [singles(at, 1 + turn, &tag), group(at + 1 + turn, 2, &tag)].concat();
        append(rule, writer, log, &batch).await;
        lines.extend(batch);
        let end = lines.len() as Position;
        rule.check(rule.ok(reader.changed(log, at).await), "no change");
        let found = rule.ok(reader.find(log, &entry_id(&format!("{tag}-{at}"))).await);
        rule.same(found, Some(at));
        moved(rule, reader, log, &singles(at, 1, "stale"), end).await;
        whole(rule, reader, log, &lines).await;
    }
}

/// Documents and blobs, seen from the other side.
pub(super) async fn documents_and_blobs(one: &dyn Backend, other: &dyn Backend) {
    let rule = Rule("a version that one handle gave holds for another");
    for name in ["format", "sessions/a/lease"] {
        let name = &key(name);
        rule.same(rule.ok(other.get(name).await), None);
        let first = done(rule, rule.ok(one.put(name, b"one", Expect::Absent).await));
        holds(rule, other, name, &first, b"one").await;
        let expect = Expect::Version(first);
        let second = done(rule, rule.ok(other.put(name, b"two", expect.clone()).await));
        holds(rule, one, name, &second, b"two").await;
        let stale = rule.ok(one.put(name, b"three", expect).await);
        rule.same(stale, Put::Conflict(Some(get(rule, one, name).await)));
    }

    let rule = Rule("what one handle puts, another finds and lists");
    let blob = blobs::put(rule, one, b"content").await;
    blobs::gives(rule, other, &blob, 0..7, Some(b"content")).await;
    for (space, name) in [
        (Space::Sessions, "a".to_owned()),
        (Space::Documents, "format".into()),
        (Space::Blobs, blobs::listed_as(one, &blob)),
    ] {
        let listed = rule.ok(other.list(space, None, 10).await);
        let names: Vec<_> = listed.into_iter().map(|listed| listed.name).collect();
        rule.same(names, vec![name]);
    }
}

/// A session that the other side removes.
pub(super) async fn removal(one: &dyn Backend, other: &dyn Backend) {
    let rule = Rule("what one handle removes is gone for another, which can begin it again");
    let log = &messages("a");
    for (round, (remover, user)) in [(one, other), (other, one), (one, other)].into_iter().enumerate() {
        let count = 12 - 3 * round as u64;
        append(rule, user, log, &singles(0, count, "old")).await;
        whole(rule, user, log, &singles(0, count, "old")).await;
        let there = rule.ok(remover.remove(&Target::Session(session("a"))).await);
        rule.same(there, true);
        moved(rule, user, log, &singles(count, 1, "old"), 0).await;
        whole(rule, user, log, &[]).await;
        append(rule, user, log, &singles(0, count, "new")).await;
        whole(rule, remover, log, &singles(0, count, "new")).await;
        rule.ok(user.remove(&Target::Session(session("a"))).await);
    }
}

/// A session that the other side removes and begins again, behind the back of a reader.
pub(super) async fn replacement(writer: &dyn Backend, reader: &dyn Backend) {
    let rule = Rule("a reader is not misled by what it remembers of a session that was begun again");
    let log = &messages("a");
    for round in 0..4 {
        let count = 12 - 2 * round;
        append(rule, writer, log, &singles(0, count, "old")).await;
        whole(rule, reader, log, &singles(0, count, "old")).await;
        rule.ok(writer.remove(&Target::Session(session("a"))).await);
        // Other lengths under the same positions.
        let again = [group(0, 3, "renewed"), singles(3, 12, "renewed")].concat();
        append(rule, writer, log, &again).await;
        rule.check(rule.ok(reader.changed(log, count).await), "no change");
        part(rule, reader, log, &again, count as usize, 1).await;
        whole(rule, reader, log, &again).await;
        rule.ok(writer.remove(&Target::Session(session("a"))).await);
    }
}

/// Both sides at once.
pub(super) fn contended(one: &dyn Backend, other: &dyn Backend) {
    append_from_all(&[one, other]);

    let rule = Rule("of several puts with the same expectation through different handles, one wins");
    for name in ["contended", "sessions/a/contended"] {
        let name = &key(name);
        let mut expect = Expect::Absent;
        for round in 0..12 {
            let puts = together(4, |thread| {
                let handle = if thread % 2 == 0 { one } else { other };
                let content = format!("round {round} thread {thread}");
                rule.ok_in_turn(|| block_on(handle.put(name, content.as_bytes(), expect.clone())))
            });
            let won = puts.iter().filter(|put| matches!(put, Put::Done(_))).count();
            rule.check(won == 1, &puts);
            let now = block_on(get(rule, one, name));
            rule.check(puts.contains(&Put::Done(now.version.clone())), &now);
            expect = Expect::Version(now.version);
        }
    }
}
