//! Backends on the server that all tests share, and what is put into them.

use pollster::block_on;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_store::backend::{LogKey, LogName, Position};
use rethread_store::{Entry, Kind, Line, NewSession, Options, Session, Stamp, Store};
use rethread_testkit::{Postgres, cannot};

/// Returns the server, unless it is not installed.
pub(crate) fn server() -> Option<&'static Postgres> {
    installed(Postgres::shared())
}

/// Says so if PostgreSQL is not installed.
pub(crate) fn installed<T>(server: Option<T>) -> Option<T> {
    if server.is_none() {
        cannot("PostgreSQL is not installed: apt-get install postgresql");
    }
    server
}

/// Returns a backend on a database.
pub(crate) fn on(url: &str) -> PostgresBackend {
    PostgresBackend::new(Settings::parse(url).unwrap()).unwrap()
}

/// Returns a store on a database, with a session in it.
pub(crate) fn store_on(url: &str) -> (Store, Session) {
    let store = Store::new(on(url), Options::default());
    let session = block_on(store.create(NewSession::default().id("s".parse().unwrap()))).unwrap();
    (store, session)
}

pub(crate) fn entry(id: &str) -> Entry {
    Entry::parse(format!(r#"{{"uuid":"{id}","text":"hi"}}"#)).unwrap()
}

/// Returns the ids of a session's entries, in order.
pub(crate) fn ids(session: &Session) -> Vec<String> {
    let history = block_on(session.messages()).unwrap();
    history.entries().map(|entry| entry.id().to_string()).collect()
}

/// Returns the log of messages of a session.
pub(crate) fn messages(session: &str) -> LogKey {
    LogKey::new(session.parse().unwrap(), LogName::Messages)
}

/// Returns a record that stands alone.
pub(crate) fn line(position: Position, id: &str) -> Line {
    let stamp = Stamp {
        position,
        parent: position.checked_sub(1),
        depth: position + 1,
        kind: Kind::Entry,
        id: id.parse().unwrap(),
        left: 0,
        unsettled: 0,
    };
    Line::new(&entry(id), stamp)
}
