//! Finds secrets in sessions, and takes them out.
//!
//! Agents read `.env` files, print environments and are handed keys in prompts, and all of it lands in transcripts. A
//! [`Redactor`] knows what the keys and tokens of the usual providers look like, private keys, passwords in URLs, and
//! random values that are assigned to a name such as `API_TOKEN`.
//!
//! ```
//! use rethread_redact::Redactor;
//!
//! let line = r#"{"text":"export GITHUB_TOKEN=ghp_0123456789abcdefghijABCDEFGHIJ012345"}"#;
//! assert_eq!(Redactor::new().redact(line), r#"{"text":"export GITHUB_TOKEN=[redacted github-token]"}"#);
//! ```
//!
//! It works on JSON text as it stands: what it takes out never has a bare quote, nor half an escape, so that a line stays one.

mod private_key;
mod redactor;
mod rule;

pub use redactor::{Finding, Redactor};
