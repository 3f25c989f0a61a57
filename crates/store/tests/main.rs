//! The store, seen from outside.

mod bundle;
mod checklist;
mod conformance;
mod faulty_disk;
mod forks;
mod hanging;
mod import;
mod kit;
mod promises;
mod recorder;
mod torn;
