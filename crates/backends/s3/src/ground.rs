//! What a place must be before anything is kept there.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use bytes::Bytes;
use rethread_store::{Error, Result};

use crate::bucket::{Bucket, Expected, Got};
use crate::failure::{Failure, Unconditional, backend};
use crate::layout::{self, MARKER, VERSION};

/// No object has this tag.
const NOBODYS: &str = "\"00000000000000000000000000000000\"";

/// What is known of a place.
#[derive(Debug, Default)]
pub(crate) struct Ground {
    known: AtomicU8,
    /// The server was asked to break a promise, and did not.
    is_tried: AtomicBool,
    /// Somebody has looked, and there was nothing yet.
    is_empty: AtomicBool,
}

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

impl Ground {
    /// Returns whether there is something that can be read.
    pub(crate) async fn is_laid(&self, bucket: &Bucket) -> Result<bool> {
        if self.known.load(Ordering::Acquire) >= READABLE {
            return Ok(true);
        }
        let is_laid = look(bucket).await?;
        if is_laid {
            self.known.fetch_max(READABLE, Ordering::AcqRel);
        }
        self.is_empty.store(!is_laid, Ordering::Release);
        Ok(is_laid)
    }

    /// The same for whoever wants to know all that is there, as a keeper does when it starts: a server that ignores
    /// conditions is refused then, not when somebody's first message comes.
    pub(crate) async fn is_sound(&self, bucket: &Bucket) -> Result<bool> {
        let is_laid = self.is_laid(bucket).await?;
        if self.known.load(Ordering::Acquire) == WRITABLE || self.is_tried.load(Ordering::Acquire) {
            return Ok(is_laid);
        }
        match broken_promise(bucket, is_laid).await {
            Ok(Some(promise)) => return Err(bucket.unfit(promise)),
            Ok(None) if is_laid => {
                self.known.fetch_max(WRITABLE, Ordering::AcqRel);
            }
            // Whoever may only read cannot try it, and does no harm by reading.
            Ok(None) | Err(Failure::Forbidden(_)) => {}
            Err(failure) => return Err(untried(bucket, failure)),
        }
        self.is_tried.store(true, Ordering::Release);
        Ok(is_laid)
    }

    /// Makes sure that something can be kept: a server that ignores conditions would let two writers overwrite each
    /// other, and each would be told that all is well.
    pub(crate) async fn lay(&self, bucket: &Bucket) -> Result<()> {
        if self.known.load(Ordering::Acquire) >= WRITABLE {
            return Ok(());
        }
        // Where nothing was a moment ago it is made. Should another have been faster, what it made is looked at first.
        if self.is_empty.swap(false, Ordering::AcqRel) || !self.is_laid(bucket).await? {
            let made = bucket.is_put_against(MARKER, &Expected::Absent, mark()).await;
            if !made.map_err(|failure| untried(bucket, failure))? {
                self.is_laid(bucket).await?;
            }
        }
        match broken_promise(bucket, true).await {
            Ok(None) => {}
            Ok(Some(promise)) => return Err(bucket.unfit(promise)),
            Err(failure) => return Err(untried(bucket, failure)),
        }
        self.known.fetch_max(WRITABLE, Ordering::AcqRel);
        Ok(())
    }
}

/// What the marker says: the same every time, so that it does no harm if it is written although it should not be.
fn mark() -> Bytes {
    Bytes::from(format!("rethread {VERSION}\n"))
}

/// Returns what to say of a server that could not be tried.
fn untried(bucket: &Bucket, failure: Failure) -> Error {
    match failure {
        Failure::Refused(source) => {
            backend("use", Unconditional { place: bucket.place().to_owned(), source })
        }
        failure => failure.told("write to", bucket.place()),
    }
}

/// Asks the server for what it must refuse; returns how it would let writers down if it does it. Nothing is made by that
/// where the marker is; where it is not, an object of its own is there for as long as that takes.
async fn broken_promise(bucket: &Bucket, is_laid: bool) -> Result<Option<&'static str>, Failure> {
    if is_laid {
        return broken_about(bucket, MARKER).await;
    }
    let key = layout::tried();
    bucket.is_put_against(&key, &Expected::Absent, mark()).await?;
    let broken = broken_about(bucket, &key).await;
    // It does no harm to anybody, should this caller be one who may not delete.
    let _ = bucket.delete(&[key]).await;
    broken
}

/// The same, about an object that is there.
async fn broken_about(bucket: &Bucket, key: &str) -> Result<Option<&'static str>, Failure> {
    if bucket.is_put_against(key, &Expected::Absent, mark()).await? {
        return Ok(Some("ignores If-None-Match, so appends at once would overwrite each other"));
    }
    if bucket.is_put_against(key, &Expected::Etag(NOBODYS.into()), mark()).await? {
        return Ok(Some("ignores If-Match, so changes at once would overwrite each other"));
    }
    Ok(None)
}

async fn look(bucket: &Bucket) -> Result<bool> {
    let Got::Object(mark) = bucket.get(MARKER, None, None).await? else { return Ok(false) };
    let text = String::from_utf8_lossy(&mark.bytes);
    match text.trim().strip_prefix("rethread ").map(str::parse::<u32>) {
        Some(Ok(version)) if version <= VERSION => Ok(true),
        Some(Ok(version)) => Err(Error::NewerFormat { found: version.to_string(), known: VERSION }),
        _ => {
            let what = format!("{}/{MARKER}", bucket.place().trim_end_matches('/'));
            Err(Error::Damaged { what, reason: "it is not what says that sessions are kept there".into() })
        }
    }
}
