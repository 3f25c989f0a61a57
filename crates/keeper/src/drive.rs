//! Sessions that this keeper drives: at most one agent each, started when it is needed and ended when it is idle.

mod agent;
mod begin;
mod driver;
mod hearing;
mod partial;
mod process;
mod taken;
mod turn;
mod turns;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) use begin::Begin;
pub(crate) use driver::Driver;
pub(crate) use process::{Doubt, Ending};
pub(crate) use turn::{IMAGE, IMAGES, Mode, Part, Turn};

/// The sessions that are driven, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Drivers(Mutex<HashMap<String, Arc<Driver>>>);

impl Drivers {
    pub(crate) fn get(&self, session: &str) -> Option<Arc<Driver>> {
        self.all().get(session).cloned()
    }

    /// Returns the driver of a session, and makes one if there is none.
    pub(crate) fn get_or_begin(&self, session: &str, begin: impl FnOnce() -> Driver) -> Arc<Driver> {
        Arc::clone(self.all().entry(session.to_owned()).or_insert_with(|| Arc::new(begin())))
    }

    pub(crate) fn remove(&self, session: &str) -> Option<Arc<Driver>> {
        self.all().remove(session)
    }

    pub(crate) fn list(&self) -> Vec<Arc<Driver>> {
        self.all().values().cloned().collect()
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Arc<Driver>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
