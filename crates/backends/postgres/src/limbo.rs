//! Connections that ended, or went silent, before the server had said what became of a write.
//!
//! What was sent on such a connection may still be carried out, however late. So nothing is asked of the database until
//! the server has ended them: from then on, what is there is there, and what is not will not come.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rethread_store::{Error, Result};

use crate::connection::Connection;
use crate::failure::at;

/// How long the server may take to end one.
const ENDING: Duration = Duration::from_secs(5);

/// The names of such connections.
#[derive(Debug, Default)]
pub(crate) struct Limbo(Mutex<Vec<String>>);

impl Limbo {
    pub(crate) fn add(&self, name: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(name.to_owned());
    }

    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Has the server end them all.
    pub(crate) async fn clear(&self, connection: &Connection, place: &str) -> Result<()> {
        let (names, patience) = (self.names(), ENDING.as_millis() as i64);
        let sql =
            "SELECT pg_terminate_backend(pid, $2) FROM pg_stat_activity WHERE application_name = ANY($1)";
        let ended = connection.ask(sql, &[&names, &patience]).await;
        let ended = ended.map_err(|error| at("end a lost connection to", place, error))?;
        if ended.iter().any(|row| !row.get::<_, bool>(0)) {
            let holder = "a connection that was lost".into();
            return Err(Error::Busy { what: place.to_owned(), holder, waited: ENDING });
        }
        let mut limbo = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        limbo.retain(|name| !names.contains(name));
        Ok(())
    }
}
