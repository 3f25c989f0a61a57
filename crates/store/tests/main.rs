//! The store, seen from outside.

mod checklist;
mod conformance;
mod kit;
