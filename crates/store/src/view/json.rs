//! JSON read the tolerant way: one level at a time, every value kept as its own text.
//!
//! serde_json refuses `"\ud83d"`, half a surrogate pair, in a string, but not in a [`RawValue`] nor
//! in bytes. Programs that cut text by UTF-16 units write such strings, so keys and strings are
//! read as bytes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One object's members, each value not yet interpreted.
pub(super) struct Object<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Returns the object that `json` is, or `None` if it is something else.
    pub(super) fn of(json: &'a str) -> Option<Self> {
        // Asking first spares serde_json the decoding of a long string into an error.
        if !json.trim_start().starts_with('{') {
            return None;
        }
        serde_json::from_str(json).ok()
    }

    /// Returns a member's value; a `null` counts as missing, and the last of one name wins.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rfind(|(Text(key), _)| key == name)?;
        (value.get() != "null").then_some(value)
    }

    /// Returns the text of a member that is a string.
    pub(super) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        self.get(name).and_then(string)
    }
}

/// Returns an array's elements, or `None` if `value` is not an array.
pub(super) fn elements(value: &RawValue) -> Option<Vec<&RawValue>> {
    let json = value.get();
    json.starts_with('[').then(|| serde_json::from_str(json).ok()).flatten()
}

/// Returns a string's text, or `None` if `value` is not a string.
pub(super) fn string(value: &RawValue) -> Option<Cow<'_, str>> {
    let json = value.get();
    let inner = json.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(json).ok().map(|Text(text)| text)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

/// A decoded JSON string, each half surrogate pair replaced by U+FFFD.
pub(super) struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    pub(super) fn borrowed(bytes: &'a [u8]) -> Self {
        Self(match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => Cow::Owned(without_half_pairs(bytes)),
        })
    }

    pub(super) fn copied(bytes: &[u8]) -> Self {
        Self(Cow::Owned(match simdutf8::basic::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => without_half_pairs(bytes),
        }))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Text::borrowed(bytes))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Text::copied(bytes))
    }
}

fn without_half_pairs(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The input was UTF-8, so what is invalid are half pairs: ED and two more
        // bytes, each of them a chunk of its own. One replacement for the three.
        if chunk.invalid().first() == Some(&0xED) {
            text.push(char::REPLACEMENT_CHARACTER);
        }
    }
    text
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object(members))
    }
}
