//! A connection while somebody uses it.

use std::time::Duration;

use deadpool::managed::Object;
use tokio::time::error::Elapsed;

use crate::connection::{Connection, Maker};
use crate::failure::Failure;
use crate::limbo::Limbo;

/// What a connection is lent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Read,
    Write,
}

/// A connection that was lent for one call.
///
/// If the call comes to no known end, be it that nobody waits for it any more, the connection is not used again; and if
/// it was to write, it is in limbo from then on.
pub(crate) struct Lent<'a> {
    /// `None` only when it was given back.
    object: Option<Object<Maker>>,
    purpose: Purpose,
    limbo: &'a Limbo,
    place: &'a str,
    patience: Duration,
}

impl<'a> Lent<'a> {
    pub(crate) fn new(
        object: Object<Maker>,
        purpose: Purpose,
        limbo: &'a Limbo,
        place: &'a str,
        patience: Duration,
    ) -> Self {
        Self { object: Some(object), purpose, limbo, place, patience }
    }

    /// Returns the connection.
    pub(crate) fn connection(&self) -> Connection {
        match &self.object {
            Some(object) => Connection::clone(object),
            None => unreachable!("it is given back only by those who own it"),
        }
    }

    /// Gives the connection back, if it may be used again, and says how the call ended.
    pub(crate) fn end<T>(
        mut self,
        action: &'static str,
        answer: Result<Result<T, tokio_postgres::Error>, Elapsed>,
    ) -> Result<T, Failure> {
        let failure = match answer {
            Ok(Ok(answer)) => {
                self.object = None;
                return Ok(answer);
            }
            Ok(Err(error)) => Failure::new(action, self.place, error),
            Err(_) => Failure::late(action, self.place, self.patience),
        };
        if !failure.is_uncertain() {
            // A transaction may be open on it, which ends with it.
            self.purpose = Purpose::Read;
        }
        Err(failure)
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(object) = self.object.take() else { return };
        let connection = Object::take(object);
        if self.purpose == Purpose::Write {
            self.limbo.add(connection.name());
        }
    }
}
