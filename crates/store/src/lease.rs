//! Who drives a session: sends prompts to a live agent. Appending is open to all; driving is for one at a time.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::backend::{Document, Expect, Key, Put, Version};
use crate::error::{Error, Result};
use crate::note::Note;
use crate::session::Session;
use crate::writer::Draft;

/// A process that holds something: a lock or a lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: Timestamp,
    /// What it does, for people.
    pub what: String,
    /// Which processes its number is one of, where that can be told: names of machines are not one of a kind, and
    /// containers of one machine may share one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub realm: Option<String>,
}

impl Holder {
    /// Returns this process as a holder, from now on.
    pub fn this_process(what: &str) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { host, pid: std::process::id(), since: Timestamp::now(), what: what.to_owned(), realm: realm() }
    }

    /// Returns whether the process is known to be dead: only one on this machine, whose number means something here, can
    /// be.
    fn is_dead(&self) -> bool {
        let here = rustix::system::uname().nodename().to_string_lossy() == self.host && realm() == self.realm;
        let pid = i32::try_from(self.pid).ok().and_then(rustix::process::Pid::from_raw);
        here && pid.is_none_or(|pid| {
            matches!(rustix::process::test_kill_process(pid), Err(error) if error == rustix::io::Errno::SRCH)
        })
    }
}

/// Returns which processes can be told from each other by their numbers here: those of one start of a machine, in one
/// namespace.
fn realm() -> Option<String> {
    let start = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", start.trim(), namespace.display()))
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.since.strftime("%Y-%m-%dT%H:%M:%SZ");
        write!(f, "process {} on {} since {since}", self.pid, self.host)
    }
}

/// The right to drive a session. It lapses unless it is renewed; [`release`](Lease::release) gives it back at once.
///
/// Whoever takes over leaves a fence in the log: what the former driver sends through its
/// [`session`](Lease::session) from then on is refused, however late it wakes up.
#[derive(Debug)]
pub struct Lease {
    session: Session,
    state: Mutex<(LeaseDocument, Version)>,
}

/// How to get hold of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// Only if nobody drives it.
    IfFree,
    /// Even from somebody who does.
    TakeOver,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct LeaseDocument {
    holder: Holder,
    nonce: String,
    ttl_ms: u64,
    /// Makes every renewal a new version, which is how others see that the holder lives.
    renewals: u64,
    released: bool,
    /// Counts those who drove the session: a fence that arrives late does not undo a later one.
    #[serde(default)]
    epoch: u64,
}

/// When this process first saw a lease in its present state: the only clock that judges it.
pub(crate) type Sightings = Mutex<std::collections::HashMap<crate::SessionId, (Version, Instant)>>;

impl Session {
    /// Becomes the one who drives this session, for as long as the lease is renewed within `ttl`.
    ///
    /// [`Error::Held`] says who drives it now; then watch, fork, or take over.
    pub async fn lease(&self, what: &str, ttl: Duration, claim: Claim) -> Result<Lease> {
        let key = Key::lease(&self.id);
        let document = LeaseDocument {
            holder: Holder::this_process(what),
            nonce: uuid::Uuid::new_v4().simple().to_string(),
            ttl_ms: u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX),
            renewals: 0,
            released: false,
            epoch: 0,
        };
        let current = self.store.inner.backend.get(&key).await?;
        let former = current.as_ref().and_then(|current| read(&current.bytes)).map_or(0, |lease| lease.epoch);
        let document = LeaseDocument { epoch: former.saturating_add(1), ..document };
        if let Some(holder) = current.as_ref().and_then(|current| self.live_holder(current))
            && claim == Claim::IfFree
        {
            return Err(Error::Held { session: self.id.clone(), holder: Box::new(holder) });
        }
        let expect = current.map_or(Expect::Absent, |current| Expect::Version(current.version));
        let version = match self.store.inner.backend.put(&key, &bytes(&document), expect).await? {
            Put::Done(version) => version,
            Put::Conflict(winner) => return Err(self.lost_to(winner.as_ref())),
        };
        let fence = Note::Fence {
            at: Timestamp::now(),
            nonce: document.nonce.clone(),
            holder: document.holder.clone(),
            epoch: document.epoch,
        };
        let session = Session { nonce: Some(Arc::from(document.nonce.as_str())), ..self.clone() };
        let lease = Lease { session, state: Mutex::new((document, version)) };
        if let Err(error) = self.note(Draft::Note(fence)).await {
            // Nobody must wait for a lease that nobody holds; if this fails too, it lapses.
            let _ = lease.release().await;
            return Err(error);
        }
        // Somebody may have taken over before the fence was in; then this says so.
        lease.renew().await?;
        Ok(lease)
    }

    /// Returns who drives this session, if anybody does.
    pub async fn driver(&self) -> Result<Option<Holder>> {
        let document = self.store.inner.backend.get(&Key::lease(&self.id)).await?;
        Ok(document.as_ref().and_then(|document| self.live_holder(document)))
    }

    /// Returns a lease's holder unless it was released, has died, or has not moved for its whole time to live.
    fn live_holder(&self, document: &Document) -> Option<Holder> {
        let lease = read(&document.bytes)?;
        if lease.released || lease.holder.is_dead() {
            return None;
        }
        let mut sightings = self.store.inner.sightings.lock().unwrap_or_else(PoisonError::into_inner);
        let seen =
            sightings.entry(self.id.clone()).or_insert_with(|| (document.version.clone(), Instant::now()));
        if seen.0 != document.version {
            *seen = (document.version.clone(), Instant::now());
        }
        (seen.1.elapsed() <= Duration::from_millis(lease.ttl_ms)).then_some(lease.holder)
    }

    fn lost_to(&self, winner: Option<&Document>) -> Error {
        let lease = winner.and_then(|winner| read(&winner.bytes));
        let session = self.id.clone();
        match lease {
            Some(lease) => Error::Held { session, holder: Box::new(lease.holder) },
            None => Error::Contended(format!("the lease of session {session}")),
        }
    }
}

impl Lease {
    /// Returns the driver's handle: what it appends is refused as soon as somebody else has taken over.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Keeps the lease alive. [`Error::Fenced`] says who took over.
    pub async fn renew(&self) -> Result<()> {
        self.replace(|lease| lease.renewals += 1).await
    }

    /// Gives the lease back. A renewal that is still on its way does not take it again.
    pub async fn release(&self) -> Result<()> {
        self.replace(|lease| lease.released = true).await
    }

    async fn replace(&self, change: impl Fn(&mut LeaseDocument)) -> Result<()> {
        let (key, backend) = (Key::lease(&self.session.id), &self.session.store.inner.backend);
        loop {
            let (mut document, version) = self.state.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let nonce = document.nonce.clone();
            change(&mut document);
            let winner = match backend.put(&key, &bytes(&document), Expect::Version(version.clone())).await? {
                Put::Done(version) => {
                    *self.state.lock().unwrap_or_else(PoisonError::into_inner) = (document, version);
                    return Ok(());
                }
                Put::Conflict(winner) => winner,
            };
            let ours =
                winner.as_ref().and_then(|winner| Some((read(&winner.bytes)?, winner.version.clone())));
            match ours.filter(|(lease, found)| lease.nonce == nonce && *found != version) {
                // An earlier try had got through after all, though it ended with an error.
                Some(ours) => *self.state.lock().unwrap_or_else(PoisonError::into_inner) = ours,
                None => {
                    return Err(match self.session.lost_to(winner.as_ref()) {
                        Error::Held { session, holder } => Error::Fenced { session, holder },
                        error => error,
                    });
                }
            }
        }
    }
}

fn read(bytes: &[u8]) -> Option<LeaseDocument> {
    serde_json::from_slice(bytes).ok()
}

fn bytes(document: &LeaseDocument) -> Vec<u8> {
    serde_json::to_vec(document).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_of_another_machine_with_the_same_name_is_not_taken_for_dead() {
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        gone.wait().unwrap();
        let holder = Holder { pid: gone.id(), ..Holder::this_process("drives") };
        assert!(holder.is_dead());
        let elsewhere = Holder { realm: Some("another start pid:[4026531836]".into()), ..holder };
        assert!(!elsewhere.is_dead());
    }
}
