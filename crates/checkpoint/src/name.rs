//! Names as the file system has them: any bytes, written as text where they are text.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Bytes of a name or of a link's target. In JSON a string, or `{"hex":"…"}` if they are not UTF-8.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name(Box<[u8]>);

impl Name {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn as_os_str(&self) -> &OsStr {
        OsStr::from_bytes(&self.0)
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&OsStr> for Name {
    fn from(name: &OsStr) -> Self {
        name.as_bytes().into()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_os_str(), f)
    }
}

#[derive(Serialize, Deserialize)]
struct Hex {
    hex: String,
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match std::str::from_utf8(&self.0) {
            Ok(text) => serializer.serialize_str(text),
            Err(_) => {
                let hex = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
                Hex { hex }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> serde::de::Visitor<'de> for Reader {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, or its bytes in hex")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Name, E> {
        Ok(Name(text.as_bytes().into()))
    }

    fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Name, A::Error> {
        let Hex { hex } = Hex::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        let bad = || serde::de::Error::custom("not pairs of hex digits");
        let digit = |byte: u8| char::from(byte).to_digit(16).ok_or_else(bad);
        let pairs = hex.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| match pair {
            [high, low] => Ok((digit(*high)? * 16 + digit(*low)?) as u8),
            _ => Err(bad()),
        });
        Ok(Name(bytes.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back_from_json() {
        for bytes in [&b"src/main.rs"[..], b"", b"\xff\x00a", "ü\n".as_bytes()] {
            let json = serde_json::to_string(&Name::from(bytes)).unwrap();
            assert_eq!(serde_json::from_str::<Name>(&json).unwrap().as_bytes(), bytes, "{json}");
        }
        assert!(serde_json::from_str::<Name>(r#"{"hex":"f"}"#).is_err());
        assert!(serde_json::from_str::<Name>(r#"{"hex":"zz"}"#).is_err());
    }
}
