//! What a place must be before anything is kept there.

use std::sync::atomic::{AtomicU8, Ordering};

use bytes::Bytes;
use rethread_store::{Error, Result};

use crate::bucket::{Bucket, Expected, Got, Replaced};
use crate::layout::{MARKER, VERSION};

/// No object has this tag.
const NOBODYS: &str = "\"00000000000000000000000000000000\"";

/// What is known of a place.
#[derive(Debug, Default)]
pub(crate) struct Ground(AtomicU8);

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

impl Ground {
    /// Returns whether there is something that can be read.
    pub(crate) async fn is_laid(&self, bucket: &Bucket) -> Result<bool> {
        if self.0.load(Ordering::Acquire) >= READABLE {
            return Ok(true);
        }
        let is_laid = look(bucket).await?;
        if is_laid {
            self.0.fetch_max(READABLE, Ordering::AcqRel);
        }
        Ok(is_laid)
    }

    /// Makes sure that something can be kept: a server that ignores conditions would let two writers overwrite each
    /// other, and each would be told that all is well.
    pub(crate) async fn lay(&self, bucket: &Bucket) -> Result<()> {
        if self.0.load(Ordering::Acquire) >= WRITABLE {
            return Ok(());
        }
        let mark = Bytes::from(format!("rethread {VERSION}\n"));
        let put = |expected: Expected| {
            let mark = mark.clone();
            async move { bucket.replace(MARKER, &expected, mark).await }
        };
        // It says the same every time, so that it does no harm if it is written although it should not be.
        if !look(bucket).await? {
            put(Expected::Absent).await?;
        }
        if let Replaced::Done(_) = put(Expected::Absent).await? {
            return Err(bucket.unfit("ignores If-None-Match, so appends at once would overwrite each other"));
        }
        if let Replaced::Done(_) = put(Expected::Etag(NOBODYS.into())).await? {
            return Err(bucket.unfit("ignores If-Match, so changes at once would overwrite each other"));
        }
        self.0.fetch_max(WRITABLE, Ordering::AcqRel);
        Ok(())
    }
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
