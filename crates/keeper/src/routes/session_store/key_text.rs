//! A text of a key, which need not be Unicode: JSON can spell half of a surrogate pair, and JavaScript cuts strings there.

use std::fmt::{self, Write as _};

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// What a text begins with that stands for another one, spelt as JSON behind it. Nobody's text begins with this sign, which
/// Unicode gives to no character; one that does all the same is spelt out as well, so that no two share a text.
const SPELT: char = '\u{fdd0}';

/// Any text that JSON can spell, one to one with a text of Unicode.
pub(crate) struct KeyText(pub(crate) String);

impl<'de> Deserialize<'de> for KeyText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let spelt = Box::<RawValue>::deserialize(deserializer)?;
        let units = serde_json::Deserializer::from_str(spelt.get()).deserialize_bytes(Units);
        units.map(|units| Self::of(&units)).map_err(D::Error::custom)
    }
}

impl KeyText {
    /// Takes UTF-8 in which halves of pairs stand as if they were characters.
    fn of(units: &[u8]) -> Self {
        match std::str::from_utf8(units) {
            Ok(text) if !text.starts_with(SPELT) => Self(text.to_owned()),
            _ => Self(spell(units)),
        }
    }
}

/// Spells a text as JSON, each in one way only.
fn spell(units: &[u8]) -> String {
    let (mut text, mut half) = (format!("{SPELT}\""), Vec::new());
    for chunk in units.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => text.extend(['\\', character]),
                '\0'..='\u{1f}' => push_escape(&mut text, character.into()),
                character => text.push(character),
            }
        }
        // The three bytes of a half are no beginning of a character, so they come one by one.
        half.extend_from_slice(chunk.invalid());
        if let [0xed, middle, last] = half[..] {
            push_escape(&mut text, 0xd000 | u32::from(middle & 0x3f) << 6 | u32::from(last & 0x3f));
            half.clear();
        }
    }
    text.push('"');
    text
}

fn push_escape(text: &mut String, unit: u32) {
    let Ok(()) = write!(text, "\\u{unit:04x}") else { unreachable!("a text takes any text") };
}

impl Serialize for KeyText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spelt = self.0.strip_prefix(SPELT).and_then(|spelt| RawValue::from_string(spelt.to_owned()).ok());
        match spelt {
            Some(spelt) => spelt.serialize(serializer),
            None => serializer.serialize_str(&self.0),
        }
    }
}

/// Takes a string as bytes, since it may be no text.
struct Units;

impl Visitor<'_> for Units {
    type Value = Vec<u8>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, units: &[u8]) -> Result<Vec<u8>, E> {
        Ok(units.to_vec())
    }
}
