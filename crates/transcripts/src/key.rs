//! An entry's id, small enough to have a hundred thousand of them at hand.

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// What an entry is known by: its UUID as a number. Claude Code takes any text as a uuid; others are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Key(pub(crate) u128);

impl Key {
    pub(crate) fn of(text: &str) -> Self {
        parse(text.as_bytes()).map_or_else(|| Self::hashed(text), Self)
    }

    fn hashed(text: &str) -> Self {
        let hash = Sha256::digest(text);
        let mut half = [0; 16];
        half.copy_from_slice(&hash[..16]);
        Self(u128::from_le_bytes(half))
    }
}

/// Reads the usual form only, in lower case: two texts that differ are two ids.
fn parse(text: &[u8]) -> Option<u128> {
    if text.len() != 36 {
        return None;
    }
    let mut number = 0_u128;
    for (at, byte) in text.iter().enumerate() {
        let digit = match (at, byte) {
            (8 | 13 | 18 | 23, b'-') => continue,
            (8 | 13 | 18 | 23, _) => return None,
            (_, b'0'..=b'9') => byte - b'0',
            (_, b'a'..=b'f') => byte - b'a' + 10,
            _ => return None,
        };
        number = number << 4 | u128::from(digit);
    }
    Some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_differ_are_different_keys() {
        let texts = [
            "8f529643-98e0-4045-abbb-6f2887e6ce70",
            "8F529643-98e0-4045-abbb-6f2887e6ce70",
            "8f529643098e004045-abbb-6f2887e6ce70",
            "msg-1",
            "",
        ];
        for (at, one) in texts.iter().enumerate() {
            assert!(texts[..at].iter().all(|other| Key::of(other) != Key::of(one)), "{one}");
        }
        assert_eq!(Key::of(texts[0]).0, 0x8f529643_98e0_4045_abbb_6f2887e6ce70);
    }
}
