//! What the contract says of appending to logs, and of finding something in them again.

use super::reading::whole;
use super::record::{entry_id, group, large, messages, record, session, singles, varied};
use super::rule::Rule;
use crate::backend::{Append, Backend, Chunk, Durability, From, Known, LogKey, LogName, Position, Target};
use crate::stamp::Line;

/// A log that nobody appended to.
pub(super) async fn empty(backend: &dyn Backend) {
    let log = &messages("a");
    let rule = Rule("a log that nobody appended to is empty, not an error");
    for (from, next) in [(From::Position(0), 0), (From::Last, 0), (From::Position(7), 7)] {
        let expected = Chunk { next, ..Chunk::default() };
        rule.same(rule.ok(backend.read(log, from, 1 << 20).await), expected);
    }
    rule.ok(backend.changed(log, 0).await);
    rule.same(rule.ok(backend.find(log, &entry_id("e")).await), None);

    let rule = Rule("settling a log that is not there is not an error");
    rule.ok(backend.settle(log).await);
    append(rule, backend, log, &singles(0, 1, "a")).await;
    rule.ok(backend.settle(&LogKey::new(session("a"), LogName::Transcript)).await);
}

/// Batches by one appender.
pub(super) async fn appended(backend: &dyn Backend) {
    let log = &messages("a");
    let rule = Rule("append adds its lines in order, at the position it was told");
    let mut expected: Vec<Line> = Vec::new();
    for batch in [singles(0, 1, "a"), singles(1, 9, "b"), group(10, 4, "c")] {
        append(rule, backend, log, &batch).await;
        expected.extend(batch);
        whole(rule, backend, log, &expected).await;
    }

    let rule = Rule("append at any other position adds nothing and answers where the log ends");
    let end = expected.len() as Position;
    for at in [0, 1, end - 1, end + 1, end + 100] {
        moved(rule, backend, log, &singles(at, 2, "stray"), end).await;
        whole(rule, backend, log, &expected).await;
    }
    moved(rule, backend, &messages("b"), &singles(1, 1, "stray"), 0).await;
    whole(rule, backend, &messages("b"), &[]).await;

    let rule = Rule("an append of no lines adds nothing");
    let done = rule.ok(backend.append(log, end, &[], Durability::Synced).await);
    rule.check(matches!(done, Append::Done { .. }), &done);
    let stray = rule.ok(backend.append(log, end + 1, &[], Durability::Synced).await);
    rule.same(stray, Append::Moved { next: end });
    whole(rule, backend, log, &expected).await;

    durable(backend, &messages("durable")).await;
}

async fn durable(backend: &dyn Backend, log: &LogKey) {
    let rule = Rule("an append is as durable as it was asked to be, as far as the backend can reach");
    let most = backend.capabilities().durability;
    let levels = [Durability::Off, Durability::Written, Durability::Synced];
    for (at, asked) in (0..).zip(levels) {
        let done = rule.ok(backend.append(log, at, &singles(at, 1, "a"), asked).await);
        let Append::Done { durability, found } = done else {
            rule.broken(format!("found {done:?}, expected Done"));
        };
        rule.check((asked.min(most)..=most).contains(&durability), durability);
        rule.same(found, Vec::new());
    }
}

/// Records that tempt a backend to look inside, or to cut them.
pub(super) async fn opaque(backend: &dyn Backend) {
    let rule = Rule("a line comes back byte for byte");
    let log = &messages("a");
    let bodies = [
        r#"{}"#,
        r#"{ }"#,
        r#"{ "b": 1.0e0, "a" : "\ud83d", "a": null ,"\u0000":"\u0000\n"}"#,
        r#"{"_rt":"1 0 - 1 e x 0 00000000"}"#,
        r#"{"number":123456789012345678901234567890.10,"deep":[[[{}]]]}"#,
        "{\"lines\":\"\u{85}\u{2028}\u{2029}\u{7f}\",\"text\":\"ü € 😀 e\u{301}\"}",
    ];
    let ids = ["';--", "%_*?[", "../..", "{$1}", "<&>", "\u{7e}!"];
    let lines: Vec<Line> = (0..)
        .zip(bodies.iter().zip(ids))
        .map(|(position, (body, id))| record(position, 0, id, body))
        .collect();
    append(rule, backend, log, &lines).await;
    whole(rule, backend, log, &lines).await;
    for (position, id) in (0..).zip(ids) {
        rule.same(rule.ok(backend.find(log, &entry_id(id)).await), Some(position));
    }

    let rule = Rule("a large record comes back whole");
    let limit = backend.capabilities().max_record;
    let log = &messages("large");
    let mut lines = singles(0, 2, "before");
    lines.push(large(2, limit));
    lines.extend(singles(3, 2, "after"));
    append(rule, backend, log, &lines[..1]).await;
    append(rule, backend, log, &lines[1..4]).await;
    append(rule, backend, log, &lines[4..]).await;
    whole(rule, backend, log, &lines).await;
}

/// Three logs of each of several sessions.
pub(super) async fn apart(backend: &dyn Backend) {
    let rule = Rule("logs do not see each other");
    let logs: Vec<LogKey> = ["a", "a.b", "a-b", "ab", "messages"]
        .into_iter()
        .flat_map(|name| LogName::ALL.map(|log| LogKey::new(session(name), log)))
        .collect();
    let content = |log: &LogKey, count| singles(0, count, &format!("{}-{}", log.session, log.name.as_str()));
    for (log, count) in logs.iter().zip(1..) {
        append(rule, backend, log, &content(log, count)).await;
    }
    for (log, count) in logs.iter().zip(1..) {
        whole(rule, backend, log, &content(log, count)).await;
        let last = rule.ok(backend.read(log, From::Last, 1 << 20).await);
        rule.same(last.next, count);
        let foreign = entry_id(&format!("{}-transcript-0", logs[0].session));
        let found = rule.ok(backend.find(log, &foreign).await);
        rule.same(found, (*log == logs[1]).then_some(0));
    }
}

/// Looking for an entry, and for news.
pub(super) async fn searched(backend: &dyn Backend) {
    let log = &messages("a");
    let rule = Rule("find gives the newest position that holds an entry, or none");
    let mut end = 0;
    for batch in varied() {
        append(rule, backend, log, &batch).await;
        end += batch.len() as Position;
        let newest = batch[batch.len() - 1].stamp();
        rule.same(rule.ok(backend.find(log, &newest.id).await), Some(newest.position));
    }
    let first = varied()[0][0].stamp().id.clone();
    rule.same(rule.ok(backend.find(log, &first).await), Some(0));
    append(rule, backend, log, &[record(end, 0, first.as_str(), "{}")]).await;
    rule.same(rule.ok(backend.find(log, &first).await), Some(end));
    rule.same(rule.ok(backend.find(log, &entry_id("single-1000")).await), None);

    let rule = Rule("changed never says no where there are records");
    let log = &messages("b");
    for at in 0..6 {
        // Whatever a reader at the end leaves behind must not hide what comes next, nor may asking itself.
        rule.ok(backend.read(log, From::Position(at), 1).await);
        rule.ok(backend.changed(log, at).await);
        append(rule, backend, log, &singles(at, 1, "b")).await;
        for since in 0..=at {
            rule.check(rule.ok(backend.changed(log, since).await), since);
        }
        whole(rule, backend, log, &singles(0, at + 1, "b")).await;
        for since in 0..=at {
            rule.check(rule.ok(backend.changed(log, since).await), since);
        }
    }
}

/// Calls that make things durable or tidy, and change nothing that a reader sees.
pub(super) async fn maintained(backend: &dyn Backend) {
    let log = &messages("a");
    let lines = [singles(0, 3, "a"), group(3, 3, "b")].concat();
    let rule = Rule("settling a log changes nothing that readers see");
    let done = rule.ok(backend.append(log, 0, &lines, Durability::Written).await);
    rule.check(matches!(done, Append::Done { .. }), &done);
    rule.ok(backend.settle(log).await);
    whole(rule, backend, log, &lines).await;

    let rule = Rule("a sweep leaves alone what is in use");
    rule.ok(backend.sweep().await);
    whole(rule, backend, log, &lines).await;

    let rule = Rule("a rewrite of an undamaged log keeps every record");
    let rewrite = rule.ok(backend.rewrite(log, &Known::default()).await);
    rule.same((rewrite.salvaged, &rewrite.lost), (0, &Vec::new()));
    whole(rule, backend, log, &lines).await;
    append(rule, backend, log, &singles(6, 2, "c")).await;
    whole(rule, backend, log, &[lines, singles(6, 2, "c")].concat()).await;
    rule.ok(backend.rewrite(&messages("nobody"), &Known::default()).await);

    let rule = Rule("a log's file is its own");
    let paths = LogName::ALL.map(|name| backend.path(&LogKey::new(session("a"), name)));
    let shared = paths[0].is_some() && (paths[0] == paths[1] || paths[0] == paths[2]);
    rule.check(!shared, &paths);
}

/// A log that was removed and begun again, and is as long as the one before.
pub(super) async fn begun_by_another(one: &dyn Backend, other: &dyn Backend) {
    let rule = Rule("nothing is added to a log that begins with another record than it should");
    let log = &messages("a");
    let add = async |first: &str, at, tag| {
        let lines = &singles(at, 1, tag);
        rule.ok(one.append_to(log, &entry_id(first), at, lines, Durability::Synced).await)
    };
    rule.same(add("old-0", 3, "old").await, Append::Moved { next: 0 });
    append(rule, one, log, &singles(0, 3, "old")).await;
    rule.check(matches!(add("old-0", 3, "old").await, Append::Done { .. }), "it is the one");
    rule.ok(other.remove(&Target::Session(session("a"))).await);
    let mut lines = singles(0, 4, "new");
    append(rule, other, log, &lines).await;
    // However often: whoever is told once may have more to say.
    for at in [4, 4, 3, 9, 4] {
        rule.same(add("old-0", at, "old").await, Append::Moved { next: 4 });
        whole(rule, one, log, &lines).await;
    }
    rule.same(add("new-0", 3, "new").await, Append::Moved { next: 4 });
    rule.check(matches!(add("new-0", 4, "new").await, Append::Done { .. }), "it is the one");
    lines.extend(singles(4, 1, "new"));
    rule.same(add("old-0", 5, "old").await, Append::Moved { next: 5 });
    whole(rule, other, log, &lines).await;
}

/// Appends where the log must end.
pub(super) async fn append(rule: Rule, backend: &dyn Backend, log: &LogKey, lines: &[Line]) {
    let at = lines.first().map_or(0, |line| line.stamp().position);
    let answer = rule.ok(backend.append(log, at, lines, Durability::Synced).await);
    match answer {
        Append::Done { found, .. } => rule.same(found, Vec::new()),
        moved => rule.broken(format!("found {moved:?} on {log} at {at}, expected Done")),
    }
}

/// Appends where the log must not end.
pub(super) async fn moved(rule: Rule, backend: &dyn Backend, log: &LogKey, lines: &[Line], next: Position) {
    let at = lines.first().map_or(0, |line| line.stamp().position);
    let answer = rule.ok(backend.append(log, at, lines, Durability::Synced).await);
    rule.same(answer, Append::Moved { next });
}
