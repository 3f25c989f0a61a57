//! The contract of [`Backend`] as a suite: run it on every implementation, and through every wrapper around one.
//!
//! Each rule is a sentence. What breaks one panics, and the message begins with it.
//!
//! The suite calls the backend from plain threads, as the store does: a backend that needs an async runtime
//! brings its own. Where several threads compete, [`Error::Busy`](crate::Error::Busy) and
//! [`Error::Contended`](crate::Error::Contended) are taken as "nothing was done, try again"; any other error is
//! a broken rule.
//!
//! # Example
//!
//! ```
//! use std::sync::Arc;
//!
//! use rethread_store::{MemoryBackend, conformance};
//!
//! pollster::block_on(async {
//!     conformance::backend(MemoryBackend::default).await;
//!     conformance::handles(|| {
//!         let backend = Arc::new(MemoryBackend::default());
//!         (backend.clone(), backend)
//!     })
//!     .await;
//! });
//! ```

mod blobs;
mod contention;
mod documents;
mod driving;
mod handles;
mod listing;
mod logs;
mod reading;
mod record;
mod removal;
mod rule;

use self::rule::Rule;
use crate::backend::Backend;

/// Checks the whole contract on one handle; `fresh` gives an empty backend every time.
pub async fn backend<B: Backend>(fresh: impl Fn() -> B) {
    let rule = Rule("a backend that keeps nothing is exempt, and is not run through the suite");
    let capabilities = fresh().capabilities();
    rule.check(capabilities.keeps, &capabilities);
    documents(&fresh).await;
    logs(&fresh).await;
    blobs(&fresh).await;
    listing(&fresh).await;
}

/// Checks only what the contract says of documents.
pub async fn documents<B: Backend>(fresh: impl Fn() -> B) {
    documents::alone(&fresh()).await;
    documents::apart(&fresh()).await;
    documents::contended(&fresh()).await;
}

/// Checks only what the contract says of logs.
pub async fn logs<B: Backend>(fresh: impl Fn() -> B) {
    logs::empty(&fresh()).await;
    logs::appended(&fresh()).await;
    logs::opaque(&fresh()).await;
    logs::apart(&fresh()).await;
    logs::searched(&fresh()).await;
    logs::maintained(&fresh()).await;
    reading::paged(&fresh()).await;
    reading::from_the_end(&fresh()).await;
    reading::grouped(&fresh()).await;
    let alone = fresh();
    logs::begun_by_another(&alone, &alone).await;
    contention::one_position(&fresh());
    contention::one_log(&fresh());
    contention::read_while_written(&fresh());
}

/// Checks only what the contract says of blobs.
pub async fn blobs<B: Backend>(fresh: impl Fn() -> B) {
    blobs::stored(&fresh()).await;
    blobs::refused(&fresh()).await;
    blobs::contended(&fresh());
}

/// Checks only what the contract says of listing and removal.
pub async fn listing<B: Backend>(fresh: impl Fn() -> B) {
    listing::paged(&fresh()).await;
    listing::dated(&fresh()).await;
    removal::documents_and_blobs(&fresh()).await;
    removal::stale_blobs(&fresh()).await;
    removal::stale_blobs_contended(&fresh());
    removal::sessions(&fresh()).await;
    removal::begun_again(&fresh()).await;
    removal::nothing_left(&fresh()).await;
    removal::contended(&fresh());
}

/// Checks that several handles on one place, as several processes have them, see one truth.
///
/// `open` gives two handles on one empty place every time. Run it wherever more than one process can open the
/// same place.
pub async fn handles<B: Backend + 'static>(open: impl Fn() -> (B, B)) {
    let (one, other) = open();
    handles::logs(&one, &other).await;
    let (one, other) = open();
    handles::documents_and_blobs(&one, &other).await;
    let (one, other) = open();
    handles::removal(&one, &other).await;
    let (one, other) = open();
    handles::replacement(&one, &other).await;
    let (one, other) = open();
    logs::begun_by_another(&one, &other).await;
    let (one, other) = open();
    handles::contended(&one, &other);
    driving(open).await;
}

/// Checks only who may drive a session, on handles as [`handles`] takes them.
pub async fn driving<B: Backend + 'static>(open: impl Fn() -> (B, B)) {
    let (one, other) = open();
    driving::taken_over(one, other).await;
    let (one, other) = open();
    driving::lapsed(one, other).await;
    let (one, other) = open();
    driving::contended(one, other).await;
}
