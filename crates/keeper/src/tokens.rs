//! Tokens for programs that may use one namespace of the session store, and nothing else of the keeper.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::credentials::{hash, secret};
use crate::error::{Error, Result};
use crate::private_file;

/// How every such token begins, so that people and scanners know one when they see it.
const BEGINNING: &str = "rtk_";

/// What a token is for. The token itself is nowhere: only its hash is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenGrant {
    /// A person's name for it.
    pub name: String,
    /// The namespace that it opens.
    pub namespace: String,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
}

/// The tokens that were made.
#[derive(Debug)]
pub(crate) struct Tokens {
    place: PathBuf,
    /// By the hash of the token.
    grants: Mutex<BTreeMap<String, TokenGrant>>,
}

impl Tokens {
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let place = home.join("tokens.json");
        let grants = match fs::read(&place) {
            // Without it nobody comes in who should; with a guess, somebody might who should not.
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|error| Error::io("read", &place)(std::io::Error::other(error)))?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(Error::io("read", &place)(error)),
        };
        Ok(Self { place, grants: Mutex::new(grants) })
    }

    /// Makes a token; `None` if there is one of this name. It is returned here and never again.
    pub(crate) fn create(&self, name: &str, namespace: &str) -> Result<Option<(String, TokenGrant)>> {
        let mut grants = self.grants();
        if grants.values().any(|grant| grant.name == name) {
            return Ok(None);
        }
        let token = format!("{BEGINNING}{}", secret());
        let grant =
            TokenGrant { name: name.into(), namespace: namespace.into(), created_at: Timestamp::now() };
        let mut after = grants.clone();
        after.insert(hash(&token), grant.clone());
        self.keep(&after)?;
        *grants = after;
        Ok(Some((token, grant)))
    }

    /// Ends a token. Returns whether there was one.
    pub(crate) fn revoke(&self, name: &str) -> Result<bool> {
        let mut grants = self.grants();
        let mut after = grants.clone();
        after.retain(|_, grant| grant.name != name);
        let was = after.len() < grants.len();
        if was {
            self.keep(&after)?;
            *grants = after;
        }
        Ok(was)
    }

    /// Returns what a token is for.
    pub(crate) fn find(&self, token: &str) -> Option<TokenGrant> {
        // Found by its hash: how long that takes tells nothing of the token.
        self.grants().get(&hash(token)).cloned()
    }

    /// Returns all of them, by name.
    pub(crate) fn all(&self) -> Vec<TokenGrant> {
        let mut all: Vec<TokenGrant> = self.grants().values().cloned().collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }

    fn keep(&self, grants: &BTreeMap<String, TokenGrant>) -> Result<()> {
        let bytes = serde_json::to_vec(grants).unwrap_or_default();
        private_file::replace(&self.place, &bytes).map_err(Error::io("write", &self.place))
    }

    fn grants(&self) -> MutexGuard<'_, BTreeMap<String, TokenGrant>> {
        self.grants.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_outlives_the_keeper_until_it_is_revoked_and_is_written_nowhere() {
        let home = tempfile::tempdir().unwrap();
        let (token, grant) = Tokens::open(home.path()).unwrap().create("ci", "team").unwrap().unwrap();
        let tokens = Tokens::open(home.path()).unwrap();
        assert_eq!(tokens.find(&token), Some(grant));
        assert_eq!(tokens.create("ci", "other").unwrap(), None, "names are taken once");
        assert!(!fs::read_to_string(home.path().join("tokens.json")).unwrap().contains(&token));
        assert!(tokens.revoke("ci").unwrap() && !tokens.revoke("ci").unwrap());
        assert_eq!(Tokens::open(home.path()).unwrap().find(&token), None);
    }

    #[test]
    fn tokens_that_cannot_be_read_are_no_reason_to_forget_them() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("tokens.json"), "{").unwrap();
        assert!(Tokens::open(home.path()).is_err());
    }
}
