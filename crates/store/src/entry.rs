//! One JSON object of a session, kept as it came.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use jiff::Timestamp;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::error::{Error, Result};
use crate::id::EntryId;

/// How deeply an entry may nest: what every common JSON reader still takes.
pub const MAX_DEPTH: usize = 127;

/// One JSON object of a session, opaque and byte for byte as the caller gave it.
///
/// # Example
///
/// ```
/// use rethread_store::Entry;
///
/// let entry = Entry::parse(r#"{"uuid":"u-1","role":"user","content":"hi"}"#)?;
/// assert_eq!(entry.id().as_str(), "u-1");
/// # Ok::<(), rethread_store::Error>(())
/// ```
#[derive(Clone)]
pub struct Entry {
    bytes: Bytes,
    id: EntryId,
    /// When it says it was made, once that was looked for.
    timestamp: Option<Option<Timestamp>>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (&self.bytes, &self.id) == (&other.bytes, &other.id)
    }
}

impl Eq for Entry {}

impl Entry {
    /// Takes one JSON object on one line; white space around it is dropped, within it kept.
    ///
    /// Its id is its own `uuid`, else its `id`, else a new one.
    pub fn parse(bytes: impl Into<Bytes>) -> Result<Self> {
        let bytes = trimmed(bytes.into());
        let text = simdutf8::compat::from_utf8(&bytes)
            .map_err(|error| Error::BadEntry(format!("not UTF-8: {error}")))?;
        if !text.starts_with('{') {
            return Err(Error::BadEntry("an entry is a JSON object, {…}".into()));
        }
        if memchr::memchr2(b'\n', b'\r', &bytes).is_some() {
            return Err(Error::BadEntry("an entry is one line; escape or drop its line breaks".into()));
        }
        let envelope: Envelope =
            serde_json::from_str(text).map_err(|error| Error::BadEntry(error.to_string()))?;
        if nesting(&bytes) > MAX_DEPTH {
            return Err(Error::BadEntry(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let id = envelope.id().unwrap_or_else(EntryId::generate);
        let timestamp = Some(envelope.timestamp());
        Ok(Self { bytes, id, timestamp })
    }

    /// Serialises a value that becomes a JSON object.
    pub fn of<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self> {
        Self::parse(serde_json::to_vec(value).map_err(|error| Error::BadEntry(error.to_string()))?)
    }

    /// Wraps bytes that were an entry when they were stored, and whose checksum was just verified.
    pub(crate) fn trusted(bytes: Bytes, id: EntryId) -> Self {
        Self { bytes, id, timestamp: None }
    }

    /// Returns the same entry under another id, whatever it calls itself.
    #[must_use]
    pub fn with_id(mut self, id: EntryId) -> Self {
        self.id = id;
        self
    }

    /// Returns the same entry with other bytes, which must be an entry too.
    pub(crate) fn with_bytes(self, bytes: Bytes) -> Self {
        Self { bytes, ..self }
    }

    /// Returns the entry's name in its session.
    pub fn id(&self) -> &EntryId {
        &self.id
    }

    /// Returns the caller's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the caller's bytes, shared.
    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the caller's bytes as text; an entry is always UTF-8.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }

    /// Reads the entry as a type of the caller's.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T> {
        serde_json::from_slice(&self.bytes).map_err(|error| Error::BadEntry(error.to_string()))
    }

    /// Returns when the entry says it was made, if it says so.
    pub fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp.unwrap_or_else(|| timestamp_of(&self.bytes))
    }
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Entry({})", self.as_str())
    }
}

/// The few members the store looks at. Raw, so that an odd type in one of them refuses nothing;
/// read by hand, because a derived reader refuses a member that is there twice.
#[derive(Default)]
struct Envelope<'a> {
    uuid: Option<&'a RawValue>,
    id: Option<&'a RawValue>,
    timestamp: Option<&'a RawValue>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Envelope<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Envelope<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut members: M) -> Result<Self::Value, M::Error> {
                let mut envelope = Envelope::default();
                while let Some(name) = members.next_key::<Cow<'de, str>>()? {
                    match name.as_ref() {
                        "uuid" => envelope.uuid = Some(members.next_value()?),
                        "id" => envelope.id = Some(members.next_value()?),
                        "timestamp" => envelope.timestamp = Some(members.next_value()?),
                        _ => drop(members.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(envelope)
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl Envelope<'_> {
    fn id(&self) -> Option<EntryId> {
        let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok()?.parse().ok();
        self.uuid.and_then(text).or_else(|| self.id.and_then(text))
    }

    fn timestamp(&self) -> Option<Timestamp> {
        serde_json::from_str::<Cow<'_, str>>(self.timestamp?.get()).ok()?.parse().ok()
    }
}

/// Returns the time that a JSON object says it was made.
pub(crate) fn timestamp_of(json: &[u8]) -> Option<Timestamp> {
    serde_json::from_slice::<Envelope>(json).ok()?.timestamp()
}

fn trimmed(bytes: Bytes) -> Bytes {
    let inner = bytes.trim_ascii();
    if inner.len() == bytes.len() { bytes } else { bytes.slice_ref(inner) }
}

/// How deeply the arrays and objects of valid JSON nest.
fn nesting(json: &[u8]) -> usize {
    let (mut depth, mut deepest, mut at) = (0_usize, 0, 0);
    while at < json.len() {
        match json[at] {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(json, at + 1),
            _ => {}
        }
        at += 1;
    }
    deepest
}

fn end_of_string(json: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr::memchr2(b'"', b'\\', &json[at.min(json.len())..]) {
        at += found;
        if json[at] == b'"' {
            return at;
        }
        at += 2;
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_keeps_every_byte_between_its_braces() {
        let text = r#"{ "b": 1.0e0, "a" : "\ud83d", "a": null ,"id":7}"#;
        let entry = Entry::parse(format!("  {text}\r\n")).unwrap();
        assert_eq!(entry.as_str(), text);
    }

    #[test]
    fn what_is_not_one_object_on_one_line_is_refused() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(127), "]".repeat(127));
        for bad in ["", "[]", "1", "{", "{}{}", "{\"a\":1}x", "{\n}", "{\"a\":\u{7}}", "{a:1}", &deep] {
            assert!(matches!(Entry::parse(bad.to_owned()), Err(Error::BadEntry(_))), "{bad}");
        }
        assert!(Entry::parse(b"{\"a\":\"\xff\"}".to_vec()).is_err());
    }

    #[test]
    fn an_entry_without_a_usable_id_gets_its_own() {
        for text in [r#"{}"#, r#"{"uuid":"has space"}"#, r#"{"uuid":null,"id":3}"#] {
            assert_eq!(Entry::parse(text.to_owned()).unwrap().id().as_str().len(), 36, "{text}");
        }
    }
}
