//! Who may come in: the token, codes that are good for one minute and one use, and the cookies they are changed for.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use tokio::sync::watch;

use crate::error::{Error, Result};
use crate::new_ids::NewIds;
use crate::private_file;
use crate::tokens::{TokenGrant, Tokens};

/// How long a code is good for.
const CODE: Duration = Duration::from_secs(60);
/// How long a login lasts.
const LOGIN: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How often a login is looked at that somebody still uses.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// How many codes may be open, and how many logins are remembered.
const CODES: usize = 64;
const LOGINS: usize = 256;

/// What is known of who may come in. Secrets themselves are only in the token's file.
#[derive(Debug)]
pub(crate) struct Credentials {
    /// What scripts show; where there is none, only pages come in.
    token: Option<String>,
    /// What other programs show, who may use the session store only.
    pub(crate) tokens: Option<Tokens>,
    place: PathBuf,
    state: Mutex<State>,
    /// A login was ended.
    ended: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct State {
    codes: HashMap<String, Instant>,
    /// By the hash of the cookie: when it ends.
    logins: HashMap<String, Timestamp>,
}

impl Credentials {
    /// Takes the token that is there, or makes one.
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let path = home.join("token");
        let there = fs::read_to_string(&path).ok().map(|token| token.trim().to_owned());
        let token = there.filter(|token| token.len() == 64).unwrap_or_else(secret);
        // Written in any case, so that its mode is right.
        private_file::replace(&path, token.as_bytes()).map_err(Error::io("write", &path))?;
        let place = home.join("logins.json");
        let state = State { codes: HashMap::new(), logins: logins(&place) };
        let tokens = Some(Tokens::open(home)?);
        Ok(Self { token: Some(token), tokens, place, state: Mutex::new(state), ended: watch::channel(()).0 })
    }

    /// Remembers logins, and has no token: whoever comes in is a page that was let in.
    pub(crate) fn of_pages(home: &Path) -> Self {
        let place = home.join("logins.json");
        let state = State { codes: HashMap::new(), logins: logins(&place) };
        Self { token: None, tokens: None, place, state: Mutex::new(state), ended: watch::channel(()).0 }
    }

    /// Returns whether this is the token. Takes as long for any text of the same length.
    pub(crate) fn is_token(&self, text: &str) -> bool {
        self.token.as_ref().is_some_and(|token| bool::from(text.as_bytes().ct_eq(token.as_bytes())))
    }

    /// Returns the ids of a new session that follow from a key.
    pub(crate) fn ids_of(&self, key: &str) -> NewIds {
        NewIds::of_key(self.token.as_deref().unwrap_or_default(), key)
    }

    /// Returns what a token is for that is not the keeper's own.
    pub(crate) fn grant(&self, text: &str) -> Option<TokenGrant> {
        self.tokens.as_ref()?.find(text)
    }

    /// Returns whether a cookie is one that was given out.
    pub(crate) fn is_login(&self, cookie: &str) -> bool {
        let now = Timestamp::now();
        // Found by its hash: how long that takes tells nothing of the cookie.
        self.state().logins.get(&hash(cookie)).is_some_and(|ends| *ends > now)
    }

    /// Makes a code that can be changed for a cookie once.
    pub(crate) fn code(&self) -> String {
        let (code, now) = (secret(), Instant::now());
        let mut state = self.state();
        state.codes.retain(|_, since| now.duration_since(*since) < CODE);
        if state.codes.len() >= CODES
            && let Some(oldest) = state.codes.iter().min_by_key(|(_, since)| **since).map(|it| it.0.clone())
        {
            state.codes.remove(&oldest);
        }
        state.codes.insert(hash(&code), now);
        code
    }

    /// Changes a code for a cookie.
    pub(crate) fn exchange(&self, code: &str) -> Option<String> {
        let mut state = self.state();
        let since = state.codes.remove(&hash(code))?;
        if since.elapsed() >= CODE {
            return None;
        }
        let (cookie, now) = (secret(), Timestamp::now());
        state.logins.retain(|_, ends| *ends > now);
        if state.logins.len() >= LOGINS
            && let Some(oldest) = state.logins.iter().min_by_key(|(_, ends)| **ends).map(|it| it.0.clone())
        {
            state.logins.remove(&oldest);
        }
        state.logins.insert(hash(&cookie), now + LOGIN);
        self.keep(&state);
        Some(cookie)
    }

    /// Ends a login.
    pub(crate) fn forget(&self, cookie: &str) -> bool {
        let mut state = self.state();
        let was = state.logins.remove(&hash(cookie)).is_some();
        self.keep(&state);
        drop(state);
        self.ended.send_replace(());
        was
    }

    /// Waits until a login is over.
    pub(crate) async fn until_over(&self, cookie: &str) {
        let mut ended = self.ended.subscribe();
        while self.is_login(cookie) {
            // Some end by themselves.
            let _ = tokio::time::timeout(LOOK_AGAIN, ended.changed()).await;
        }
    }

    /// Keeps logins for the next keeper. One that is lost costs a new login.
    fn keep(&self, state: &State) {
        let bytes = serde_json::to_vec(&state.logins).unwrap_or_default();
        if let Err(error) = private_file::replace(&self.place, &bytes) {
            tracing::warn!(%error, "logins are not kept for the next start");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads the logins that were kept. Those that cannot be read are over.
fn logins(place: &Path) -> HashMap<String, Timestamp> {
    fs::read(place).ok().and_then(|logins| serde_json::from_slice(&logins).ok()).unwrap_or_default()
}

/// Returns 256 random bits.
pub(crate) fn secret() -> String {
    let mut bytes = [0; 32];
    if getrandom::fill(&mut bytes).is_err() {
        unreachable!("the system gives random bytes, or nothing here is safe");
    }
    hex(&bytes)
}

pub(crate) fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_good_for_one_use() {
        let home = tempfile::tempdir().unwrap();
        let credentials = Credentials::open(home.path()).unwrap();
        let code = credentials.code();
        let cookie = credentials.exchange(&code).unwrap();
        assert!(credentials.is_login(&cookie) && !credentials.is_login(&code));
        assert_eq!(credentials.exchange(&code), None);
    }

    #[test]
    fn a_code_is_good_for_a_minute() {
        let home = tempfile::tempdir().unwrap();
        let credentials = Credentials::open(home.path()).unwrap();
        for (seconds, is_good) in [(59, true), (60, false)] {
            let code = credentials.code();
            let made = Instant::now().checked_sub(Duration::from_secs(seconds)).unwrap();
            credentials.state().codes.insert(hash(&code), made);
            assert_eq!(credentials.exchange(&code).is_some(), is_good, "after {seconds} s");
        }
    }

    #[test]
    fn a_login_outlives_the_keeper_and_ends_with_a_logout() {
        let home = tempfile::tempdir().unwrap();
        let first = Credentials::open(home.path()).unwrap();
        let cookie = first.exchange(&first.code()).unwrap();
        let second = Credentials::open(home.path()).unwrap();
        assert!(second.is_login(&cookie) && second.is_token(first.token.as_deref().unwrap()));
        assert!(second.forget(&cookie) && !second.is_login(&cookie));
        let kept = fs::read_to_string(home.path().join("logins.json")).unwrap();
        assert!(!kept.contains(&cookie));
    }
}
