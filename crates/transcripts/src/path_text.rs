//! Paths in JSON, which knows text only, and a path need not be that.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

/// Writes a path for somebody to read: what is no text in it is replaced.
pub(crate) fn readable<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    path.to_string_lossy().serialize(serializer)
}

/// The same for a path that may be missing.
pub(crate) fn readable_if_any<S: Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

/// Writes a path such that it can be found again: its bytes, if it is no text.
pub(crate) fn serialize<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    match path.to_str() {
        Some(text) => text.serialize(serializer),
        None => path.as_os_str().as_bytes().serialize(serializer),
    }
}

/// Reads a path that was written so.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<PathBuf, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Text(PathBuf),
        Bytes(Vec<u8>),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Text(path) => path,
        Either::Bytes(bytes) => OsString::from_vec(bytes).into(),
    })
}
