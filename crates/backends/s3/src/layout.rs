//! What objects are called.
//!
//! `!` comes before every character of an id, so the bucket's order of names is the order of sessions.

use rethread_store::backend::{Key, LogKey};
use rethread_store::{BlobId, SessionId};

/// The layout that this program writes, and the newest that it reads.
pub(crate) const VERSION: u32 = 1;

/// The store's document about its format: its first line says that the place is ours, and in which layout. Whoever keeps
/// something else first makes one that says no more than that.
pub(crate) const MARKER: &str = "documents/format";

pub(crate) const SESSIONS: &str = "sessions/";
pub(crate) const DOCUMENTS: &str = "documents/";
pub(crate) const PARTS: &str = "parts/";
pub(crate) const BLOBS: &str = "blobs/";
pub(crate) const CONTENTS: &str = "contents/";

/// Returns what the names of a session's own objects begin with.
pub(crate) fn session(session: &SessionId) -> String {
    format!("{SESSIONS}{session}!")
}

/// Returns what the names of the parts of a session's logs begin with.
pub(crate) fn session_parts(session: &SessionId) -> String {
    format!("{PARTS}{session}!")
}

pub(crate) fn document(key: &Key) -> String {
    match key.owner() {
        Some(owner) => format!("{}{}", session(owner), key.name()),
        // No object is below another's name; and the order stays: a dot is next to a slash, and no name has one.
        None => format!("{DOCUMENTS}{}", key.name().replace('/', ".")),
    }
}

/// Returns the object that a log ends with.
pub(crate) fn tail(log: &LogKey) -> String {
    format!("{}{}.log", session(&log.session), log.name.as_str())
}

pub(crate) fn part(log: &LogKey, name: &str) -> String {
    format!("{}{}!{name}", session_parts(&log.session), log.name.as_str())
}

pub(crate) fn blob(blob: &BlobId) -> String {
    format!("{BLOBS}{blob}")
}

pub(crate) fn content(blob: &BlobId, name: &str) -> String {
    format!("{CONTENTS}{blob}!{name}")
}

/// Returns an object to try a server with, where there is nothing of ours yet.
pub(crate) fn tried() -> String {
    format!("tried!{}", fresh())
}

/// Returns a name that nothing ever had.
pub(crate) fn fresh() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
