//! What one backend is told of what another appends.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use pollster::block_on;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_store::backend::{
    Append, Backend, Durability, Expect, From, Hint, Hints, Key, LogKey, LogName, Position, Target,
};
use rethread_testkit::Postgres;

use crate::kit::{installed, line, messages, on, server};
use crate::overheard::Overheard;
use crate::proxy::Proxy;

/// How long something may take that has to come.
const PATIENCE: Duration = Duration::from_secs(60);

fn append(backend: &PostgresBackend, log: &LogKey, at: Position) {
    let appended = block_on(backend.append(log, at, &[line(at, &format!("e{at}"))], Durability::Synced));
    assert!(matches!(appended, Ok(Append::Done { .. })), "{appended:?}");
}

fn session(name: &str) -> Hint {
    Hint::Session(name.parse().unwrap())
}

fn next(hints: &Hints) -> Hint {
    let begun = Instant::now();
    loop {
        match hints.try_recv() {
            Ok(hint) => return hint,
            Err(_) => assert!(begun.elapsed() < PATIENCE && !hints.is_closed(), "no hint"),
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits for a hint; the same may come twice, and some for nothing.
fn wait_for(hints: &Hints, expected: &Hint) {
    while next(hints) != *expected {}
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "still not: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn what_one_backend_appends_or_removes_is_hinted_at_another() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    let (one, other) = (on(&url), on(&url));
    let hints = other.hints().unwrap();
    assert_eq!(next(&hints), Hint::Everything);
    // Only of messages is anything said.
    append(&one, &LogKey::new("a".parse().unwrap(), LogName::Transcript), 0);
    for at in 0..3 {
        append(&one, &messages("s"), at);
        assert_eq!(next(&hints), session("s"));
        let read = block_on(other.read(&messages("s"), From::Position(at), 1)).unwrap();
        assert_eq!(read.next, at + 1, "a hint comes after what it is about");
    }
    append(&other, &messages("own"), 0);
    assert_eq!(next(&hints), session("own"));
    assert!(block_on(one.remove(&Target::Session("s".parse().unwrap()))).unwrap());
    assert_eq!(next(&hints), session("s"));
}

#[test]
fn what_is_appended_in_another_database_is_not_hinted_at() {
    let Some(server) = server() else { return };
    let (here, there) = (on(&server.fresh()), on(&server.fresh()));
    let hints = here.hints().unwrap();
    assert_eq!(next(&hints), Hint::Everything);
    append(&there, &messages("there"), 0);
    append(&here, &messages("here"), 0);
    assert_eq!(next(&hints), session("here"));
}

#[test]
fn a_thousand_appends_make_a_notification_every_fifty_milliseconds_at_most() {
    let Some(server) = server() else { return };
    let url = server.fresh();
    let (overheard, backend) = (Overheard::on(&url), on(&url));
    let begun = Instant::now();
    for at in 0..250 {
        for log in ["a", "b", "c", "d"].map(messages) {
            append(&backend, &log, at);
        }
    }
    append(&backend, &messages("end"), 0);
    wait_until("the last one is told", || overheard.all().iter().any(|said| said.contains("end")));
    let (said, most) = (overheard.all(), begun.elapsed().as_millis() / 50 + 1);
    assert!(said.len() as u128 <= most && said.len() < 500, "{} of {most}", said.len());
    let names: BTreeSet<_> = said.iter().flat_map(|said| said.split(' ')).collect();
    assert_eq!(names, BTreeSet::from(["a", "b", "c", "d", "end"]));
}

#[test]
fn whoever_listens_to_a_server_that_is_killed_is_told_of_everything_and_goes_on() {
    let Some(server) = installed(Postgres::start(&[], &[])) else { return };
    let url = server.fresh();
    let (one, other) = (on(&url), on(&url));
    let hints = other.hints().unwrap();
    wait_for(&hints, &Hint::Everything);
    append(&one, &messages("before"), 0);
    wait_for(&hints, &session("before"));
    for kill in 0..2 {
        server.kill();
        assert!(hints.is_empty());
        server.restart();
        wait_for(&hints, &Hint::Everything);
        append(&one, &messages("after"), kill);
        wait_for(&hints, &session("after"));
    }
}

#[test]
fn a_connection_that_died_without_a_sound_is_noticed() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let mut settings = Settings::parse(&proxy.url(&database)).unwrap();
    settings.patience = Duration::from_millis(700);
    let (backend, other) = (PostgresBackend::new(settings).unwrap(), on(&server.url(&database)));
    let hints = backend.hints().unwrap();
    wait_for(&hints, &Hint::Everything);
    proxy.keep_back();
    wait_for(&hints, &Hint::Everything);
    append(&other, &messages("s"), 0);
    wait_for(&hints, &session("s"));
}

#[test]
fn a_connection_ends_with_the_hints_and_hints_end_with_the_backend() {
    let Some(server) = server() else { return };
    let database = server.database();
    let connections = || {
        let sql = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{database}'");
        server.sql("postgres", &sql)
    };
    let backend = on(&server.url(&database));
    let (one, other) = (backend.hints().unwrap(), backend.hints().unwrap());
    assert_eq!((next(&one), next(&other)), (Hint::Everything, Hint::Everything));
    assert_eq!(connections(), "2");
    drop(one);
    wait_until("one connection ended", || connections() == "1");
    append(&backend, &messages("s"), 0);
    assert_eq!(next(&other), session("s"));
    drop(backend);
    assert!(other.recv_blocking().is_err());
    wait_until("all connections ended", || connections() == "0");
}

#[test]
fn hints_that_nobody_takes_lose_nothing_but_detail() {
    let Some(server) = server() else { return };
    let database = server.database();
    let backend = on(&server.url(&database));
    let hints = backend.hints().unwrap();
    assert_eq!(next(&hints), Hint::Everything);
    let tell = |names: &str| {
        let sql = "SELECT pg_notify('rethread_appended', 's' || n) FROM generate_series";
        server.sql(&database, &format!("{sql}({names}) AS n"));
    };
    tell("1, 100");
    wait_until("there is no more room", || hints.is_full());
    tell("101, 5000");
    // Each is told, or everything is after it was said.
    let mut told = BTreeSet::new();
    while told.len() < 5000 {
        match next(&hints) {
            Hint::Session(session) => told.insert(session.to_string()),
            Hint::Everything => break,
        };
    }
    assert!(told.len() >= 16, "those that waited in the channel: {told:?}");
    // Once all is heard, sessions are told apart again; until then it is part of everything.
    for at in 0.. {
        append(&backend, &messages("after"), at);
        let is_told = |hint: &Hint| *hint == session("after") || *hint == Hint::Everything;
        if std::iter::repeat_with(|| next(&hints)).find(is_told) == Some(session("after")) {
            break;
        }
    }
}

#[test]
fn an_append_does_not_wait_for_a_notifier_that_gets_no_connection() {
    let Some(server) = server() else { return };
    let (proxy, database) = (Proxy::to(server.port()), server.database());
    let settings = Settings::parse(&proxy.url(&database)).unwrap();
    let (patience, backend) = (settings.patience, PostgresBackend::new(settings).unwrap());
    let listening = on(&server.url(&database));
    let hints = listening.hints().unwrap();
    assert_eq!(next(&hints), Hint::Everything);
    // From now on there is one connection, and no other comes through.
    block_on(backend.put(&Key::store("format").unwrap(), b"1", Expect::Any)).unwrap();
    proxy.leave_waiting();
    let begun = Instant::now();
    for at in 0..100 {
        append(&backend, &messages("s"), at);
    }
    assert!(begun.elapsed() < patience);
    wait_until("the notifier tries", || proxy.waiting() > 0);
    assert!(hints.is_empty());
    proxy.turn_away();
    assert_eq!(next(&hints), session("s"), "it tries again");
}
