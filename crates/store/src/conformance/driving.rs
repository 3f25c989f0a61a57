//! What a store on such a backend promises about who drives a session, with handles as several processes have them.

use std::thread;
use std::time::Duration;

use super::rule::{Rule, together};
use crate::backend::Backend;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::lease::{Claim, Lease};
use crate::session::Session;
use crate::store::{NewSession, Options, Store};

const LONG: Duration = Duration::from_secs(600);
const SHORT: Duration = Duration::from_millis(300);

/// Who drives is fenced off as soon as somebody else does.
pub(super) async fn taken_over<B: Backend + 'static>(one: B, other: B) {
    let rule = Rule("one drives a session, and what a former driver sends is refused");
    let (ours, theirs) = two_sides(rule, one, other).await;
    let lease = rule.ok(ours.lease("test", LONG, Claim::IfFree).await);
    rule.ok(append(&lease, "first").await);
    let held = theirs.lease("test", LONG, Claim::IfFree).await;
    rule.check(matches!(held, Err(Error::Held { .. })), held);

    let taken = rule.ok(theirs.lease("test", LONG, Claim::TakeOver).await);
    is_fenced(rule, append(&lease, "late").await);
    is_fenced(rule, lease.renew().await);
    rule.ok(append(&taken, "second").await);
    is_fenced(rule, append(&lease, "later").await);
    said(rule, [&ours, &theirs], &["first", "second"]).await;
}

/// A driver that falls silent, and wakes up when another has taken its place.
pub(super) async fn lapsed<B: Backend + 'static>(one: B, other: B) {
    let rule = Rule("a driver that falls silent is followed by another, and is refused when it wakes up");
    let (ours, theirs) = two_sides(rule, one, other).await;
    let lease = rule.ok(ours.lease("test", SHORT, Claim::IfFree).await);
    rule.ok(append(&lease, "first").await);
    // Only what it sees itself counts: no clock of another machine.
    rule.check(rule.ok(theirs.driver().await).is_some(), "nobody");
    thread::sleep(SHORT + SHORT / 3);
    let next = rule.ok(theirs.lease("test", LONG, Claim::IfFree).await);
    rule.ok(append(&next, "second").await);
    is_fenced(rule, append(&lease, "late").await);
    is_fenced(rule, lease.renew().await);
    said(rule, [&ours, &theirs], &["first", "second"]).await;
}

/// Many who want to drive at the same moment.
pub(super) async fn contended<B: Backend + 'static>(one: B, other: B) {
    let rule = Rule("of many who want to drive a session at once, one does");
    let (ours, theirs) = two_sides(rule, one, other).await;
    let claims = together(8, |thread| {
        let session = if thread % 2 == 0 { &ours } else { &theirs };
        pollster::block_on(session.lease("test", LONG, Claim::IfFree)).map(|lease| (thread, lease))
    });
    let won: Vec<_> = claims.iter().flatten().collect();
    rule.check(won.len() == 1, &claims);
    for (thread, lease) in won {
        rule.ok(append(lease, &format!("from-{thread}")).await);
    }
}

/// One session, as two processes have it open.
async fn two_sides<B: Backend + 'static>(rule: Rule, one: B, other: B) -> (Session, Session) {
    let [one, other] = [one, other].map(|backend| Store::new(backend, Options::default()));
    let ours = rule.ok(one.create(NewSession::default()).await);
    let theirs = rule.ok(other.open(ours.id()).await);
    (ours, theirs)
}

async fn append(lease: &Lease, id: &str) -> Result<()> {
    let entry = Entry::parse(format!(r#"{{"uuid":"{id}","role":"user","content":"{id}"}}"#))?;
    lease.session().append(entry).await?.await.map(drop)
}

#[track_caller]
fn is_fenced<T: std::fmt::Debug>(rule: Rule, answer: Result<T>) {
    rule.check(matches!(answer, Err(Error::Fenced { .. })), answer);
}

async fn said(rule: Rule, sides: [&Session; 2], expected: &[&str]) {
    for session in sides {
        let history = rule.ok(session.messages().await);
        let said: Vec<&str> = history.entries().map(|entry| entry.id().as_str()).collect();
        rule.same(said, expected.to_vec());
    }
}
