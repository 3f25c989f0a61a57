//! What a place must be before anything is kept there.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use rethread_store::backend::Version;
use rethread_store::{Error, Result};

use crate::bucket::{Bucket, Expected, Got, Object};
use crate::documents::Draft;
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
    /// What the marker was when somebody last looked. A server is tried with it, so that it does no harm if that is written
    /// although it should not be.
    mark: Mutex<Bytes>,
}

/// How often the marker is put where others are at it.
const ATTEMPTS: usize = 5;

const READABLE: u8 = 1;
const WRITABLE: u8 = 2;

impl Ground {
    /// Returns whether there is something that can be read.
    pub(crate) async fn is_laid(&self, bucket: &Bucket) -> Result<bool> {
        if self.known.load(Ordering::Acquire) >= READABLE {
            return Ok(true);
        }
        Ok(self.look(bucket).await?.is_some())
    }

    /// Looks at what says that the place is ours.
    pub(crate) async fn look(&self, bucket: &Bucket) -> Result<Option<Object>> {
        let Got::Object(mark) = bucket.get(MARKER, None, None).await? else {
            self.is_empty.store(true, Ordering::Release);
            return Ok(None);
        };
        check(bucket, &mark.bytes)?;
        self.keep(mark.bytes.clone());
        self.is_empty.store(false, Ordering::Release);
        self.known.fetch_max(READABLE, Ordering::AcqRel);
        Ok(Some(mark))
    }

    /// The same for whoever wants to know all that is there, as a keeper does when it starts: a server that ignores
    /// conditions is refused then, not when somebody's first message comes.
    pub(crate) async fn is_sound(&self, bucket: &Bucket) -> Result<bool> {
        let is_laid = self.is_laid(bucket).await?;
        if self.known.load(Ordering::Acquire) == WRITABLE || self.is_tried.load(Ordering::Acquire) {
            return Ok(is_laid);
        }
        match self.broken_promise(bucket, is_laid).await {
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
        self.lay_with(bucket, &Draft::blank()).await.map(drop)
    }

    /// The same. Where nothing is yet, this document becomes the marker; then its version is returned.
    pub(crate) async fn lay_with(&self, bucket: &Bucket, draft: &Draft) -> Result<Option<Version>> {
        if self.known.load(Ordering::Acquire) >= WRITABLE {
            return Ok(None);
        }
        let mut made = None;
        // Where nothing was a moment ago it is made. Should another have been faster, what it made is looked at first.
        let mut is_there = !self.is_empty.swap(false, Ordering::AcqRel) && self.is_laid(bucket).await?;
        for _ in 0..ATTEMPTS {
            if is_there {
                break;
            }
            let put = bucket.put_if(MARKER, &Expected::Absent, draft.content().clone()).await;
            is_there = match put.map_err(|failure| untried(bucket, failure))? {
                Some(etag) => {
                    made = Some(Version(bucket.etag(etag)?));
                    self.keep(draft.content().clone());
                    true
                }
                // Refused, and perhaps not there yet: some servers say so while another is at it.
                None => self.is_laid(bucket).await?,
            };
        }
        match self.broken_promise(bucket, is_there).await {
            Ok(None) if !is_there => return Err(Error::Contended(bucket.place().to_owned())),
            Ok(None) => {}
            Ok(Some(promise)) => {
                if made.is_some() {
                    let _ = bucket.delete(&[MARKER.to_owned()]).await;
                }
                return Err(bucket.unfit(promise));
            }
            Err(failure) => return Err(untried(bucket, failure)),
        }
        self.known.fetch_max(WRITABLE, Ordering::AcqRel);
        Ok(made)
    }

    fn keep(&self, mark: Bytes) {
        *self.mark.lock().unwrap_or_else(PoisonError::into_inner) = mark;
    }

    /// Asks the server for what it must refuse; returns how it would let writers down if it does it. Nothing is made by
    /// that where the marker is; where it is not, an object of its own is there for as long as that takes.
    async fn broken_promise(&self, bucket: &Bucket, is_laid: bool) -> Result<Option<&'static str>, Failure> {
        if is_laid {
            let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner).clone();
            return broken_about(bucket, MARKER, mark).await;
        }
        let (key, content) = (layout::tried(), Draft::blank().content().clone());
        bucket.is_put_against(&key, &Expected::Absent, content.clone()).await?;
        let broken = broken_about(bucket, &key, content).await;
        // It does no harm to anybody, should this caller be one who may not delete.
        let _ = bucket.delete(&[key]).await;
        broken
    }
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

/// The same, about an object that is there, and what it is.
async fn broken_about(bucket: &Bucket, key: &str, content: Bytes) -> Result<Option<&'static str>, Failure> {
    if bucket.is_put_against(key, &Expected::Absent, content.clone()).await? {
        return Ok(Some("ignores If-None-Match, so appends at once would overwrite each other"));
    }
    if bucket.is_put_against(key, &Expected::Etag(NOBODYS.into()), content).await? {
        return Ok(Some("ignores If-Match, so changes at once would overwrite each other"));
    }
    Ok(None)
}

/// Makes sure that a marker is one, of a layout that this program knows.
fn check(bucket: &Bucket, mark: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(mark);
    let version = text.lines().next().and_then(|line| line.strip_prefix("rethread ")?.split(' ').next());
    match version.map(str::parse::<u32>) {
        Some(Ok(version)) if version <= VERSION => Ok(()),
        Some(Ok(version)) => Err(Error::NewerFormat { found: version.to_string(), known: VERSION }),
        _ => {
            let what = format!("{}/{MARKER}", bucket.place().trim_end_matches('/'));
            Err(Error::Damaged { what, reason: "it is not what says that sessions are kept there".into() })
        }
    }
}
