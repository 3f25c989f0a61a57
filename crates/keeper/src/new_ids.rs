//! The ids of a session that is to begin, chosen before there is anything of it.

use sha2::{Digest as _, Sha256};
use uuid::{Builder, Uuid};

/// The ids of a session and of what is said in it first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewIds {
    pub(crate) session: String,
    pub(crate) prompt: String,
}

impl NewIds {
    /// Chooses any.
    pub(crate) fn any() -> Self {
        Self { session: Uuid::new_v4().to_string(), prompt: Uuid::new_v4().to_string() }
    }

    /// Chooses those that follow from the key of whoever asks: the same key means the same session, whether or not the
    /// keeper that was asked first is still there. Keepers with other secrets choose others.
    pub(crate) fn of_key(secret: &str, key: &str) -> Self {
        let id = |what: &str| {
            let parts = ["idempotency", what, secret, key];
            let digest = Sha256::digest(parts.map(|part| format!("{}:{part}", part.len())).concat());
            Builder::from_random_bytes(std::array::from_fn(|at| digest[at])).into_uuid().to_string()
        };
        Self { session: id("session"), prompt: id("prompt") }
    }
}
