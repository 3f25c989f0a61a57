//! A backend behind a pointer is a backend, so that a store need not care who owns it.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Hints, Key, Known, Listed,
    LogKey, Position, Put, Rewrite, Space, Target,
};
use crate::error::Result;
use crate::id::{BlobId, EntryId, SessionId};
use crate::stamp::{Line, Unseal};

/// Forwards every method, those with a body too: the default in place of the backend's own would be slower at
/// best, and for `settle` it would be durable in name only.
macro_rules! forward {
    ($pointer:ident) => {
        #[warn(clippy::missing_trait_methods)]
        #[async_trait]
        impl<T: Backend + ?Sized> Backend for $pointer<T> {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }

            async fn get(&self, key: &Key) -> Result<Option<Document>> {
                (**self).get(key).await
            }

            async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
                (**self).put(key, bytes, expect).await
            }

            async fn append(
                &self,
                log: &LogKey,
                at: Position,
                lines: &[Line],
                durability: Durability,
            ) -> Result<Append> {
                (**self).append(log, at, lines, durability).await
            }

            async fn append_to(
                &self,
                log: &LogKey,
                first: &EntryId,
                at: Position,
                lines: &[Line],
                durability: Durability,
            ) -> Result<Append> {
                (**self).append_to(log, first, at, lines, durability).await
            }

            async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
                (**self).read(log, from, max_bytes).await
            }

            async fn read_unsealed(
                &self,
                log: &LogKey,
                from: Position,
                max_bytes: usize,
                by: &dyn Unseal,
            ) -> Result<Option<Chunk>> {
                (**self).read_unsealed(log, from, max_bytes, by).await
            }

            async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
                (**self).put_blob(blob, content).await
            }

            async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
                (**self).put_blobs(blobs).await
            }

            async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
                (**self).get_blob(blob, range).await
            }

            async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
                (**self).refresh_blob(blob).await
            }

            async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
                (**self).list(space, after, limit).await
            }

            async fn remove(&self, target: &Target) -> Result<bool> {
                (**self).remove(target).await
            }

            async fn settle(&self, log: &LogKey) -> Result<()> {
                (**self).settle(log).await
            }

            async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
                (**self).changed(log, since).await
            }

            async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
                (**self).find(log, id).await
            }

            async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
                (**self).stat(session).await
            }

            async fn is_erased(&self, session: &SessionId) -> Result<bool> {
                (**self).is_erased(session).await
            }

            fn path(&self, log: &LogKey) -> Option<PathBuf> {
                (**self).path(log)
            }

            async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
                (**self).rewrite(log, known).await
            }

            async fn sweep(&self) -> Result<u64> {
                (**self).sweep().await
            }

            fn listed_as(&self, blob: &BlobId) -> Vec<BlobId> {
                (**self).listed_as(blob)
            }

            fn change_at(&self, session: &SessionId, next: Position) -> Option<String> {
                (**self).change_at(session, next)
            }

            fn hints(&self) -> Option<Hints> {
                (**self).hints()
            }
        }
    };
}

forward!(Arc);
forward!(Box);
