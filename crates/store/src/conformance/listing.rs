//! What the contract says of listing.

use jiff::{SignedDuration, Timestamp};

use super::blobs;
use super::logs::append;
use super::record::{key, messages, session, singles};
use super::rule::Rule;
use crate::backend::{Backend, Expect, Listed, LogKey, LogName, Space, Target};

const SPACES: [Space; 3] = [Space::Sessions, Space::Documents, Space::Blobs];

/// Every space, in pages of every size.
pub(super) async fn paged(backend: &dyn Backend) {
    let rule = Rule("an empty space lists nothing");
    for space in SPACES {
        rule.same(rule.ok(backend.list(space, None, 10).await), Vec::new());
    }

    let rule = Rule("list gives names in ascending order, each once, and goes on after a given name");
    // In order of their bytes; a backend that sorts by some language's rules has another.
    let sessions = ["9", "B", "Z.z", "a", "a-b", "a.b", "a_b", "aa", "b"];
    for (number, name) in sessions.into_iter().enumerate() {
        let (logs, documents): (&[LogName], &[&str]) = match number % 4 {
            0 => (&[], &["lease"]),
            1 => (&[LogName::Transcript], &[]),
            2 => (&[LogName::Messages], &[]),
            _ => (&LogName::ALL, &["lease", "metadata"]),
        };
        for log in logs {
            let log = LogKey::new(session(name), *log);
            append(rule, backend, &log, &singles(0, 2, "a")).await;
        }
        for document in documents {
            put(rule, backend, &format!("sessions/{name}/{document}")).await;
        }
    }
    names(rule, backend, Space::Sessions, &sessions).await;
    described(backend).await;

    let documents = ["a", "format", "memory", "memory-1", "memory/0", "memory/ab", "z"];
    for name in documents.iter().rev() {
        put(rule, backend, name).await;
    }
    names(rule, backend, Space::Documents, &documents).await;

    let mut hashes = Vec::new();
    for number in 0..24 {
        let blob = blobs::put(rule, backend, format!("blob {number}").as_bytes()).await;
        hashes.push(blobs::listed_as(backend, &blob));
    }
    hashes.sort();
    let hashes: Vec<&str> = hashes.iter().map(String::as_str).collect();
    names(rule, backend, Space::Blobs, &hashes).await;
}

async fn names(rule: Rule, backend: &dyn Backend, space: Space, expected: &[&str]) {
    for limit in [1, 2, 3, expected.len(), expected.len() + 1, usize::MAX] {
        let mut given = Vec::new();
        let mut after: Option<String> = None;
        while given.len() <= expected.len() {
            let page = rule.ok(backend.list(space, after.as_deref(), limit).await);
            Rule("list gives no more names than it was asked for").check(page.len() <= limit, page.len());
            let Some(last) = page.last() else {
                break;
            };
            after = Some(last.name.clone());
            given.extend(page.into_iter().map(|listed| listed.name));
        }
        rule.same(given, expected.iter().map(ToString::to_string).collect());
    }
    let rule = Rule("list gives no more names than it was asked for");
    rule.same(rule.ok(backend.list(space, None, 0).await), Vec::new());

    let rule = Rule("list goes on after a name that is not there");
    for after in ["0", "a0", "m", "~"] {
        let page = rule.ok(backend.list(space, Some(after), usize::MAX).await);
        let given: Vec<_> = page.iter().map(|listed| listed.name.as_str()).collect();
        let later: Vec<_> = expected.iter().copied().filter(|name| *name > after).collect();
        rule.same(given, later);
    }
}

async fn described(backend: &dyn Backend) {
    let rule = Rule("stat says of a session what list says, and nothing of one that is not listed");
    for listed in rule.ok(backend.list(Space::Sessions, None, usize::MAX).await) {
        let described = rule.ok(backend.stat(&session(&listed.name)).await);
        rule.same(described, Some(listed));
    }
    for name in ["0", "a.", "aaa"] {
        rule.same(rule.ok(backend.stat(&session(name)).await), None);
    }
}

/// What a listing says beside the names.
pub(super) async fn dated(backend: &dyn Backend) {
    let rule = Rule("a listing says when each thing was last written");
    append(rule, backend, &messages("a"), &singles(0, 1, "a")).await;
    put(rule, backend, "sessions/b/lease").await;
    put(rule, backend, "format").await;
    blobs::put(rule, backend, b"content").await;
    for space in SPACES {
        for listed in rule.ok(backend.list(space, None, 10).await) {
            // The clock may be another machine's.
            let age = Timestamp::now().duration_since(listed.modified);
            rule.check(age.abs() < SignedDuration::from_hours(24), &listed);
        }
    }

    let rule = Rule("a session is listed with another change whenever its message log is another");
    let mut seen = vec![only(rule, backend).await.change];
    for at in 1..4 {
        append(rule, backend, &messages("a"), &singles(at, 1, "a")).await;
        seen.push(only(rule, backend).await.change);
    }
    rule.ok(backend.remove(&Target::Session(session("a"))).await);
    append(rule, backend, &messages("a"), &singles(0, 1, "a")).await;
    seen.push(only(rule, backend).await.change);
    let (all, again) = (seen.len(), only(rule, backend).await.change);
    rule.same(Some(&again), seen.last());
    seen.sort();
    seen.dedup();
    rule.check(seen.len() == all, &seen);
}

async fn only(rule: Rule, backend: &dyn Backend) -> Listed {
    let page = rule.ok(backend.list(Space::Sessions, None, 1).await);
    let Some(listed) = page.into_iter().find(|listed| listed.name == "a") else {
        rule.broken("the session is not listed");
    };
    listed
}

async fn put(rule: Rule, backend: &dyn Backend, name: &str) {
    let put = rule.ok(backend.put(&key(name), b"{}", Expect::Absent).await);
    super::documents::done(rule, put);
}
