//! JSON strings read the tolerant way.
//!
//! serde_json refuses half a surrogate pair (`"\ud83d"`) and bytes that are not UTF-8 in a string, but hands out both
//! when asked for bytes. Claude Code cuts text by UTF-16 units and so writes such strings; it reads them with U+FFFD in
//! their place, and so does this.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use rethread_plain_json::PlainJson;

/// A decoded string, whatever is no text in it replaced by U+FFFD.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text<'a>(pub(crate) Cow<'a, str>);

impl<'a> Text<'a> {
    /// Takes a string without escapes.
    pub(crate) fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        json.string().map(|text| Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
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
        Ok(Text(lossy(bytes)))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(lossy(bytes).into_owned())))
    }
}

/// Returns the string that some bytes begin with, whatever follows it.
pub(crate) fn leading_string(bytes: &[u8]) -> Option<String> {
    let mut values = serde_json::Deserializer::from_slice(bytes).into_iter::<Text<'_>>();
    values.next()?.ok().map(|Text(text)| text.into_owned())
}

/// Returns about so many bytes of the string that a JSON text is, without decoding the rest. `None` if it is none, or not
/// that long.
pub(crate) fn beginning_of(json: &str, length: usize) -> Option<String> {
    let cut = cut(json, length);
    let string = cut.strip_prefix('"').filter(|_| cut.len() < json.len())?;
    // An escape may be cut in two; the longest are pairs of twelve bytes.
    let end =
        string.len() - string.bytes().rev().take(12).position(|byte| byte == b'\\').map_or(0, |at| at + 1);
    let whole = string[..end].trim_end_matches('\\');
    leading_string(format!("\"{whole}\"").as_bytes())
}

/// Returns at most so many bytes of a text.
pub(crate) fn cut(text: &str, length: usize) -> &str {
    let end = (0..=length.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// Decodes bytes as Claude Code does: each half pair and each invalid sequence becomes one U+FFFD.
pub(crate) fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    let mut pair = 0;
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            pair = 0;
        }
        text.push_str(chunk.valid());
        match chunk.invalid() {
            [] => {}
            // serde_json writes a half pair as ED and two more bytes, each of them a chunk of its own.
            [0xED] => (text.push(char::REPLACEMENT_CHARACTER), pair = 2).1,
            [_] if pair > 0 => pair -= 1,
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_pairs_and_foreign_bytes_are_each_replaced_once() {
        let read = |json: &[u8]| serde_json::from_slice::<Text<'_>>(json).unwrap().0.into_owned();
        assert_eq!(read(br#""a\ud83d|\ud83d\ude00|\ude00\ud83d""#), "a\u{fffd}|😀|\u{fffd}\u{fffd}");
        assert_eq!(read(b"\"2 \xff\xfe x\""), "2 \u{fffd}\u{fffd} x");
        assert_eq!(read("\"naïve\"".as_bytes()), "naïve");
    }

    #[test]
    fn the_beginning_of_a_string_is_one_wherever_it_is_cut() {
        let text = r#"a\"ä\n\\\\\ud83d\ude00 \u00e9\\"#.repeat(9);
        let json = format!("\"{text}\"");
        let whole = leading_string(json.as_bytes()).unwrap();
        for length in 2..json.len() {
            let beginning = beginning_of(&json, length).unwrap();
            let sound = beginning.trim_end_matches(char::REPLACEMENT_CHARACTER);
            assert!(whole.starts_with(sound), "{length}: {beginning:?}");
            assert!(length < 40 || !sound.is_empty());
        }
        assert_eq!(beginning_of(&json, json.len()), None);
        assert_eq!(beginning_of("[1,2,3]", 3), None);
    }
}
