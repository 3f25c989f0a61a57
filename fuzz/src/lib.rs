//! What is fuzzed: every reader of bytes that somebody else may have written.
//!
//! `fuzz_targets/` runs these functions under `cargo fuzz`, and `crates/store/tests/fire/replay.rs` takes this file in
//! by its path and runs them on everything in `corpus/`, in `make test`.
#![allow(clippy::expect_used, clippy::panic, reason = "a target that cannot go on has found something")]

mod agreement;
mod asides;
mod bundle;
mod caches;
mod checkpoint;
mod choices;
mod damage;
mod folder;
mod home;
mod journal;
mod line;
mod log;
mod memory_disk;
mod memory_file;
mod names;
mod notes;
mod reference;
mod sample;
mod segments;
mod soundness;
mod travel;
mod view;
mod wrapped_key;

pub use asides::asides;
pub use bundle::{bundle, sealed_bundle};
pub use caches::{caches, sealed_catalog, sealed_metadata};
pub use checkpoint::{plan, record};
pub use damage::damage;
pub use folder::folder;
pub use home::{Home, Whole, read_all};
pub use journal::journal;
pub use line::{entry, line};
pub use log::log;
pub use names::names;
pub use notes::notes;
pub use segments::segments;
pub use view::view;
pub use wrapped_key::wrapped_key;

/// A target: its name, which is that of its corpus, and what it does with an input.
pub type Target = (&'static str, fn(&[u8]));

/// Every target.
pub const TARGETS: &[Target] = &[
    ("line", line),
    ("entry", entry),
    ("log", log),
    ("damage", damage),
    ("segments", segments),
    ("journal", journal),
    ("caches", caches),
    ("sealed_catalog", sealed_catalog),
    ("sealed_metadata", sealed_metadata),
    ("asides", asides),
    ("notes", notes),
    ("bundle", bundle),
    ("sealed_bundle", sealed_bundle),
    ("folder", folder),
    ("names", names),
    ("view", view),
    ("record", record),
    ("plan", plan),
    ("wrapped_key", wrapped_key),
];
