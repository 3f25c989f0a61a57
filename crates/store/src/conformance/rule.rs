//! One sentence of the contract, and the ways to hold a backend to it.

use std::fmt::{Debug, Display};
use std::panic::resume_unwind;
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::stamp::Line;

/// How much of a value a message shows: some are megabytes long.
const SHOWN: usize = 400;
/// How often a call is repeated that others keep from succeeding.
const TRIES: usize = 10_000;

/// One sentence of the contract. What breaks it panics with a message that begins with it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule(pub(super) &'static str);

impl Rule {
    /// Holds the backend to a condition; `found` is what it gave.
    #[track_caller]
    pub(super) fn check(self, holds: bool, found: impl Debug) {
        if !holds {
            self.broken(format!("found {}", shown(&found)));
        }
    }

    /// Holds the backend to a value.
    #[track_caller]
    pub(super) fn same<T: PartialEq + Debug>(self, found: T, expected: T) {
        if found != expected {
            self.broken(format!("found {}, expected {}", shown(&found), shown(&expected)));
        }
    }

    /// Holds the backend to lines, byte for byte.
    #[track_caller]
    pub(super) fn same_lines(self, found: &[Line], expected: &[Line]) {
        if let Some((found, expected)) = found.iter().zip(expected).find(|(found, line)| found != line) {
            self.broken(format!("found {}, expected {}", shown(found), shown(expected)));
        }
        self.check(found.len() == expected.len(), format!("{} lines of {}", found.len(), expected.len()));
    }

    /// Takes the answer of a call that has no reason to fail.
    #[track_caller]
    pub(super) fn ok<T>(self, result: Result<T>) -> T {
        match result {
            Ok(value) => value,
            Err(error) => self.broken(format!("the call failed: {}", causes(&error))),
        }
    }

    /// Repeats a call that may fail for no other reason than that others got there first.
    #[track_caller]
    pub(super) fn ok_in_turn<T>(self, mut call: impl FnMut() -> Result<T>) -> T {
        for _ in 0..TRIES {
            match call() {
                Err(Error::Busy { .. } | Error::Contended(_)) => thread::sleep(Duration::from_millis(1)),
                answer => return self.ok(answer),
            }
        }
        self.broken(format!("no turn in {TRIES} tries"))
    }

    /// Says how the rule was broken.
    #[track_caller]
    pub(super) fn broken(self, how: impl Display) -> ! {
        panic!("{}: {how}", self.0)
    }
}

/// Runs work on several threads that start at the same moment; a panic of one is passed on as it is.
pub(super) fn together<T: Send>(threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let start = Barrier::new(threads);
    thread::scope(|scope| {
        let run = |number| {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(number)
            })
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

/// Looks again and again while work goes on on another thread, and once after it has ended.
pub(super) fn meanwhile(work: impl FnOnce() + Send, mut look: impl FnMut()) {
    thread::scope(|scope| {
        let working = scope.spawn(work);
        loop {
            let last = working.is_finished();
            look();
            if last {
                break;
            }
        }
        working.join().unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(SHOWN) {
        Some((cut, _)) => format!("{}… ({} bytes)", &text[..cut], text.len()),
        None => text,
    }
}

fn causes(error: &Error) -> String {
    let (mut text, mut cause) = (error.to_string(), std::error::Error::source(error));
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
