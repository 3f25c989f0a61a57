//! The object that stands for a blob: a line of a fixed length, and the content behind it, unless that is elsewhere.

use bytes::Bytes;
use rethread_store::{Error, Result};

use crate::layout::{self, VERSION};

/// How long the first line is, its newline included.
pub(crate) const LINE: u64 = 96;

/// What the first line says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Card {
    /// The content follows.
    Here,
    /// The content is an object of its own, of this name.
    Apart(String),
    /// The content was cleared away. What says so has no bytes at all, and stays: it could not be deleted without taking
    /// away what somebody puts in its place at that moment.
    Gone,
}

impl Card {
    /// Reads an object, or its beginning.
    pub(crate) fn parse(key: &str, bytes: &[u8]) -> Result<Self> {
        if bytes.is_empty() {
            return Ok(Card::Gone);
        }
        let line =
            bytes.get(..LINE as usize).and_then(|line| std::str::from_utf8(line).ok()).unwrap_or_default();
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words[..] {
            ["rethread", version, _, "here"] if is_known(version) => Ok(Card::Here),
            ["rethread", version, _, "apart", name] if is_known(version) => Ok(Card::Apart(name.to_owned())),
            _ => Err(Error::Damaged { what: key.to_owned(), reason: "its first line is not ours".into() }),
        }
    }

    /// Returns the first line, as no other state of the object has it.
    pub(crate) fn to_line(&self) -> Bytes {
        let nonce = layout::fresh();
        let text = match self {
            Card::Here => format!("rethread {VERSION} {nonce} here"),
            Card::Apart(name) => format!("rethread {VERSION} {nonce} apart {name}"),
            Card::Gone => return Bytes::new(),
        };
        Bytes::from(format!("{text:<width$}\n", width = LINE as usize - 1))
    }
}

fn is_known(version: &str) -> bool {
    version.parse::<u32>().is_ok_and(|version| version <= VERSION)
}
