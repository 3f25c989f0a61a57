//! Backends on the server that all tests share.

use rethread_postgres::{PostgresBackend, Settings};
use rethread_testkit::{Postgres, cannot};

/// Returns the server, unless it is not installed.
pub(crate) fn server() -> Option<&'static Postgres> {
    let server = Postgres::shared();
    if server.is_none() {
        cannot("PostgreSQL is not installed: apt-get install postgresql");
    }
    server
}

/// Returns a backend on a database.
pub(crate) fn on(url: &str) -> PostgresBackend {
    PostgresBackend::new(Settings::parse(url).unwrap()).unwrap()
}
