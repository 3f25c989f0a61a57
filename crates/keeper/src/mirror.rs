//! Sessions that the official SDKs keep in this keeper's store: what they append is kept line by line, as it came.

mod key;
mod named;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use jiff::Timestamp;
use rethread_store::backend::{Expect, From, Key, LogKey, LogName, Position, Space, Target};
use rethread_store::{Entry, Error, Kind, NewSession, Result, Session, SessionId, Store};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

pub(crate) use key::MirrorKey;
pub(crate) use named::{Named, is_batch, named};

/// Under this name a session says whose it is.
const WHOSE: &str = "session_store";
/// How much is written as one group: whoever reads takes whole ones.
const GROUP: usize = 1 << 20;
/// How much is read at once.
const PAGE: usize = 8 << 20;
/// How many names are listed at once.
const LISTED: usize = 512;
/// How many sessions are remembered to be there.
const KNOWN: usize = 10_000;
/// The longest keys that are remembered: theirs have no end.
const SHORT: usize = 4096;
/// How often a session is begun anew that somebody removes at the same time.
const ATTEMPTS: usize = 5;

/// The sessions of the SDKs.
#[derive(Debug)]
pub(crate) struct Mirror {
    store: Store,
    /// Sessions that were there, and whose they are.
    known: Mutex<HashMap<SessionId, (MirrorKey, Session)>>,
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MirrorError {
    /// The session's name is taken by something else.
    #[error("session {0} is not the SDKs'")]
    Foreign(SessionId),
    /// The session was removed and begun again.
    #[error("the session was begun again since")]
    BegunAgain,
    /// The store does not take it now.
    #[error("the store did not take it in time; it may yet")]
    Slow,
    /// The store refused.
    #[error(transparent)]
    Store(#[from] Error),
}

/// One session in a list.
#[derive(Debug)]
pub(crate) struct MirroredSession {
    pub(crate) id: SessionId,
    pub(crate) session_id: String,
    pub(crate) modified: Timestamp,
    /// Changes whenever the session does.
    pub(crate) version: String,
}

/// Part of a session.
#[derive(Debug)]
pub(crate) struct MirroredPage {
    pub(crate) entries: Vec<Bytes>,
    /// Where to go on.
    pub(crate) next: Position,
    pub(crate) more: bool,
    /// Which beginning of the session this is of: one that was removed and begun again has another.
    pub(crate) log: String,
    /// The session's version before it was read.
    pub(crate) version: String,
    /// How many entries could not be read.
    pub(crate) lost: u64,
}

/// What an SDK made of a session's entries up to a position. It is the SDK's own, and nothing here looks into it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) log: String,
    pub(crate) position: Position,
    pub(crate) version: String,
    pub(crate) data: Box<RawValue>,
}

impl Mirror {
    pub(crate) fn new(store: Store) -> Self {
        Self { store, known: Mutex::default() }
    }

    /// Adds the entries that are not there yet. Returns how many those are.
    pub(crate) async fn append(
        &self,
        key: &MirrorKey,
        entries: Vec<Named>,
    ) -> std::result::Result<u64, MirrorError> {
        let cwd = entries.iter().find_map(|named| named.cwd.clone());
        let entries: Vec<Entry> = entries.into_iter().map(|named| named.entry).collect();
        for _ in 0..ATTEMPTS {
            let session = self.open_or_begin(key, cwd.as_deref()).await?;
            match append(&session, &entries).await {
                // Somebody removed it meanwhile, so it begins again.
                Err(Error::Gone(_) | Error::SessionNotFound(_)) => self.forget(session.id()),
                added => return Ok(added?),
            }
        }
        Err(Error::Contended(key.id().to_string()).into())
    }

    /// Reads entries from a position on; `None` if there is no such session.
    pub(crate) async fn load(
        &self,
        key: &MirrorKey,
        after: Position,
        log: Option<&str>,
    ) -> std::result::Result<Option<MirroredPage>, MirrorError> {
        let id = key.id();
        if after == 0 && self.find(key).await?.is_none_or(|entries| entries == 0) {
            return Ok(None);
        }
        let version = self.version(&id).await?;
        let Some(birth) = self.birth(&id).await? else { return Ok(None) };
        if log.is_some_and(|log| log != birth) {
            return Err(MirrorError::BegunAgain);
        }
        let messages = LogKey::new(id, LogName::Messages);
        let chunk = self.store.backend().read(&messages, From::Position(after), PAGE).await?;
        let more = chunk.next != after && self.store.backend().changed(&messages, chunk.next).await?;
        let is_entry = |line: &&rethread_store::Line| line.stamp().kind == Kind::Entry;
        Ok(Some(MirroredPage {
            entries: chunk.lines.iter().filter(is_entry).map(rethread_store::Line::body).collect(),
            lost: chunk.damage.iter().map(|damage| damage.lost.end - damage.lost.start).sum(),
            next: chunk.next,
            more,
            log: birth,
            version,
        }))
    }

    /// Lists the sessions of a project.
    pub(crate) async fn sessions(&self, namespace: &str, project_key: &str) -> Result<Vec<MirroredSession>> {
        let prefix = key::sessions(namespace, project_key);
        let mut sessions = Vec::new();
        for (id, modified, version) in self.list(&prefix).await? {
            let session_id = match key::plain(&id.as_str()[prefix.len()..]) {
                Some(plain) => plain.to_owned(),
                // Somebody may remove it while it is looked at.
                None => match self.whose(&id).await? {
                    Some((key, _)) => key.session_id,
                    None => continue,
                },
            };
            sessions.push(MirroredSession { id, session_id, modified, version });
        }
        Ok(sessions)
    }

    /// Lists what there is beneath a session.
    pub(crate) async fn subkeys(&self, key: &MirrorKey) -> Result<Vec<String>> {
        let mut subkeys = Vec::new();
        for (id, ..) in self.list(&key.subkeys()).await? {
            subkeys.extend(self.whose(&id).await?.and_then(|(key, _)| key.subpath));
        }
        Ok(subkeys)
    }

    /// Removes a session for good, with all there is beneath it. Returns how many there were.
    pub(crate) async fn delete(&self, key: &MirrorKey) -> Result<u64> {
        let mut doomed = vec![key.id()];
        if key.subpath.is_none() {
            // First, so that nothing is left over without its session.
            let beneath = self.list(&key.subkeys()).await?;
            doomed.splice(0..0, beneath.into_iter().map(|(id, ..)| id));
        }
        let mut removed = 0;
        for id in doomed {
            self.forget(&id);
            removed += u64::from(self.store.purge(&id).await?);
        }
        Ok(removed)
    }

    /// Returns what an SDK made of a session, if it did.
    pub(crate) async fn summary(&self, id: &SessionId, format: &str) -> Result<Option<Summary>> {
        let document = self.store.backend().get(&summary_key(id, format)?).await?;
        // One that cannot be read is made again.
        Ok(document.and_then(|document| serde_json::from_slice(&document.bytes).ok()))
    }

    /// Keeps what an SDK made of a session. It follows from the log: one that is lost is made again.
    pub(crate) async fn summarize(
        &self,
        key: &MirrorKey,
        format: &str,
        summary: &Summary,
    ) -> std::result::Result<(), MirrorError> {
        let (id, backend) = (key.id(), self.store.backend());
        let is_of_it = |birth: &Option<String>| birth.as_ref() == Some(&summary.log);
        if !is_of_it(&self.birth(&id).await?) {
            return Err(MirrorError::BegunAgain);
        }
        let document = summary_key(&id, format)?;
        backend.put(&document, &serde_json::to_vec(summary).unwrap_or_default(), Expect::Any).await?;
        // A document alone must not be taken for a session.
        if !is_of_it(&self.birth(&id).await?) {
            backend.remove(&Target::Document(document)).await?;
            return Err(MirrorError::BegunAgain);
        }
        Ok(())
    }

    /// Returns a session's handle, and begins the session if there is none.
    async fn open_or_begin(
        &self,
        key: &MirrorKey,
        cwd: Option<&str>,
    ) -> std::result::Result<Session, MirrorError> {
        let id = key.id();
        if let Some((known, session)) = self.known().get(&id).cloned() {
            return if known == *key { Ok(session) } else { Err(MirrorError::Foreign(id)) };
        }
        let session = match self.store.load(&id).await? {
            Some(session) => session,
            None => {
                let mut new = cwd.map_or_else(NewSession::default, NewSession::at).id(id.clone());
                new.child = key.subpath.is_some();
                let whose = serde_json::to_value(key).unwrap_or_default();
                new.extra.insert(WHOSE.into(), whose);
                match self.store.create(new).await {
                    // Somebody else was faster.
                    Err(Error::SessionExists(_)) => self.store.open(&id).await?,
                    created => created?,
                }
            }
        };
        match self.whose(&id).await? {
            Some((whose, _)) if whose == *key => {}
            _ => return Err(MirrorError::Foreign(id)),
        }
        if key.size() <= SHORT {
            let mut known = self.known();
            if known.len() >= KNOWN {
                known.clear();
            }
            known.insert(id, (key.clone(), session.clone()));
        }
        Ok(session)
    }

    /// Returns how many entries a session has; `None` if there is none, or none that may be seen.
    async fn find(&self, key: &MirrorKey) -> std::result::Result<Option<u64>, MirrorError> {
        let id = key.id();
        match self.whose(&id).await? {
            Some((whose, entries)) if whose == *key => Ok(Some(entries)),
            Some(_) => Err(MirrorError::Foreign(id)),
            // One that is there and cannot be read is an error, not an absent one.
            None => match self.store.load(&id).await {
                Ok(_) | Err(Error::Trashed(_)) => Ok(None),
                Err(error) => Err(error.into()),
            },
        }
    }

    /// Returns whose a session is, and how many entries it has; `None` if it is not there or in the trash.
    async fn whose(&self, id: &SessionId) -> Result<Option<(MirrorKey, u64)>> {
        let metadata = match self.store.metadata(id).await {
            Err(Error::SessionNotFound(_)) => return Ok(None),
            metadata => metadata?,
        };
        let whose = metadata.extra.get(WHOSE).cloned().unwrap_or_default();
        let whose = serde_json::from_value(whose).ok().filter(|_| metadata.trashed_at.is_none());
        Ok(whose.map(|whose| (whose, metadata.entry_count)))
    }

    /// Lists the sessions whose names begin with a text: when they changed, and their version.
    async fn list(&self, prefix: &str) -> Result<Vec<(SessionId, Timestamp, String)>> {
        let (mut found, mut after) = (Vec::new(), prefix.to_owned());
        loop {
            let page = self.store.backend().list(Space::Sessions, Some(&after), LISTED).await?;
            let whole = page.len() == LISTED;
            for listed in page {
                if !listed.name.starts_with(prefix) {
                    return Ok(found);
                }
                after.clone_from(&listed.name);
                if let Ok(id) = listed.name.parse() {
                    found.push((id, listed.modified, listed.change));
                }
            }
            if !whole {
                return Ok(found);
            }
        }
    }

    async fn version(&self, id: &SessionId) -> Result<String> {
        Ok(self.store.backend().stat(id).await?.map(|listed| listed.change).unwrap_or_default())
    }

    /// Returns the name of a session's first record.
    async fn birth(&self, id: &SessionId) -> Result<Option<String>> {
        let messages = LogKey::new(id.clone(), LogName::Messages);
        let chunk = self.store.backend().read(&messages, From::Position(0), 1).await?;
        Ok(chunk.lines.first().map(|line| line.stamp().id.to_string()))
    }

    fn forget(&self, id: &SessionId) {
        self.known().remove(id);
    }

    fn known(&self) -> MutexGuard<'_, HashMap<SessionId, (MirrorKey, Session)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds entries in their order, in groups, and waits for all of them.
async fn append(session: &Session, entries: &[Entry]) -> Result<u64> {
    let (mut tickets, mut from) = (Vec::new(), 0);
    while from < entries.len() {
        let mut size = 0;
        let fits = |entry: &&Entry| {
            size += entry.as_bytes().len();
            size <= GROUP
        };
        let count = entries[from..].iter().take_while(fits).count().max(1);
        tickets.push(session.append_new(entries[from..from + count].to_vec()).await?);
        from += count;
    }
    let mut added = 0;
    for ticket in tickets {
        added += ticket.await?.records.len() as u64;
    }
    Ok(added)
}

fn summary_key(id: &SessionId, format: &str) -> Result<Key> {
    Key::session(id.clone(), &format!("summary-{format}"))
}
