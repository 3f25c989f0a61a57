//! The keys of sessions, each wrapped by the master key in a document of the store.
//!
//! A fork also wraps its parent's key by its own: what it inherits stays readable for it, whatever becomes of the
//! parent's key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64_simd::STANDARD;
use rethread_store::backend::{Backend, Expect, Key, Put, Target};
use rethread_store::{BlobId, Error, Result, SessionId};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::seal::Secret;

/// Where the keys are, among the documents of the store.
pub(crate) const FOLDER: &str = "keys/";

/// The keys of sessions.
#[derive(Debug)]
pub(crate) struct Keys {
    wrapping: Secret,
    known: Mutex<HashMap<SessionId, Arc<Secret>>>,
}

#[derive(Serialize, Deserialize)]
struct Wrapped {
    version: u32,
    key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<WrappedParent>,
}

#[derive(Serialize, Deserialize)]
struct WrappedParent {
    session: SessionId,
    key: String,
}

impl Keys {
    pub(crate) fn new(wrapping: Secret) -> Self {
        Self { wrapping, known: Mutex::default() }
    }

    /// Returns a session's key, if it has one.
    pub(crate) async fn find(&self, inner: &dyn Backend, session: &SessionId) -> Result<Option<Arc<Secret>>> {
        let known = self.known().get(session).cloned();
        match known {
            Some(known) => Ok(Some(known)),
            None => self.look(inner, session).await,
        }
    }

    /// Does the same, whatever is remembered: the session may have been removed and begun again.
    pub(crate) async fn look(&self, inner: &dyn Backend, session: &SessionId) -> Result<Option<Arc<Secret>>> {
        match inner.get(&document(session)?).await? {
            Some(document) => self.take(session, &document.bytes).map(Some),
            None => Ok(None),
        }
    }

    /// Returns a session's key, and makes one if it has none.
    pub(crate) async fn make(
        &self,
        inner: &dyn Backend,
        session: &SessionId,
        parent: Option<&SessionId>,
    ) -> Result<Arc<Secret>> {
        if let Some(there) = self.look(inner, session).await? {
            return Ok(there);
        }
        let secret = Secret::random()?;
        let key = wrap(&self.wrapping, session, &secret)?;
        let inherited = match parent {
            Some(parent) => self.find(inner, parent).await?.map(|key| (parent, key)),
            None => None,
        };
        let inherited = inherited.map(|(parent, key)| {
            Ok::<_, Error>(WrappedParent { session: parent.clone(), key: wrap(&secret, parent, &key)? })
        });
        let wrapped = Wrapped { version: 1, key, parent: inherited.transpose()? };
        let bytes = serde_json::to_vec(&wrapped).map_err(|error| Error::BadEntry(error.to_string()))?;
        let put = inner.put(&document(session)?, &bytes, Expect::Absent).await?;
        match put {
            Put::Done(_) => self.take(session, &bytes),
            // Somebody else was faster.
            Put::Conflict(Some(document)) => self.take(session, &document.bytes),
            Put::Conflict(None) => Err(Error::Contended(format!("the key of session {session}"))),
        }
    }

    /// Removes a session's key for good. Returns whether there was one.
    pub(crate) async fn erase(&self, inner: &dyn Backend, session: &SessionId) -> Result<bool> {
        self.known().remove(session);
        inner.remove(&Target::Document(document(session)?)).await
    }

    fn take(&self, session: &SessionId, document: &[u8]) -> Result<Arc<Secret>> {
        let damaged = |reason: &str| Error::Damaged {
            what: format!("the key of session {session}"),
            reason: reason.to_owned(),
        };
        let wrapped: Wrapped =
            serde_json::from_slice(document).map_err(|error| damaged(&error.to_string()))?;
        if wrapped.version != 1 {
            return Err(Error::NewerFormat { found: format!("of keys {}", wrapped.version), known: 1 });
        }
        let another = "it was wrapped by another master key";
        let secret = Arc::new(unwrap(&self.wrapping, session, &wrapped.key).ok_or_else(|| damaged(another))?);
        let mut known = self.known();
        if let Some(parent) = wrapped.parent
            && let Some(key) = unwrap(&secret, &parent.session, &parent.key)
        {
            known.entry(parent.session).or_insert_with(|| Arc::new(key));
        }
        known.insert(session.clone(), secret.clone());
        Ok(secret)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Secret>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns where a session's key is. Not among its own documents: it is there before them, and goes after them.
fn document(session: &SessionId) -> Result<Key> {
    Key::store(&format!("{FOLDER}{}", BlobId::of(session.as_str().as_bytes())))
}

fn wrap(by: &Secret, session: &SessionId, secret: &Secret) -> Result<String> {
    Ok(STANDARD.encode_to_string(by.seal(secret.bytes(), session.as_str().as_bytes())?))
}

fn unwrap(by: &Secret, session: &SessionId, wrapped: &str) -> Option<Secret> {
    let opened =
        by.open(STANDARD.decode_to_vec(wrapped).ok()?, session.as_str().as_bytes()).map(Zeroizing::new)?;
    Some(Secret::new(Zeroizing::new(opened[..].try_into().ok()?)))
}
