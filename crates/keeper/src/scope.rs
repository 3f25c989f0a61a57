//! How much of what a keeper shows a caller is to see: what is beneath some directories, and nothing else.
//!
//! A page that is served apart from its keeper has allowed roots of its own. They are directories of the keeper's
//! machine, so that the keeper is the one who can compare them. Whoever asks may only ever see less by it.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use serde::Deserialize;

use crate::catalogue::Catalogue;
use crate::frame::Frame;
use crate::hub::Cursor;
use crate::keeper::Keeper;
use crate::problem::Problem;
use crate::roots::Roots;
use crate::topic::Interest;

/// The header that names the directories, as a JSON array.
pub(crate) const ROOTS: &str = "x-rethread-roots";
/// More of them make no sense.
const MOST: usize = 64;

/// What a caller is to see; everything if nothing was said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope(Option<Arc<Narrow>>);

#[derive(Debug)]
struct Narrow {
    roots: Roots,
    /// Sessions are many and their directories few.
    known: Mutex<HashMap<PathBuf, bool>>,
}

impl<S: Send + Sync> FromRequestParts<S> for Scope {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut all = parts.headers.get_all(ROOTS).iter();
        let (Some(header), more) = (all.next(), all.next()) else { return Ok(Self(None)) };
        let roots: Option<Vec<PathBuf>> = serde_json::from_slice(header.as_bytes()).ok();
        let roots = roots.filter(|roots| more.is_none() && (1..=MOST).contains(&roots.len()));
        let roots =
            roots.ok_or_else(|| Problem::bad_request(format!("`{ROOTS}` is an array of directories")))?;
        let roots = Roots::new(&roots).map_err(|error| {
            Problem::bad_request(error.to_string())
                .hint("name a directory of the keeper's machine that is there")
        })?;
        Ok(Self(Some(Arc::new(Narrow { roots, known: Mutex::default() }))))
    }
}

impl Scope {
    /// Returns whether sessions of a directory are to be seen.
    pub(crate) fn admits(&self, cwd: Option<&str>) -> bool {
        let Some(narrow) = &self.0 else { return true };
        let Some(cwd) = cwd else { return false };
        let mut known = narrow.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(admitted) = known.get(Path::new(cwd)) {
            return *admitted;
        }
        let admitted = narrow.roots.admit(Some(Path::new(cwd)));
        known.insert(cwd.into(), admitted);
        admitted
    }

    /// Refuses what is about the whole keeper to whoever is to see a part of it.
    pub(crate) fn whole(&self) -> Result<(), Problem> {
        if self.0.is_some() { Err(Problem::not_found("place")) } else { Ok(()) }
    }

    /// Returns the directories of a keeper that are left; `None` if none is.
    pub(crate) fn within(&self, all: &Roots) -> Option<Roots> {
        match &self.0 {
            None => Some(all.clone()),
            Some(narrow) => narrow.roots.within(all),
        }
    }

    /// Returns how many sessions are to be seen.
    pub(crate) fn count(&self, catalogue: &Catalogue) -> u64 {
        match &self.0 {
            None => catalogue.len() as u64,
            Some(_) => {
                catalogue.after(None).filter(|(_, card)| self.admits(card.cwd.as_deref())).count() as u64
            }
        }
    }

    /// Returns whether not everything is to be seen.
    pub(crate) fn is_narrow(&self) -> bool {
        self.0.is_some()
    }

    /// Takes what there is for a caller, frame by frame, as [`Hub::take`](crate::hub::Hub::take) does.
    pub(crate) fn take(
        &self,
        keeper: &Keeper,
        cursor: &mut Cursor,
        interest: &Interest,
        bytes: usize,
    ) -> Option<Vec<Frame>> {
        loop {
            let before = *cursor;
            let frames = self.of(keeper, keeper.hub.take_told(cursor, interest, bytes)?);
            // What was not for this caller is passed over.
            if !frames.is_empty() || *cursor == before {
                return Some(frames);
            }
        }
    }

    /// Returns what a new subscription of a caller has to catch up with; `None` if some of it is no longer here.
    pub(crate) fn between(
        &self,
        keeper: &Keeper,
        from: Cursor,
        to: Cursor,
        interest: &Interest,
    ) -> Option<Vec<Frame>> {
        Some(self.of(keeper, keeper.hub.between(from, to, interest)?))
    }

    fn of(&self, keeper: &Keeper, events: Vec<(Arc<str>, Frame)>) -> Vec<Frame> {
        if self.0.is_none() {
            return events.into_iter().map(|(_, frame)| frame).collect();
        }
        let is_for = |(topic, frame): &(Arc<str>, Frame)| {
            let session = topic.strip_prefix("session:").unwrap_or_default();
            let listed = keeper.catalogue().find(None, session).map(|known| known.card.cwd.clone());
            // One that is gone says itself where it was.
            self.admits(listed.unwrap_or_else(|| place_in(frame)).as_deref())
        };
        events.into_iter().filter(is_for).map(|(_, frame)| frame).collect()
    }
}

/// Returns the directory that an event names.
fn place_in(frame: &Frame) -> Option<String> {
    #[derive(Deserialize)]
    struct Told {
        data: Data,
    }
    #[derive(Deserialize)]
    struct Data {
        cwd: Option<String>,
    }
    serde_json::from_slice::<Told>(frame.json()).ok()?.data.cwd
}
