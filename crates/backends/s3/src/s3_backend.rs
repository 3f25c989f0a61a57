//! The contract, over objects.

use std::io::Read;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, LogName,
    Position, Put, Space, Target,
};
use rethread_store::{BlobId, EntryId, Line, Result, SessionId};

use crate::bucket::Bucket;
use crate::ground::Ground;
use crate::known::Known;
use crate::layout::{self, MARKER};
use crate::settings::Settings;
use crate::{blobs, clearing, documents, listing, logs};

/// How many blobs are put at once.
const AT_ONCE: usize = 16;

/// Sessions in one bucket, below a prefix of their own.
#[derive(Debug)]
pub struct S3Backend {
    bucket: Bucket,
    ground: Ground,
    known: Known,
}

impl S3Backend {
    /// Names a place. Nothing is asked of it yet, and nothing is made until something is written.
    pub fn new(settings: &Settings) -> Result<Self> {
        Ok(Self { bucket: Bucket::new(settings)?, ground: Ground::default(), known: Known::default() })
    }

    /// Returns the bucket, if there is something in it.
    async fn read_from(&self) -> Result<Option<&Bucket>> {
        Ok(self.ground.is_laid(&self.bucket).await?.then_some(&self.bucket))
    }

    /// Returns the bucket, which can keep something.
    async fn write_to(&self) -> Result<&Bucket> {
        self.ground.lay(&self.bucket).await?;
        Ok(&self.bucket)
    }
}

#[async_trait]
impl Backend for S3Backend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "s3",
            durability: Durability::Synced,
            across_hosts: true,
            keeps: true,
            max_record: 64 << 20,
            knows_its_own: true,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        if layout::document(key) == MARKER {
            let found = self.ground.look(&self.bucket).await?;
            return Ok(found.map(|mark| documents::read(MARKER, mark)).transpose()?.flatten());
        }
        let Some(bucket) = self.read_from().await? else { return Ok(None) };
        documents::get(bucket, key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        let draft = documents::Draft::new(bytes);
        let may_make = layout::document(key) == MARKER && !matches!(expect, Expect::Version(_));
        if may_make && let Some(version) = self.ground.lay_with(&self.bucket, &draft).await? {
            return Ok(Put::Done(version));
        }
        documents::put(self.write_to().await?, key, &draft, &expect).await
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], _: Durability) -> Result<Append> {
        logs::append(self.write_to().await?, &self.known, log, None, at, lines).await
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        _: Durability,
    ) -> Result<Append> {
        logs::append(self.write_to().await?, &self.known, log, Some(first), at, lines).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        let Some(bucket) = self.read_from().await? else {
            let next = if let From::Position(position) = from { position } else { 0 };
            return Ok(Chunk { next, ..Chunk::default() });
        };
        logs::read(bucket, &self.known, log, from, max_bytes).await
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        blobs::put(self.write_to().await?, blob, content).await
    }

    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        let bucket = self.write_to().await?;
        let blobs = futures_util::stream::iter(blobs.iter().cloned().map(Ok));
        let put =
            |(blob, content): (BlobId, Bytes)| async move { blobs::put_one(bucket, &blob, &content).await };
        blobs.try_for_each_concurrent(AT_ONCE, put).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        let Some(bucket) = self.read_from().await? else { return Ok(None) };
        blobs::get(bucket, blob, &range).await
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        blobs::refresh(self.write_to().await?, blob).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        if !self.ground.is_sound(&self.bucket).await? {
            return Ok(Vec::new());
        }
        listing::list(&self.bucket, space, after, limit).await
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        let bucket = self.write_to().await?;
        match target {
            Target::Document(key) => documents::remove(bucket, key).await,
            Target::Session(session) => clearing::remove_session(bucket, &self.known, session).await,
            Target::Blob(blob) => blobs::remove(bucket, blob).await,
            Target::StaleBlob(blob, since) => blobs::remove_before(bucket, blob, *since).await,
        }
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        let Some(bucket) = self.read_from().await? else { return Ok(false) };
        logs::has_more(bucket, &self.known, log, since).await
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        let Some(bucket) = self.read_from().await? else { return Ok(None) };
        logs::find(bucket, &self.known, log, id).await
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        let Some(bucket) = self.read_from().await? else { return Ok(None) };
        listing::stat(bucket, session).await
    }

    fn change_at(&self, session: &SessionId, next: Position) -> Option<String> {
        let seen = self.known.tail(&LogKey::new(session.clone(), LogName::Messages))?;
        // What is remembered may be over: others may have purged the session since, and begun another.
        let is_there = seen.is_recent() && seen.tail.is_only_by(self.known.writer());
        let is_it = is_there && seen.tail.next() == next && !self.bucket.hides_tags();
        is_it.then(|| listing::change_of(&seen.etag))
    }

    async fn sweep(&self) -> Result<u64> {
        clearing::sweep(self.write_to().await?, &self.known).await
    }
}
