//! JSON as programs nearly always write it, read by hand: [`PlainJson`].
#![warn(missing_docs)]

mod plain_json;

pub use plain_json::{PlainJson, once};
