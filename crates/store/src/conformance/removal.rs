//! What the contract says of removal.

use pollster::block_on;

use super::blobs;
use super::documents::{done, get};
use super::logs::{append, moved};
use super::reading::whole;
use super::record::{entry_id, group, key, messages, session, singles};
use super::rule::{Rule, together};
use crate::backend::{Backend, Expect, From, Key, LogKey, LogName, Put, Space, Target, Version};

const ROUNDS: usize = 24;

/// One document, one blob.
pub(super) async fn documents_and_blobs(backend: &dyn Backend) {
    let rule = Rule("remove answers whether there was something, and what is removed is gone");
    for name in ["format", "memory/ab12", "sessions/a/lease"] {
        let (name, target) = (&key(name), &Target::Document(key(name)));
        removed(rule, backend, target, false).await;
        let version = put(rule, backend, name, Expect::Absent).await;
        removed(rule, backend, target, true).await;
        rule.same(rule.ok(backend.get(name).await), None);
        removed(rule, backend, target, false).await;
        let stale = rule.ok(backend.put(name, b"x", Expect::Version(version)).await);
        rule.same(stale, Put::Conflict(None));
        put(rule, backend, name, Expect::Absent).await;
    }
    let blob = blobs::put(rule, backend, b"content").await;
    let other = blobs::put(rule, backend, b"other").await;
    removed(rule, backend, &Target::Blob(blob), true).await;
    blobs::gives(rule, backend, &blob, 0..7, None).await;
    removed(rule, backend, &Target::Blob(blob), false).await;
    let listed = rule.ok(backend.list(Space::Blobs, None, 10).await);
    let names: Vec<_> = listed.into_iter().map(|listed| listed.name).collect();
    rule.same(&names[..], &[blobs::listed_as(backend, &other)][..]);
    blobs::put(rule, backend, b"content").await;
    blobs::gives(rule, backend, &blob, 0..7, Some(b"content")).await;

    let rule = Rule("what is listed can be removed by what it is called there");
    for target in [Target::Blob, |blob| Target::StaleBlob(blob, long_after())] {
        blobs::put(rule, backend, b"other").await;
        let called = rule.ok(blobs::listed_as(backend, &other).parse());
        removed(rule, backend, &target(called), true).await;
        blobs::gives(rule, backend, &other, 0..7, None).await;
    }
}

/// Blobs that go only if nobody has put them since.
pub(super) async fn stale_blobs(backend: &dyn Backend) {
    let rule = Rule("a stale blob goes only if nobody has put it since, or made it young");
    let long_ago = jiff::Timestamp::UNIX_EPOCH;
    let blob = blobs::put(rule, backend, b"content").await;
    removed(rule, backend, &Target::StaleBlob(blob, long_ago), false).await;
    blobs::gives(rule, backend, &blob, 0..7, Some(b"content")).await;
    for young in [true, false] {
        let pause = std::time::Duration::from_millis(30);
        std::thread::sleep(pause);
        let since = jiff::Timestamp::now();
        std::thread::sleep(pause);
        match young {
            true => drop(blobs::put(rule, backend, b"content").await),
            false => rule.same(rule.ok(backend.refresh_blob(&blob).await), true),
        }
        removed(rule, backend, &Target::StaleBlob(blob, since), false).await;
        blobs::gives(rule, backend, &blob, 0..7, Some(b"content")).await;
    }
    removed(rule, backend, &Target::StaleBlob(blob, long_after()), true).await;
    blobs::gives(rule, backend, &blob, 0..7, None).await;
    removed(rule, backend, &Target::StaleBlob(blob, long_after()), false).await;
    rule.same(rule.ok(backend.refresh_blob(&blob).await), false);
}

/// Returns a time by which whatever is there now is stale.
fn long_after() -> jiff::Timestamp {
    jiff::Timestamp::now() + jiff::SignedDuration::from_secs(60)
}

/// Puts and stale removals at once: whoever has put a blob finds it.
pub(super) fn stale_blobs_contended(backend: &dyn Backend) {
    let rule = Rule("of a put and a stale removal at once, the put wins");
    for round in 0..ROUNDS {
        let content = format!("round {round}").into_bytes();
        let blob = block_on(blobs::put(rule, backend, &content));
        // What was put before this is stale, what comes is not.
        std::thread::sleep(std::time::Duration::from_millis(30));
        let since = jiff::Timestamp::now();
        std::thread::sleep(std::time::Duration::from_millis(30));
        together(4, |thread| match thread {
            0 | 1 => drop(rule.ok_in_turn(|| block_on(backend.remove(&Target::StaleBlob(blob, since))))),
            _ => {
                rule.ok_in_turn(|| block_on(backend.put_blob(&blob, &mut &content[..])));
                block_on(blobs::gives(rule, backend, &blob, 0..99, Some(&content)));
            }
        });
        block_on(blobs::gives(rule, backend, &blob, 0..99, Some(&content)));
    }
}

/// A session among others with similar names.
pub(super) async fn sessions(backend: &dyn Backend) {
    let rule = Rule("removing a session removes its logs and its documents, and no other's");
    let names = ["a", "a-b", "a.b", "aa", "b", "sessions"];
    let logs = |name: &str| LogName::ALL.map(|log| LogKey::new(session(name), log));
    let lease = |name: &str| key(&format!("sessions/{name}/lease"));
    for name in names {
        for log in logs(name) {
            append(rule, backend, &log, &singles(0, 3, name)).await;
        }
        put(rule, backend, &lease(name), Expect::Absent).await;
    }
    put(rule, backend, &key("a"), Expect::Absent).await;
    let blob = blobs::put(rule, backend, b"content").await;

    removed(rule, backend, &Target::Session(session("a")), true).await;
    for log in logs("a") {
        whole(rule, backend, &log, &[]).await;
        rule.same(rule.ok(backend.read(&log, From::Last, 1).await).lines, Vec::new());
        rule.same(rule.ok(backend.find(&log, &entry_id("a-0")).await), None);
    }
    rule.same(rule.ok(backend.get(&lease("a")).await), None);
    for name in &names[1..] {
        for log in logs(name) {
            whole(rule, backend, &log, &singles(0, 3, name)).await;
        }
        get(rule, backend, &lease(name)).await;
    }
    get(rule, backend, &key("a")).await;
    blobs::gives(rule, backend, &blob, 0..7, Some(b"content")).await;
    let listed = rule.ok(backend.list(Space::Sessions, None, 10).await);
    let listed: Vec<_> = listed.iter().map(|listed| listed.name.as_str()).collect();
    rule.same(&listed[..], &names[1..]);
    removed(rule, backend, &Target::Session(session("a")), false).await;
}

/// A session whose name is used again.
pub(super) async fn begun_again(backend: &dyn Backend) {
    let rule = Rule("a removed session can be begun again, at position 0, with nothing of the old one");
    let log = &messages("a");
    for (round, tag) in ["first", "second", "third"].into_iter().enumerate() {
        // Shorter each time, and read to the end, so that whatever a backend remembers of it is wrong by then.
        let count = 9 - 3 * round as u64;
        moved(rule, backend, log, &singles(12, 1, tag), 0).await;
        let lines = [group(0, 2, tag), singles(2, count, tag)].concat();
        append(rule, backend, log, &lines).await;
        whole(rule, backend, log, &lines).await;
        rule.check(rule.ok(backend.changed(log, 1).await), "no change");
        let found = rule.ok(backend.find(log, &entry_id(&format!("{tag}-2"))).await);
        rule.same(found, Some(2));
        removed(rule, backend, &Target::Session(session("a")), true).await;
        rule.same(rule.ok(backend.find(log, &entry_id(&format!("{tag}-2"))).await), None);
        whole(rule, backend, log, &[]).await;
    }
    rule.ok(backend.settle(log).await);
}

/// A session that was only asked about, or that lost the last thing it had.
pub(super) async fn nothing_left(backend: &dyn Backend) {
    let rule = Rule("a session without a log or a document is not listed, and there is nothing to remove");
    let name = &key("sessions/a/lease");
    let nothing = async || {
        let listed = rule.ok(backend.list(Space::Sessions, None, 10).await);
        rule.same(listed, Vec::new());
        rule.same(rule.ok(backend.stat(&session("a")).await), None);
        removed(rule, backend, &Target::Session(session("a")), false).await;
    };
    let never = Expect::Version(Version("never-given".into()));
    rule.ok(backend.put(name, b"x", never).await);
    nothing().await;
    moved(rule, backend, &messages("a"), &singles(1, 1, "a"), 0).await;
    nothing().await;
    rule.ok(backend.read(&messages("a"), From::Last, 1).await);
    rule.ok(backend.settle(&messages("a")).await);
    nothing().await;
    put(rule, backend, name, Expect::Absent).await;
    removed(rule, backend, &Target::Document(name.clone()), true).await;
    nothing().await;
}

/// Whichever of the two came first, the removal has the last word.
pub(super) fn contended(backend: &dyn Backend) {
    let rule = Rule("a removed document is not brought back by a put that expected it");
    for name in ["contended", "sessions/a/contended"] {
        let (name, target) = (&key(name), &Target::Document(key(name)));
        for _ in 0..ROUNDS {
            let expect = Expect::Version(block_on(put(rule, backend, name, Expect::Any)));
            together(2, |thread| {
                if thread == 0 {
                    let there = rule.ok_in_turn(|| block_on(backend.remove(target)));
                    rule.same(there, true);
                } else {
                    rule.ok_in_turn(|| block_on(backend.put(name, b"new", expect.clone())));
                }
            });
            rule.same(rule.ok(block_on(backend.get(name))), None);
        }
    }
}

async fn put(rule: Rule, backend: &dyn Backend, key: &Key, expect: Expect) -> Version {
    let put = rule.ok(backend.put(key, b"content", expect).await);
    done(rule, put)
}

async fn removed(rule: Rule, backend: &dyn Backend, target: &Target, expected: bool) {
    rule.same((target, rule.ok(backend.remove(target).await)), (target, expected));
}
