//! What sealed contents are called: whoever has a file cannot tell by its hash whether it is among them.
//!
//! Names have to be turned back, for whoever clears away asks which contents there are. A hash is as good as random, so
//! each half of it is one block.

use std::fmt;

use aes::Aes256;
use aes::cipher::{Array, BlockCipherDecrypt as _, BlockCipherEncrypt as _, KeyInit as _};
use rethread_store::BlobId;

use crate::seal::Secret;

pub(crate) struct Names(Aes256);

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Names(…)")
    }
}

impl Names {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self(Aes256::new(&Array(*secret.bytes())))
    }

    /// Returns what content of this hash is called.
    pub(crate) fn sealed(&self, blob: &BlobId) -> BlobId {
        BlobId::sealed(halves(blob.as_hash(), |half| self.0.encrypt_block(half)))
    }

    /// Returns the hash of the content that is called this; `None` if it is not a sealed one.
    pub(crate) fn opened(&self, sealed: &BlobId) -> Option<BlobId> {
        let hash = || halves(sealed.as_hash(), |half| self.0.decrypt_block(half));
        sealed.is_sealed().then(|| BlobId::from_hash(hash()))
    }
}

fn halves(name: &[u8; 32], turn: impl Fn(&mut aes::Block)) -> [u8; 32] {
    let mut turned = *name;
    for half in turned.as_chunks_mut::<16>().0 {
        let mut block = Array(*half);
        turn(&mut block);
        *half = block.0;
    }
    turned
}
