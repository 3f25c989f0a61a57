//! The key that all others hang on.

use std::fmt;
use std::str::FromStr;

use base64_simd::STANDARD;
use rethread_store::{Error, Result};
use zeroize::Zeroizing;

use crate::seal::{Secret, derive, fill};

/// The key that all others hang on: 32 bytes that nobody can guess, as text in base 64.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

impl MasterKey {
    /// Makes a new one.
    pub fn generate() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        fill(&mut bytes[..])?;
        Ok(Self(bytes))
    }

    /// Returns it as text, to be kept where the sessions are not.
    pub fn to_text(&self) -> Zeroizing<String> {
        Zeroizing::new(STANDARD.encode_to_string(&self.0[..]))
    }

    /// Returns the key for a purpose.
    pub(crate) fn derived(&self, purpose: &str) -> Secret {
        Secret::new(derive(&self.0, &[purpose.as_bytes()]))
    }
}

impl FromStr for MasterKey {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let bytes = STANDARD.decode_to_vec(text.trim()).ok().map(Zeroizing::new);
        let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes[..].try_into().ok());
        // The text itself is not to stand in a message.
        let bad = || Error::BadName {
            what: "key",
            text: format!("a text of {} characters", text.trim().len()),
            rule: "32 random bytes in base 64",
        };
        bytes.map(|bytes| Self(Zeroizing::new(bytes))).ok_or_else(bad)
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MasterKey(…)")
    }
}
