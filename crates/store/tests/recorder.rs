//! What an agent loop is promised by its recorder.

mod auto_save;
mod example;
mod moody;
mod persist;
mod resume;
mod trouble;

use std::sync::Arc;
use std::time::{Duration, Instant};

use rethread_store::{Options, Recorder, Recording, Result, Store};

use self::moody::Moody;
use crate::kit::run;

/// A store on a backend whose mood the test decides.
fn moody_store() -> (Arc<Moody>, Store) {
    let backend = Arc::new(Moody::default());
    (backend.clone(), Store::on(backend, Options::default()))
}

#[expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]
fn begin(store: &Store, recording: Recording) -> Recorder {
    run(Recorder::initialize(Some(store.clone()), recording)).unwrap()
}

/// A recording whose waits end soon.
fn impatient() -> Recording {
    Recording { patience: Duration::from_millis(100), ..Recording::default() }
}

/// Tries until something succeeds, which it must before long.
#[track_caller]
fn soon<T>(what: &str, attempt: impl Fn() -> Result<T>) -> T {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(done) => return done,
            Err(error) => assert!(started.elapsed() < Duration::from_secs(20), "{what}: {error}"),
        }
    }
}

/// Waits until something holds, which it must before long.
#[track_caller]
fn eventually(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
