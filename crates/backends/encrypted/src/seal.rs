//! One key, and what is sealed with it: a nonce, the ciphertext and its tag.

use std::fmt;
use std::ops::Range;

use rethread_store::{Error, Result};
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};
use zeroize::Zeroizing;

/// What sealing adds.
pub(crate) const OVERHEAD: usize = NONCE_LEN + TAG;
/// How long a tag is.
pub(crate) const TAG: usize = 16;

/// A key.
pub(crate) struct Secret {
    bytes: Zeroizing<[u8; 32]>,
    key: LessSafeKey,
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    pub(crate) fn new(bytes: Zeroizing<[u8; 32]>) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &bytes[..]);
        let key = key.unwrap_or_else(|_| unreachable!("32 bytes are a key of AES-256"));
        Self { bytes, key: LessSafeKey::new(key) }
    }

    /// Makes a new one.
    pub(crate) fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; 32]);
        fill(&mut bytes[..])?;
        Ok(Self::new(bytes))
    }

    /// Returns the key for a purpose, which tells nothing of this one or of those for other purposes.
    pub(crate) fn derived(&self, purpose: &[&[u8]]) -> Self {
        Self::new(derive(&self.bytes, purpose))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.bytes
    }

    /// Seals something for a place: nowhere else can it be opened.
    ///
    /// Nonces are random, so a key is good for four thousand million records.
    pub(crate) fn seal(&self, plain: &[u8], place: &[u8]) -> Result<Vec<u8>> {
        let mut sealed = Vec::with_capacity(plain.len() + OVERHEAD);
        self.seal_onto(&mut sealed, plain, place)?;
        Ok(sealed)
    }

    /// Does the same behind something else.
    pub(crate) fn seal_onto(&self, sealed: &mut Vec<u8>, plain: &[u8], place: &[u8]) -> Result<()> {
        let mut nonce = [0; NONCE_LEN];
        fill(&mut nonce)?;
        sealed.extend_from_slice(&nonce);
        let begin = sealed.len();
        sealed.extend_from_slice(plain);
        let tag = self.key.seal_in_place_separate_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(place),
            &mut sealed[begin..],
        );
        sealed.extend_from_slice(tag.map_err(|_| too_large(plain.len()))?.as_ref());
        Ok(())
    }

    /// Opens what was sealed for a place; `None` if it was not, or not with this key, or is not as it was.
    pub(crate) fn open(&self, mut sealed: Vec<u8>, place: &[u8]) -> Option<Vec<u8>> {
        let opened = self.open_in_place(&mut sealed, place)?;
        sealed.truncate(opened.end);
        sealed.drain(..opened.start);
        Some(sealed)
    }

    /// Does the same where it lies, and returns which part of it that is.
    pub(crate) fn open_in_place(&self, sealed: &mut [u8], place: &[u8]) -> Option<Range<usize>> {
        let (nonce, sealed) = sealed.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = self.key.open_in_place(nonce, Aad::from(place), sealed).ok()?;
        Some(NONCE_LEN..NONCE_LEN + opened.len())
    }

    /// Seals a piece under a number that this key was never used with, in place.
    pub(crate) fn seal_numbered(&self, piece: &mut Vec<u8>, number: [u8; NONCE_LEN]) -> Result<()> {
        let (nonce, length) = (Nonce::assume_unique_for_key(number), piece.len());
        self.key.seal_in_place_append_tag(nonce, Aad::empty(), piece).map_err(|_| too_large(length))
    }

    /// Opens such a piece in place.
    pub(crate) fn open_numbered<'a>(&self, piece: &'a mut [u8], number: [u8; NONCE_LEN]) -> Option<&'a [u8]> {
        let nonce = Nonce::assume_unique_for_key(number);
        self.key.open_in_place(nonce, Aad::empty(), piece).ok().map(|plain| &*plain)
    }
}

/// Derives a key from another.
pub(crate) fn derive(from: &[u8; 32], purpose: &[&[u8]]) -> Zeroizing<[u8; 32]> {
    let mut bytes = Zeroizing::new([0; 32]);
    let derived = Salt::new(HKDF_SHA256, b"rethread").extract(from);
    let filled = derived.expand(purpose, HKDF_SHA256).and_then(|okm| okm.fill(&mut bytes[..]));
    filled.unwrap_or_else(|_| unreachable!("32 bytes are what it gives"));
    bytes
}

/// Fills bytes with what nobody can guess.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<()> {
    let failed = |_| Error::io("get", "random bytes")(std::io::Error::other("the system has none"));
    SystemRandom::new().fill(bytes).map_err(failed)
}

fn too_large(size: usize) -> Error {
    Error::TooLarge { size, limit: (1 << 36) - 32 }
}
