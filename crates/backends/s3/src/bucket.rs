//! The objects below one place in a bucket: requests that are tried again, and whose end is known when they return.

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use object_store::aws::AmazonS3;
use object_store::list::{PaginatedListOptions, PaginatedListStore as _};
use object_store::multipart::{MultipartStore as _, PartId};
use object_store::path::Path;
use object_store::{
    GetOptions, GetRange, MultipartId, ObjectMeta, ObjectStore as _, ObjectStoreExt as _, PutMode,
    PutPayload, RetryConfig, UpdateVersion,
};
use rethread_store::{Error, Result};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::failure::{Failure, Unfit, backend, trouble};
use crate::limbo::{Limbo, Pending};
use crate::settings::Settings;
use crate::wire::{Clock, Connector};

/// How long to wait before a request is sent again, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// When a request that certainly changed nothing is given up.
const SOON: Duration = Duration::from_secs(5);
/// How many objects a page of a listing has at most.
pub(crate) const FULL_PAGE: usize = 1000;
/// How many bytes a second a way has that is slow and still in order.
const SLOW: usize = 64 << 10;

/// The objects below one place in a bucket.
#[derive(Debug)]
pub(crate) struct Bucket {
    store: Arc<AmazonS3>,
    place: String,
    prefix: String,
    patience: Duration,
    limbo: Limbo,
    pub(crate) clock: Clock,
    /// Its listings leave out the tags of objects.
    hides_tags: AtomicBool,
    /// Where the connections live; `None` only while this is dropped.
    runtime: Option<Runtime>,
}

/// An object, or a range of one.
#[derive(Debug)]
pub(crate) struct Object {
    pub(crate) etag: String,
    pub(crate) modified: Timestamp,
    pub(crate) bytes: Bytes,
}

/// What became of asking for an object.
#[derive(Debug)]
pub(crate) enum Got {
    Object(Object),
    Missing,
    /// It is as it is known to be.
    Unchanged,
    /// It is there, but not as long.
    Beyond,
}

/// In which state an object must be to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Absent,
    Etag(String),
}

/// What became of a replacement.
#[derive(Debug)]
pub(crate) enum Replaced {
    /// It is there, in this state.
    Done(String),
    /// It is in another state. Perhaps because of this very request: whoever is on the way may have sent it twice, and
    /// the answer to the first may have been lost. So whoever wants to know has to look.
    Conflict,
}

/// One name in a listing.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) etag: Option<String>,
    pub(crate) modified: Timestamp,
    pub(crate) size: u64,
}

/// Where a listing begins.
#[derive(Clone, Debug)]
pub(crate) enum Start {
    Beginning,
    /// After this name, whether there is such an object or not.
    After(String),
    /// Where a page ended, in the server's words.
    Page(String),
}

/// Part of a listing.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) entries: Vec<Entry>,
    /// Where it goes on, if it does.
    pub(crate) next: Option<Start>,
}

impl Bucket {
    pub(crate) fn new(settings: &Settings) -> Result<Self> {
        let (place, connector) = (settings.to_string(), Connector::default());
        let clock = connector.clock.clone();
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("rethread-s3").enable_all().build();
        let runtime = runtime.map_err(|error| backend("begin", error))?;
        // What is tried again, and when, is decided here: only here is known what a lost answer means.
        let never = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let store = settings.builder()?.with_retry(never).with_http_connector(connector).build();
        let store = Arc::new(store.map_err(|error| trouble("use", &place, error))?);
        let prefix = settings.prefix().to_owned();
        let limbo = Limbo::default();
        let (patience, hides_tags, runtime) = (settings.patience, AtomicBool::new(false), Some(runtime));
        Ok(Self { store, place, prefix, patience, limbo, clock, hides_tags, runtime })
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Returns an object, or a range of it, unless it is still in a known state.
    pub(crate) async fn get(
        &self,
        key: &str,
        range: Option<Range<u64>>,
        unless: Option<&str>,
    ) -> Result<Got> {
        self.make_certain(key).await?;
        let path = self.path(key)?;
        let range = range.map(|range| match range.end {
            u64::MAX => GetRange::Offset(range.start),
            _ => GetRange::Bounded(range),
        });
        let options = GetOptions { if_none_match: unless.map(str::to_owned), range, ..GetOptions::default() };
        let ask = || {
            let (store, path, options) = (self.store.clone(), path.clone(), options.clone());
            async move {
                let found = store.get_opts(&path, options).await?;
                let meta = found.meta.clone();
                Ok((meta, found.bytes().await?))
            }
        };
        // How long it is, is not known before; 8 MiB are more than most.
        match self.tries("read from", 8 << 20, ask).await.0 {
            Ok((meta, bytes)) => {
                let (modified, etag) = (modified(&meta), self.etag(meta.e_tag)?);
                Ok(Got::Object(Object { etag, modified, bytes }))
            }
            Err(Failure::Missing) => Ok(Got::Missing),
            Err(Failure::Unchanged) => Ok(Got::Unchanged),
            Err(Failure::Beyond) => Ok(Got::Beyond),
            Err(failure) => Err(failure.told("read from", &self.place)),
        }
    }

    /// Replaces an object, if it is in the state that is expected. Whoever gets an error does not know whether it was
    /// done; but the next call about the same object makes certain of it first.
    pub(crate) async fn replace(&self, key: &str, expected: &Expected, bytes: Bytes) -> Result<Replaced> {
        self.make_certain(key).await?;
        match self.send(key, expected, bytes.clone()).await {
            (Ok(etag), _) => Ok(Replaced::Done(self.etag(etag)?)),
            (Err(Failure::Conflict), _) => Ok(Replaced::Conflict),
            (Err(failure), is_uncertain) => {
                if is_uncertain {
                    self.limbo.add(key, Pending { expected: expected.clone(), bytes });
                }
                Err(failure.told("write to", &self.place))
            }
        }
    }

    /// Puts an object under a condition that does not hold, and returns whether it was put nevertheless.
    pub(crate) async fn is_put_against(
        &self,
        key: &str,
        condition: &Expected,
        bytes: Bytes,
    ) -> Result<bool, Failure> {
        Ok(self.put_if(key, condition, bytes).await?.is_some())
    }

    /// Puts an object under a condition, unless that does not hold. Returns its tag, as far as the server gave one.
    pub(crate) async fn put_if(
        &self,
        key: &str,
        condition: &Expected,
        bytes: Bytes,
    ) -> Result<Option<Option<String>>, Failure> {
        match self.send(key, condition, bytes).await.0 {
            Ok(etag) => Ok(Some(etag)),
            // Some say that there is none which the condition could be about.
            Err(Failure::Conflict | Failure::Missing) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Sends again what has no answer yet: then it is there, or something else is, and it never will be.
    async fn make_certain(&self, key: &str) -> Result<()> {
        while let Some(pending) = self.limbo.first(key) {
            match self.send(key, &pending.expected, pending.bytes.clone()).await.0 {
                Ok(_) | Err(Failure::Conflict) => self.limbo.remove(key, &pending),
                Err(failure) => return Err(failure.told("make certain of", &self.place)),
            }
        }
        Ok(())
    }

    /// Puts an object under a condition. Also says whether an earlier try may have been carried out.
    async fn send(
        &self,
        key: &str,
        expected: &Expected,
        bytes: Bytes,
    ) -> (Result<Option<String>, Failure>, bool) {
        let path = match self.path(key) {
            Ok(path) => path,
            Err(error) => return (Err(Failure::Refused(error)), false),
        };
        let mode = match expected {
            Expected::Absent => PutMode::Create,
            Expected::Etag(etag) => {
                PutMode::Update(UpdateVersion { e_tag: Some(etag.clone()), version: None })
            }
        };
        let put = || {
            let (store, path, mode, payload) =
                (self.store.clone(), path.clone(), mode.clone(), PutPayload::from(bytes.clone()));
            async move { Ok(store.put_opts(&path, payload, mode.into()).await?.e_tag) }
        };
        self.tries("write to", bytes.len(), put).await
    }

    /// Puts an object, whatever is there.
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<()> {
        let path = self.path(key)?;
        let put = || {
            let (store, path, payload) = (self.store.clone(), path.clone(), PutPayload::from(bytes.clone()));
            async move { store.put(&path, payload).await }
        };
        self.told("write to", self.tries("write to", bytes.len(), put).await.0).map(drop)
    }

    /// Deletes objects, as many at once as the server takes. One that is not there is no error.
    pub(crate) async fn delete(&self, keys: &[String]) -> Result<()> {
        if keys.is_empty() {
            return Ok(());
        }
        let paths = keys.iter().map(|key| self.path(key)).collect::<Result<Vec<Path>>>()?;
        let delete = || {
            let (store, paths) = (self.store.clone(), paths.clone());
            async move {
                let paths = futures_util::stream::iter(paths.into_iter().map(Ok)).boxed();
                store.delete_stream(paths).try_for_each(|_| async { Ok(()) }).await
            }
        };
        match self.tries("delete from", 0, delete).await.0 {
            Ok(()) | Err(Failure::Missing) => Ok(()),
            Err(failure) => Err(failure.told("delete from", &self.place)),
        }
    }

    /// Lists what begins with a text, in order, from somewhere on. A page may hold less than it could, even nothing.
    pub(crate) async fn list(&self, prefix: &str, from: &Start, most: usize) -> Result<Page> {
        let prefix = format!("{}{prefix}", self.prefix);
        let (offset, page_token) = match from {
            Start::Beginning => (None, None),
            Start::After(key) => (Some(format!("{}{key}", self.prefix)), None),
            Start::Page(token) => (None, Some(token.clone())),
        };
        let list = || {
            let (store, prefix) = (self.store.clone(), prefix.clone());
            let (offset, page_token) = (offset.clone(), page_token.clone());
            let max_keys = Some(most.clamp(1, FULL_PAGE));
            let options =
                PaginatedListOptions { offset, max_keys, page_token, ..PaginatedListOptions::default() };
            async move { store.list_paginated(Some(&prefix), options).await }
        };
        let found = self.told("list", self.tries("list", 0, list).await.0)?;
        let entry = |meta: ObjectMeta| {
            let key = meta.location.as_ref().strip_prefix(&self.prefix)?.to_owned();
            Some(Entry { key, modified: modified(&meta), size: meta.size, etag: meta.e_tag })
        };
        let entries: Vec<Entry> = found.result.objects.into_iter().filter_map(entry).collect();
        if entries.iter().any(|entry| entry.etag.is_none()) {
            self.hides_tags.store(true, Ordering::Relaxed);
        }
        Ok(Page { entries, next: found.page_token.map(Start::Page) })
    }

    /// Returns whether listings are known to leave out the tags of objects.
    pub(crate) fn hides_tags(&self) -> bool {
        self.hides_tags.load(Ordering::Relaxed)
    }

    /// Begins an object that comes in parts.
    pub(crate) async fn begin_upload(&self, key: &str) -> Result<MultipartId> {
        let path = self.path(key)?;
        let begin = || {
            let (store, path) = (self.store.clone(), path.clone());
            async move { store.create_multipart(&path).await }
        };
        self.told("upload to", self.tries("upload to", 0, begin).await.0)
    }

    pub(crate) async fn upload_part(
        &self,
        key: &str,
        upload: &MultipartId,
        number: usize,
        bytes: Bytes,
    ) -> Result<PartId> {
        let path = self.path(key)?;
        let put = || {
            let (store, path, upload) = (self.store.clone(), path.clone(), upload.clone());
            let payload = PutPayload::from(bytes.clone());
            async move { store.put_part(&path, &upload, number, payload).await }
        };
        self.told("upload to", self.tries("upload to", bytes.len(), put).await.0)
    }

    pub(crate) async fn end_upload(&self, key: &str, upload: &MultipartId, parts: Vec<PartId>) -> Result<()> {
        let path = self.path(key)?;
        let end = || {
            let (store, path, upload, parts) =
                (self.store.clone(), path.clone(), upload.clone(), parts.clone());
            async move { store.complete_multipart(&path, &upload, parts).await.map(drop) }
        };
        match self.tries("upload to", 0, end).await.0 {
            Ok(()) => Ok(()),
            // An upload that has ended is not there any more; but what came of it is, and its name was never another's.
            Err(failure) => match self.get(key, Some(0..1), None).await? {
                Got::Object(_) => Ok(()),
                _ => Err(failure.told("upload to", &self.place)),
            },
        }
    }

    pub(crate) async fn abort_upload(&self, key: &str, upload: &MultipartId) -> Result<()> {
        let path = self.path(key)?;
        let abort = || {
            let (store, path, upload) = (self.store.clone(), path.clone(), upload.clone());
            async move { store.abort_multipart(&path, &upload).await }
        };
        self.told("upload to", self.tries("upload to", 0, abort).await.0)
    }

    fn told<T>(&self, action: &'static str, answer: Result<T, Failure>) -> Result<T> {
        answer.map_err(|failure| failure.told(action, &self.place))
    }

    /// Does something until it has an answer, as long as there is patience. Also says whether a try without an answer may
    /// have been carried out.
    async fn tries<T, Work>(
        &self,
        action: &'static str,
        size: usize,
        work: impl Fn() -> Work,
    ) -> (Result<T, Failure>, bool)
    where
        T: Send + 'static,
        Work: Future<Output = object_store::Result<T>> + Send + 'static,
    {
        let limit = self.patience + Duration::from_secs((size / SLOW) as u64);
        let (begun, mut pause, mut is_uncertain) = (Instant::now(), FIRST_PAUSE, false);
        loop {
            let try_once = work();
            let answer = self.near(async move { tokio::time::timeout(limit, try_once).await }).await;
            let failure = match answer {
                Ok(Ok(answer)) => return (Ok(answer), is_uncertain),
                Ok(Err(said)) => Failure::new(action, &self.place, said),
                Err(_) => Failure::late(action, &self.place, limit),
            };
            is_uncertain |= matches!(failure, Failure::Lost(_));
            let may_pass = matches!(failure, Failure::Lost(_) | Failure::Busy(_));
            // As long as nothing can have been done, the caller may as well try again himself.
            let patience = if is_uncertain { self.patience } else { self.patience.min(SOON) };
            if !may_pass || begun.elapsed() + pause > patience {
                return (Err(failure), is_uncertain);
            }
            self.near(async move { tokio::time::sleep(pause).await }).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Does something where the connections live, whatever thread this is.
    pub(crate) async fn near<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let Some(runtime) = &self.runtime else { unreachable!("it is there until this is dropped") };
        // It ends with whoever waits for it.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, runtime.handle());
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
            None => unreachable!("there is one"),
        }
    }

    fn path(&self, key: &str) -> Result<Path> {
        Path::parse(format!("{}{key}", self.prefix)).map_err(|error| backend("name an object in", error))
    }

    pub(crate) fn etag(&self, etag: Option<String>) -> Result<String> {
        let place = || self.place.clone();
        etag.ok_or_else(|| backend("use", Unfit { place: place(), reason: "gives no entity tags" }))
    }

    pub(crate) fn unfit(&self, reason: &'static str) -> Error {
        backend("use", Unfit { place: self.place.clone(), reason })
    }
}

fn modified(meta: &ObjectMeta) -> Timestamp {
    let at = meta.last_modified;
    Timestamp::new(at.timestamp(), at.timestamp_subsec_nanos() as i32).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// A runtime must not be waited for where nothing may block, and nothing here is worth waiting for.
impl Drop for Bucket {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
