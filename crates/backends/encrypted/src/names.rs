//! What sealed contents are called: whoever has a file cannot tell by its hash whether it is among them, and whoever has the
//! master key cannot tell from a name what the hash is.
//!
//! A content's own key follows from its hash as well. Hashes stand in the records of checkpoints, which are sealed with
//! their session's key: once that is erased nobody learns them any more, and so contents are erased with the last session
//! that has them, wherever there are copies of either.

use std::fmt;

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use rethread_store::BlobId;
use ring::hmac::{self, HMAC_SHA256};

use crate::seal::Secret;

pub(crate) struct Names {
    secret: hmac::Key,
    earlier: Aes256,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names(…)")
    }
}

impl Names {
    pub(crate) fn new(secret: &Secret, earlier: &Secret) -> Self {
        Self {
            secret: hmac::Key::new(HMAC_SHA256, secret.bytes()),
            earlier: Aes256::new(&Array(*earlier.bytes())),
        }
    }

    /// Returns what content of this hash is called.
    pub(crate) fn sealed(&self, blob: &BlobId) -> BlobId {
        let mut name = [0; 32];
        name.copy_from_slice(hmac::sign(&self.secret, blob.as_hash()).as_ref());
        BlobId::sealed(name)
    }

    /// Returns what it was called when names could be turned back: each half of a hash was one block.
    pub(crate) fn earlier(&self, blob: &BlobId) -> BlobId {
        let mut name = *blob.as_hash();
        for half in name.as_chunks_mut::<16>().0 {
            let mut block = Array(*half);
            self.earlier.encrypt_block(&mut block);
            *half = block.0;
        }
        BlobId::earlier_sealed(name)
    }
}
