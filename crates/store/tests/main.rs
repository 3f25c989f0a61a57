//! The store, seen from outside.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod bundle;
mod care;
mod checklist;
mod conformance;
mod defects;
mod faulty_disk;
mod fire;
mod forks;
mod hanging;
mod headroom;
mod holes;
mod import;
mod journal;
mod kit;
mod listing;
mod long;
mod new_entries;
mod older_faults;
mod promises;
mod recorder;
mod redaction;
mod replica;
mod setbacks;
mod torn;
mod waiting;
