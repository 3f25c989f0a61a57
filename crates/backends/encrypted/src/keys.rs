//! The keys of sessions, each wrapped by the master key in a document of the store.
//!
//! A fork also wraps its parent's key by its own: what it inherits stays readable for it, whatever becomes of the
//! parent's key.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64_simd::STANDARD;
use jiff::Timestamp;
use rethread_store::backend::{Backend, Document, Expect, Key, Listed, LogName, Put, Space, Target};
use rethread_store::{BlobId, Error, Result, SessionId};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::seal::Secret;

/// Where the keys are, among the documents of the store.
pub(crate) const FOLDER: &str = "keys/";
/// A name that no key has.
const NO_KEY: &str = "keys/none";

/// The keys of sessions.
#[derive(Debug)]
pub(crate) struct Keys {
    wrapping: Secret,
    known: Mutex<HashMap<SessionId, Held>>,
    /// What forks have of their parents' keys: used where a parent has none of its own any more.
    inherited: Mutex<HashMap<SessionId, Arc<SessionKey>>>,
}

/// A session's key.
#[derive(Debug)]
pub(crate) struct SessionKey {
    secret: Secret,
    /// What follows from it for each log.
    logs: [Secret; LogName::ALL.len()],
}

impl SessionKey {
    fn new(secret: Secret) -> Self {
        let logs = LogName::ALL.map(|log| secret.derived(&[b"log", log.as_str().as_bytes()]));
        Self { secret, logs }
    }

    /// Returns the key of a log.
    pub(crate) fn of(&self, log: LogName) -> &Secret {
        &self.logs[log as usize]
    }
}

/// For how long a key is written with before it is looked at again: the session may be another one of that id by then.
/// Whoever removes a session waits as long before its log goes, so that nobody adds to the next one with the key of the
/// last.
const FRESH: Duration = Duration::from_millis(100);
/// How old what is left of a key has to be before it is cleared away.
const ABANDONED: Duration = Duration::from_secs(3600);
/// How often a key that somebody else changes at the same time is tried again.
const TRIES: usize = 16;

/// A session's key as it is stored.
#[derive(Clone, Serialize, Deserialize)]
struct Wrapped {
    version: u32,
    /// `None`: it was erased. That there was one stays for as long as its session is there, so that nobody takes what was
    /// erased for something damaged, and then for a while: to take the document away could take the next one's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The session is being removed: what there is of it can be read, and nothing is added. Without a key it is gone, and
    /// whatever turns up under its id, such as a cache that was on its way, is nothing that was erased.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    leaving: bool,
    /// Stays when the key is erased: only forks of this session, which have its key, can open it, and they inherit through
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<WrappedParent>,
}

impl Wrapped {
    const ERASED: Self = Self { version: 1, key: None, leaving: false, parent: None };
    const GONE: Self = Self { leaving: true, ..Self::ERASED };

    fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(|error| Error::BadEntry(error.to_string()))
    }
}

#[derive(Clone, Serialize, Deserialize)]
struct WrappedParent {
    session: SessionId,
    key: String,
}

/// What was found in a key's place.
struct Found {
    /// `None`: there is none, or none any more.
    key: Option<(Arc<SessionKey>, Wrapped)>,
    /// There was one, and its session was not removed since.
    is_erased: bool,
    /// What has to be expected to replace it.
    expect: Expect,
}

impl Found {
    fn is_leaving(&self) -> bool {
        self.key.as_ref().is_some_and(|(_, wrapped)| wrapped.leaving)
    }
}

/// A key to write with, and since when that is known.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) key: Arc<SessionKey>,
    looked_at: Instant,
    /// It is known to be durable.
    is_settled: bool,
}

impl Keys {
    pub(crate) fn new(wrapping: Secret) -> Self {
        Self { wrapping, known: Mutex::default(), inherited: Mutex::default() }
    }

    /// Returns a session's key, if it has one, or a fork of it has it.
    pub(crate) async fn find(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
    ) -> Result<Option<Arc<SessionKey>>> {
        let known = self.known().get(session).map(|known| known.key.clone());
        match known {
            Some(known) => Ok(Some(known)),
            None => self.look(inner, session).await,
        }
    }

    /// Does the same, whatever is remembered: the session may have been removed and begun again.
    pub(crate) async fn look(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
    ) -> Result<Option<Arc<SessionKey>>> {
        let own = self.own(inner, session).await?.key.map(|(key, _)| key);
        Ok(own.or_else(|| lock(&self.inherited).get(session).cloned()))
    }

    /// Returns a session's own key to write with. One that was looked at a while ago is looked at again.
    pub(crate) async fn to_write(&self, inner: &dyn Backend, session: &SessionId) -> Result<Option<Held>> {
        let known = self.known().get(session).cloned();
        if let Some(known) = known.filter(|known| known.looked_at.elapsed() < FRESH) {
            return Ok(Some(known));
        }
        match self.own(inner, session).await? {
            found if found.is_leaving() => Err(Error::Gone(session.clone())),
            _ => Ok(self.known().get(session).cloned()),
        }
    }

    /// Makes sure, after something was written with a key, that it was not written into another session of that id. Who
    /// was quick about it knows.
    pub(crate) async fn confirm(&self, inner: &dyn Backend, session: &SessionId, held: &Held) -> Result<()> {
        if held.looked_at.elapsed() < FRESH {
            return Ok(());
        }
        match self.own(inner, session).await? {
            Found { key: Some((key, _)), .. } if key.secret.bytes() != held.key.secret.bytes() => {
                Err(Error::Gone(session.clone()))
            }
            Found { is_erased: true, .. } => Err(Error::Erased(session.clone())),
            _ => Ok(()),
        }
    }

    /// Returns whether a session is there whose key was erased.
    pub(crate) async fn is_erased(&self, inner: &dyn Backend, session: &SessionId) -> Result<bool> {
        Ok(self.own(inner, session).await?.is_erased && inner.stat(session).await?.is_some())
    }

    async fn own(&self, inner: &dyn Backend, session: &SessionId) -> Result<Found> {
        let looked_at = Instant::now();
        let Some(Document { version, bytes }) = inner.get(&document(session)?).await? else {
            self.known().remove(session);
            return Ok(Found { key: None, is_erased: false, expect: Expect::Absent });
        };
        let wrapped = read(session, &bytes)?;
        let is_erased = wrapped.key.is_none() && !wrapped.leaving;
        let key = self.take(session, wrapped)?;
        match &key {
            Some((key, wrapped)) if !wrapped.leaving => {
                let mut known = self.known();
                let is_same = |held: &Held| held.key.secret.bytes() == key.secret.bytes();
                let is_settled = known.get(session).is_some_and(|held| held.is_settled && is_same(held));
                known.insert(session.clone(), Held { key: key.clone(), looked_at, is_settled });
            }
            _ => drop(self.known().remove(session)),
        }
        Ok(Found { is_erased, key, expect: Expect::Version(version) })
    }

    /// Puts a key back that was cleared away while it was written with.
    pub(crate) async fn keep(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
        key: &SessionKey,
    ) -> Result<()> {
        if inner.get(&document(session)?).await?.is_none() {
            let key = Some(wrap(&self.wrapping, session, &key.secret)?);
            let wrapped = Wrapped { key, ..Wrapped::ERASED };
            inner.put(&document(session)?, &wrapped.to_bytes()?, Expect::Absent).await?;
        }
        Ok(())
    }

    /// Returns the key to begin a log with, and makes one if the session has none.
    pub(crate) async fn make(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Held> {
        for _ in 0..TRIES {
            let found = self.own(inner, session).await?;
            let known = self.known().get(session).cloned();
            if let Some(held) = known.filter(|held| held.is_settled) {
                return Ok(held);
            }
            let is_leaving = found.is_leaving();
            let wrapped = match found.key {
                // Whoever made it may have died before it was durable, and records must not outlive their key.
                Some((_, wrapped)) if !is_leaving => wrapped,
                // What is being removed must stay readable until it is.
                Some(_) if inner.stat(session).await?.is_some() => return Err(Error::Gone(session.clone())),
                // Another key would not open what there is, and make it look damaged.
                None if found.is_erased && inner.stat(session).await?.is_some() => {
                    return Err(Error::Erased(session.clone()));
                }
                _ => self.fresh(inner, session, parent).await?,
            };
            let bytes = wrapped.to_bytes()?;
            let looked_at = Instant::now();
            // If somebody else was faster, theirs is the key.
            if let Put::Done(_) = inner.put(&document(session)?, &bytes, found.expect).await?
                && let Some((key, _)) = self.take(session, wrapped)?
            {
                let held = Held { key, looked_at, is_settled: true };
                self.known().insert(session.clone(), held.clone());
                return Ok(held);
            }
        }
        Err(contended(session))
    }

    async fn fresh(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Wrapped> {
        let secret = Secret::random()?;
        let key = Some(wrap(&self.wrapping, session, &secret)?);
        let inherited = match parent {
            Some(parent) => self.find(inner, parent).await?.map(|key| (parent, key)),
            None => None,
        };
        let inherited = inherited.map(|(parent, key)| {
            let key = wrap(&secret, parent, &key.secret)?;
            Ok::<_, Error>(WrappedParent { session: parent.clone(), key })
        });
        Ok(Wrapped { key, parent: inherited.transpose()?, ..Wrapped::ERASED })
    }

    /// Says of a session that it is being removed, and waits until nobody adds to it any more.
    pub(crate) async fn leave(&self, inner: &dyn Backend, session: &SessionId) -> Result<()> {
        for _ in 0..TRIES {
            let Found { key, expect, .. } = self.own(inner, session).await?;
            let Some((_, wrapped)) = key else { return Ok(()) };
            let leaving = Wrapped { leaving: true, ..wrapped.clone() }.to_bytes()?;
            if wrapped.leaving
                || matches!(inner.put(&document(session)?, &leaving, expect).await?, Put::Done(_))
            {
                self.known().remove(session);
                std::thread::sleep(FRESH);
                return Ok(());
            }
        }
        Err(contended(session))
    }

    /// Removes a session's key for good. Returns whether there was one.
    pub(crate) async fn erase(&self, inner: &dyn Backend, session: &SessionId, which: Which) -> Result<bool> {
        for _ in 0..TRIES {
            let Found { key, expect, is_erased } = self.own(inner, session).await?;
            let was_there = key.is_some();
            let left = match (which, key) {
                (Which::Any, Some((_, wrapped))) => Wrapped { parent: wrapped.parent, ..Wrapped::ERASED },
                (Which::Leaving, Some((_, wrapped))) if wrapped.leaving => Wrapped::GONE,
                // What was erased is gone now, too.
                (Which::Leaving, None) if is_erased => Wrapped::GONE,
                _ => return Ok(false),
            };
            let put = inner.put(&document(session)?, &left.to_bytes()?, expect).await?;
            if matches!(put, Put::Done(_)) {
                self.known().remove(session);
                return Ok(was_there);
            }
        }
        Err(contended(session))
    }

    /// Takes a session's key away from whoever inherited it. Returns from how many.
    pub(crate) async fn disinherit(&self, inner: &dyn Backend, parent: &SessionId) -> Result<u64> {
        let mut changed = 0;
        for listed in inner.list(Space::Documents, None, usize::MAX).await? {
            if listed.name.starts_with(FOLDER) {
                changed += u64::from(self.disinherit_one(inner, &listed.name.parse()?, parent).await?);
            }
        }
        lock(&self.inherited).remove(parent);
        Ok(changed)
    }

    async fn disinherit_one(&self, inner: &dyn Backend, key: &Key, parent: &SessionId) -> Result<bool> {
        for _ in 0..TRIES {
            let Some(Document { version, bytes }) = inner.get(key).await? else { return Ok(false) };
            let damaged = |error: serde_json::Error| Error::Damaged {
                what: key.to_string(),
                reason: error.to_string(),
            };
            let mut wrapped: Wrapped = serde_json::from_slice(&bytes).map_err(damaged)?;
            if wrapped.parent.take_if(|held| held.session == *parent).is_none() {
                return Ok(false);
            }
            if let Put::Done(_) = inner.put(key, &wrapped.to_bytes()?, Expect::Version(version)).await? {
                return Ok(true);
            }
        }
        Err(Error::Contended(key.to_string()))
    }

    /// Has a place give up what it may still hold of documents that were replaced, such as a write-ahead log. Replacing one
    /// does not do that, since it happens all the time; removing one does, even one that is not there.
    pub(crate) async fn forget_replaced(&self, inner: &dyn Backend) -> Result<()> {
        inner.remove(&Target::Document(Key::store(NO_KEY)?)).await.map(drop)
    }

    /// Clears away what is left of keys whose sessions are not there. Returns how many.
    pub(crate) async fn sweep(&self, inner: &dyn Backend) -> Result<u64> {
        let sessions = inner.list(Space::Sessions, None, usize::MAX).await?;
        let there: HashSet<String> = sessions.iter().map(|session| name(&session.name)).collect();
        let is_old = |listed: &Listed| {
            let age = Timestamp::now().duration_since(listed.modified);
            age.is_positive() && age.unsigned_abs() > ABANDONED
        };
        let mut swept = 0;
        for listed in inner.list(Space::Documents, None, usize::MAX).await? {
            if listed.name.starts_with(FOLDER) && !there.contains(&listed.name) && is_old(&listed) {
                swept += u64::from(inner.remove(&Target::Document(listed.name.parse()?)).await?);
            }
        }
        Ok(swept)
    }

    fn take(&self, session: &SessionId, wrapped: Wrapped) -> Result<Option<(Arc<SessionKey>, Wrapped)>> {
        let Some(key) = &wrapped.key else {
            let held = lock(&self.inherited).get(session).cloned();
            if let Some(held) = held {
                self.inherit(&held.secret, &wrapped);
            }
            return Ok(None);
        };
        let another = "it was wrapped by another master key, or is not as it was";
        let secret = unwrap(&self.wrapping, session, key).ok_or_else(|| damaged(session, another))?;
        self.inherit(&secret, &wrapped);
        Ok(Some((Arc::new(SessionKey::new(secret)), wrapped)))
    }

    /// Remembers a parent's key that is wrapped by one of its forks'.
    fn inherit(&self, secret: &Secret, wrapped: &Wrapped) {
        if let Some(parent) = &wrapped.parent
            && let Some(key) = unwrap(secret, &parent.session, &parent.key)
        {
            lock(&self.inherited).insert(parent.session.clone(), Arc::new(SessionKey::new(key)));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Held>> {
        lock(&self.known)
    }
}

/// Which keys are erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// Any.
    Any,
    /// Those of sessions that are being removed: the next one of that id has another.
    Leaving,
}

fn read(session: &SessionId, document: &[u8]) -> Result<Wrapped> {
    let wrapped: Wrapped =
        serde_json::from_slice(document).map_err(|error| damaged(session, &error.to_string()))?;
    match wrapped.version {
        1 => Ok(wrapped),
        newer => Err(Error::NewerFormat { found: format!("of keys {newer}"), known: 1 }),
    }
}

fn damaged(session: &SessionId, reason: &str) -> Error {
    Error::Damaged { what: format!("the key of session {session}"), reason: reason.to_owned() }
}

fn contended(session: &SessionId) -> Error {
    Error::Contended(format!("the key of session {session}"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns where a session's key is. Not among its own documents: it is there before them, and goes after them.
fn document(session: &SessionId) -> Result<Key> {
    Key::store(&name(session.as_str()))
}

fn name(session: &str) -> String {
    format!("{FOLDER}{}", BlobId::of(session.as_bytes()))
}

fn wrap(by: &Secret, session: &SessionId, secret: &Secret) -> Result<String> {
    Ok(STANDARD.encode_to_string(by.seal(secret.bytes(), session.as_str().as_bytes())?))
}

fn unwrap(by: &Secret, session: &SessionId, wrapped: &str) -> Option<Secret> {
    let opened =
        by.open(STANDARD.decode_to_vec(wrapped).ok()?, session.as_str().as_bytes()).map(Zeroizing::new)?;
    Some(Secret::new(Zeroizing::new(opened[..].try_into().ok()?)))
}
