//! Names that are safe by construction: parsed once at the edge, never a bare string inside.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use twox_hash::XxHash3_64;
use uuid::Uuid;

use crate::error::Error;

/// A session's name: 1 to 128 of `[A-Za-z0-9._-]`, no leading dot, so that it is safe as a file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Returns a new id, ordered by time of creation.
    pub fn generate() -> Self {
        Self(Uuid::now_v7().to_string().into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let safe = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if (1..=128).contains(&text.len()) && !text.starts_with('.') && text.bytes().all(safe) {
            Ok(Self(text.into()))
        } else {
            Err(bad("session id", text, "1 to 128 of A-Z a-z 0-9 . _ - and no leading dot"))
        }
    }
}

/// An entry's name within its session: the caller's own `uuid` (or `id`) where the entry has one.
///
/// 1 to 256 printable ASCII characters without space, quote or backslash, so that it fits the stamp as it is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryId(Arc<str>);

impl EntryId {
    /// Returns a new id, ordered by time of creation.
    pub fn generate() -> Self {
        Self(Uuid::now_v7().to_string().into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl EntryId {
    /// Returns by what an index knows it. Two may share it, so it need not be a slow hash.
    pub(crate) fn short_hash(&self) -> [u8; 8] {
        XxHash3_64::oneshot(self.as_str().as_bytes()).to_le_bytes()
    }
}

impl FromStr for EntryId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let safe = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        if (1..=256).contains(&text.len()) && text.bytes().all(safe) {
            Ok(Self(text.into()))
        } else {
            Err(bad("entry id", text, "1 to 256 printable characters without space, quote or backslash"))
        }
    }
}

/// Content, named by its SHA-256. It exists only by hashing, or by parsing a hash.
///
/// A *sealed* name is that of content which somebody above the backend has encrypted: no hash of it, in a namespace of its
/// own, and written with two digits more.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BlobId {
    /// The name, and before it what tells sealed ones apart.
    bytes: [u8; 33],
}

/// What sealed names begin with.
const SEALED: u8 = 0x5f;
/// The same while names could be turned back: whoever still does that finds no others, and so clears none of them away.
const EARLIER_SEALED: u8 = 0x5e;
/// What stands there instead if a name is a hash; it is not written.
const PLAIN: u8 = 0;

impl BlobId {
    /// Returns the name of this content.
    pub fn of(content: &[u8]) -> Self {
        Self::from_hash(Sha256::digest(content).into())
    }

    /// Returns the id that a hash stands for.
    pub fn from_hash(hash: [u8; 32]) -> Self {
        Self::named(PLAIN, hash)
    }

    /// Returns a name for content that is sealed.
    pub fn sealed(name: [u8; 32]) -> Self {
        Self::named(SEALED, name)
    }

    /// Returns a name for content that is sealed, as it was while names could be turned back.
    pub fn earlier_sealed(name: [u8; 32]) -> Self {
        Self::named(EARLIER_SEALED, name)
    }

    fn named(kind: u8, name: [u8; 32]) -> Self {
        let mut bytes = [kind; 33];
        bytes[1..].copy_from_slice(&name);
        Self { bytes }
    }

    /// Returns the hash itself, or what a sealed one has instead.
    pub fn as_hash(&self) -> &[u8; 32] {
        self.bytes.last_chunk().unwrap_or_else(|| unreachable!("33 bytes end with 32"))
    }

    /// Returns the name as bytes, in the order of its text.
    pub fn as_bytes(&self) -> &[u8] {
        if self.is_sealed() { &self.bytes } else { &self.bytes[1..] }
    }

    /// Returns whether this is a sealed name.
    pub fn is_sealed(&self) -> bool {
        self.bytes[0] != PLAIN
    }

    /// Returns the name of what a hasher has seen.
    pub fn of_hasher(hasher: Sha256) -> Self {
        Self::from_hash(hasher.finalize().into())
    }

    /// Returns whether content may be stored under this name. What is sealed is vouched for by whoever sealed it.
    pub fn fits(&self, content: &[u8]) -> bool {
        self.is_sealed() || Self::of(content) == *self
    }

    /// Returns whether what a hasher has seen may be stored under this name.
    pub fn fits_hashed(&self, hasher: Sha256) -> bool {
        self.is_sealed() || Self::of_hasher(hasher) == *self
    }
}

impl PartialOrd for BlobId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BlobId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl FromStr for BlobId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let rule = "64 lower-case hex digits";
        let sealed = |(first, kind)| Some((kind, text.strip_prefix(first).filter(|name| name.len() == 64)?));
        let sealed = [("5f", SEALED), ("5e", EARLIER_SEALED)].into_iter().find_map(sealed);
        let (kind, text) = sealed.unwrap_or((PLAIN, text));
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let mut hash = [0; 32];
        if text.len() != 64 {
            return Err(bad("blob id", text, rule));
        }
        for (byte, pair) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            match (digit(pair[0]), digit(pair[1])) {
                (Some(high), Some(low)) => *byte = high << 4 | low,
                _ => return Err(bad("blob id", text, rule)),
            }
        }
        Ok(Self::named(kind, hash))
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

impl TryFrom<String> for BlobId {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl From<BlobId> for String {
    fn from(id: BlobId) -> String {
        id.to_string()
    }
}

macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0.as_ref().to_owned()
            }
        }
    };
}

text_id!(SessionId);
text_id!(EntryId);

fn bad(what: &'static str, text: &str, rule: &'static str) -> Error {
    // A hostile id may be megabytes long; the message shows enough to recognise it.
    Error::BadName { what, text: text.chars().take(80).collect(), rule }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_id_can_never_leave_its_folder() {
        for hostile in ["", ".", "..", "../x", "a/b", ".hidden", "a\0b", "a b", "ü", &"x".repeat(129)] {
            assert!(hostile.parse::<SessionId>().is_err(), "{hostile:?}");
        }
        for good in ["a", "A-1_b.c", "0198f2c4-0000-7000-8000-000000000000", &"x".repeat(128)] {
            assert_eq!(good.parse::<SessionId>().unwrap().as_str(), good);
        }
    }

    #[test]
    fn a_blob_id_reads_back_what_it_prints() {
        let id = BlobId::of(b"content");
        assert_eq!(id.to_string().parse::<BlobId>().unwrap(), id);
        assert!("zz".repeat(32).parse::<BlobId>().is_err());
    }
}
