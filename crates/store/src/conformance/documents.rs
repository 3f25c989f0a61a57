//! What the contract says of documents.

use bytes::Bytes;
use pollster::block_on;

use super::record::key;
use super::rule::{Rule, meanwhile, together};
use crate::backend::{Backend, Document, Expect, Key, Put, Version};

const THREADS: usize = 8;
const ROUNDS: usize = 24;

/// One document, one caller.
pub(super) async fn alone(backend: &dyn Backend) {
    let rule = Rule("a document that nobody put is absent");
    for name in ["format", "memory/ab12", "sessions/a/lease"] {
        rule.same(rule.ok(backend.get(&key(name)).await), None);
    }

    let rule = Rule("get gives what the last put stored");
    for name in ["format", "memory/ab12", "sessions/a/lease"] {
        let large = vec![b'x'; 1 << 20];
        for bytes in [&b"first"[..], b"", b"\xff\x00\r\n", &large, b"shorter"] {
            let version = done(rule, rule.ok(backend.put(&key(name), bytes, Expect::Any).await));
            holds(rule, backend, &key(name), &version, bytes).await;
        }
    }

    expectations(backend).await;
}

async fn expectations(backend: &dyn Backend) {
    let refused = Rule("a put whose expectation does not hold changes nothing and answers what is there");
    let never = Expect::Version(Version("never-given".into()));
    for name in ["expected", "sessions/a/expected"] {
        let name = &key(name);
        let put = refused.ok(backend.put(name, b"x", never.clone()).await);
        refused.same(put, Put::Conflict(None));
        refused.same(refused.ok(backend.get(name).await), None);

        let rule = Rule("a put whose expectation holds replaces the document");
        let first = done(rule, rule.ok(backend.put(name, b"one", Expect::Absent).await));
        let expect = Expect::Version(first.clone());
        let second = done(rule, rule.ok(backend.put(name, b"two", expect.clone()).await));
        holds(rule, backend, name, &second, b"two").await;

        let rule = Rule("a document that changed has another version");
        rule.check(first != second, &second);

        let there = Document { version: second.clone(), bytes: Bytes::from_static(b"two") };
        for stale in [Expect::Absent, expect, never.clone()] {
            let put = refused.ok(backend.put(name, b"x", stale).await);
            refused.same(put, Put::Conflict(Some(there.clone())));
            holds(refused, backend, name, &second, b"two").await;
        }
    }
}

/// Documents with similar names.
pub(super) async fn apart(backend: &dyn Backend) {
    let rule = Rule("documents do not see each other");
    let long = "x".repeat(80);
    let names = [
        "lease".to_owned(),
        "memory".into(),
        "memory/lease".into(),
        "memory-lease".into(),
        "sessions/a/lease".into(),
        "sessions/a/lease-2".into(),
        "sessions/a.b/lease".into(),
        "sessions/lease/lease".into(),
        format!("{long}/{long}"),
        format!("sessions/{}/{long}", "s".repeat(128)),
    ];
    let mut versions = Vec::new();
    for name in &names {
        versions.push(done(rule, rule.ok(backend.put(&key(name), name.as_bytes(), Expect::Absent).await)));
    }
    for (name, version) in names.iter().zip(&versions) {
        holds(rule, backend, &key(name), version, name.as_bytes()).await;
    }
}

/// One document, many callers.
pub(super) async fn contended(backend: &dyn Backend) {
    for name in ["contended", "sessions/a/contended"] {
        one_wins(backend, &key(name)).await;
        nothing_is_lost(backend, &key(name)).await;
        never_in_part(backend, &key(name));
    }
}

async fn one_wins(backend: &dyn Backend, name: &Key) {
    let rule = Rule("of several puts with the same expectation, one wins");
    let mut expect = Expect::Absent;
    for round in 0..ROUNDS {
        let content = |thread| format!("round {round} thread {thread}").into_bytes();
        let put = |thread| block_on(backend.put(name, &content(thread), expect.clone()));
        let puts = together(THREADS, |thread| rule.ok_in_turn(|| put(thread)));
        let winners: Vec<_> = (0..THREADS).filter(|&thread| matches!(puts[thread], Put::Done(_))).collect();
        let [winner] = winners[..] else {
            rule.broken(format!("threads {winners:?} won"));
        };
        let now = get(rule, backend, name).await;
        rule.same(&now.bytes, &content(winner).into());
        for put in puts {
            match put {
                Put::Done(version) => rule.same(&version, &now.version),
                conflict => rule.same(conflict, Put::Conflict(Some(now.clone()))),
            }
        }
        expect = Expect::Version(now.version);
    }
}

async fn nothing_is_lost(backend: &dyn Backend, name: &Key) {
    let rule = Rule("no update is lost among writers that expect what they read");
    done(rule, rule.ok(backend.put(name, b"0", Expect::Any).await));
    let number = |document: &Document| std::str::from_utf8(&document.bytes).ok()?.parse().ok();
    let count_up = |mut now: Document| {
        // Each refusal is another thread's success, so there are only so many.
        for _ in 0..=THREADS * ROUNDS {
            let Some::<usize>(count) = number(&now) else {
                rule.broken(format!("found {now:?}, expected a number"));
            };
            let more = (count + 1).to_string();
            let expect = Expect::Version(now.version.clone());
            match rule.ok_in_turn(|| block_on(backend.put(name, more.as_bytes(), expect.clone()))) {
                Put::Done(_) => return,
                Put::Conflict(Some(newer)) => now = newer,
                Put::Conflict(None) => rule.broken("the document is gone"),
            }
        }
        rule.broken("puts are refused although nobody else's succeeded");
    };
    together(THREADS, |_| {
        for _ in 0..ROUNDS / 4 {
            count_up(block_on(get(rule, backend, name)));
        }
    });
    let expected = THREADS * (ROUNDS / 4);
    rule.same(number(&get(rule, backend, name).await), Some(expected));
}

fn never_in_part(backend: &dyn Backend, name: &Key) {
    let rule = Rule("a reader sees a whole document, before or after a put");
    let content = |round: usize| vec![b'a' + round as u8; 5_000 * (1 + round % 3)];
    rule.ok(block_on(backend.put(name, &content(0), Expect::Any)));
    let write = || {
        for round in 0..ROUNDS {
            rule.ok_in_turn(|| block_on(backend.put(name, &content(round), Expect::Any)));
        }
    };
    meanwhile(write, || {
        let bytes = block_on(get(rule, backend, name)).bytes;
        let whole = (0..ROUNDS).any(|round| *bytes == content(round));
        rule.check(whole, format!("{} bytes of no one put", bytes.len()));
    });
}

/// Returns a document that must be there.
pub(super) async fn get(rule: Rule, backend: &dyn Backend, key: &Key) -> Document {
    let found = rule.ok(backend.get(key).await);
    let Some(document) = found else {
        rule.broken(format!("{key} is not there"));
    };
    document
}

/// Checks what a document holds, and in which version.
pub(super) async fn holds(rule: Rule, backend: &dyn Backend, key: &Key, version: &Version, bytes: &[u8]) {
    let expected = Document { version: version.clone(), bytes: Bytes::copy_from_slice(bytes) };
    rule.same(get(rule, backend, key).await, expected);
}

/// Returns the version of a put that must have succeeded.
pub(super) fn done(rule: Rule, put: Put) -> Version {
    match put {
        Put::Done(version) => version,
        conflict => rule.broken(format!("found {conflict:?}, expected Done")),
    }
}
