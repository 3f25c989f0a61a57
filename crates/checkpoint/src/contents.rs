//! Contents of files in the store: put once by hash, read back only if the hash still fits.

use std::sync::Arc;

use bytes::Bytes;
use rethread_store::backend::Backend;
use rethread_store::{BlobId, Error as StoreError};
use sha2::{Digest, Sha256};

use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::look::{SMALL, Seen, look};
use crate::path::TreePath;
use crate::root::{Root, open_in};
use crate::state::{File, State};
use crate::work::Tell;

/// How much is held in memory before it is stored.
const BATCH: usize = 16 << 20;
/// How much of a large content is read at once.
const PIECE: u64 = 1 << 20;
/// How often a large file that changes between two reads is tried again.
const TRIES: usize = 3;

/// The blobs of a store, as contents of files.
#[derive(Clone, Debug)]
pub(crate) struct Contents {
    backend: Arc<dyn Backend>,
}

impl Contents {
    pub(crate) fn of(backend: &Arc<dyn Backend>) -> Self {
        Self { backend: backend.clone() }
    }

    pub(crate) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Looks at paths and stores what is in them. All of it is durable when this returns.
    pub(crate) async fn keep(&self, root: &Root, paths: &[TreePath], limit: u64) -> Result<Vec<Seen>> {
        self.keep_telling(root, paths, limit, &|_, _| {}).await
    }

    /// The same, and says how far it has come.
    pub(crate) async fn keep_telling(
        &self,
        root: &Root,
        paths: &[TreePath],
        limit: u64,
        tell: Tell<'_>,
    ) -> Result<Vec<Seen>> {
        let (mut all, mut batch, mut size) = (Vec::with_capacity(paths.len()), Vec::new(), 0);
        for (number, path) in paths.iter().enumerate() {
            tell(number + 1, paths.len());
            let mut seen = look(root, path, limit);
            let hash = seen.state.file().map(|file| (file.hash, file.size));
            if let (Some((hash, _)), Some(bytes)) = (hash, seen.bytes.take()) {
                size += bytes.len();
                batch.push((hash, Bytes::from(bytes)));
            } else if let Some((_, SMALL..)) = hash {
                seen = self.keep_large(root, path, seen, limit).await?;
            }
            all.push(seen);
            if size > BATCH {
                self.backend.put_blobs(&batch).await?;
                (batch, size) = (Vec::new(), 0);
            }
        }
        self.backend.put_blobs(&batch).await?;
        Ok(all)
    }

    async fn keep_large(&self, root: &Root, path: &TreePath, mut seen: Seen, limit: u64) -> Result<Seen> {
        for _ in 0..TRIES {
            let Some(file) = seen.state.file() else { return Ok(seen) };
            let opened = root
                .parent_of(path)
                .and_then(|folder| open_in(std::os::fd::AsFd::as_fd(&folder), path.name()));
            let mut content = match opened {
                Ok(content) => content,
                Err(error) => return Ok(Seen::failed(&error)),
            };
            match self.backend.put_blob(&file.hash, &mut content).await {
                Ok(()) => return Ok(seen),
                // It was written to between the two reads.
                Err(StoreError::WrongBlob(_)) => {}
                Err(error) => return Err(error.into()),
            }
            seen = look(root, path, limit);
            seen.bytes = None;
        }
        Ok(Seen::unknown("it changes while it is read".into()))
    }

    /// Stores one content.
    pub(crate) async fn put(&self, content: Vec<u8>) -> Result<BlobId> {
        let blob = BlobId::of(&content);
        self.backend.put_blob(&blob, &mut &content[..]).await?;
        Ok(blob)
    }

    /// Reads a blob to its end and returns what is wrong with it, if something is.
    pub(crate) async fn flaw(&self, blob: &BlobId) -> Result<Option<String>> {
        let (mut hasher, mut at) = (Sha256::new(), 0);
        loop {
            match self.backend.get_blob(blob, at..at + PIECE).await {
                Ok(None) => return Ok(Some("it is missing".into())),
                Ok(Some(bytes)) if bytes.is_empty() => break,
                Ok(Some(bytes)) => {
                    at += bytes.len() as u64;
                    hasher.update(&bytes);
                }
                Err(StoreError::Damaged { reason, .. }) => return Ok(Some(reason)),
                Err(error) => return Err(error.into()),
            }
        }
        let whole = BlobId::of_hasher(hasher) == *blob;
        Ok((!whole).then(|| "its content has another hash".into()))
    }

    /// Returns whether a file's content is there, without reading all of it.
    pub(crate) async fn has(&self, file: &File) -> Result<bool> {
        let (blob, range) = match &file.place {
            None => (file.hash, 0..0),
            Some(place) => (place.pack, place.at..place.at),
        };
        Ok(self.backend.get_blob(&blob, range).await?.is_some())
    }

    /// Hands a file's content over piece by piece. If it is not what its hash says, that is an error, though pieces
    /// were handed over.
    pub(crate) async fn read(
        &self,
        path: &TreePath,
        file: &File,
        mut take: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let lost = |reason: &str| Error::NoContent { path: path.clone(), reason: reason.into() };
        let (mut hasher, mut size) = (Sha256::new(), 0);
        let mut piece = |bytes: &[u8]| {
            hasher.update(bytes);
            size += bytes.len() as u64;
            take(bytes)
        };
        match &file.place {
            Some(place) => {
                let range = place.at..place.at.saturating_add(place.length);
                let packed = self.get(&place.pack, range, path).await?;
                let limit = usize::try_from(file.size).unwrap_or(usize::MAX).min(2 * SMALL as usize);
                let bytes =
                    zstd::bulk::decompress(&packed, limit).map_err(|_| lost("its pack is damaged"))?;
                piece(&bytes)?;
            }
            None => {
                let mut at = 0;
                loop {
                    let bytes = self.get(&file.hash, at..at + PIECE, path).await?;
                    if bytes.is_empty() {
                        break;
                    }
                    at += bytes.len() as u64;
                    piece(&bytes)?;
                    if at >= file.size {
                        break;
                    }
                }
            }
        }
        let right = BlobId::of_hasher(hasher) == file.hash && size == file.size;
        if right || Defect::TrustContent.is_on() { Ok(()) } else { Err(lost("it has another hash")) }
    }

    /// Returns the content of a file that is small enough to be held, `None` for a larger one.
    pub(crate) async fn small(&self, path: &TreePath, state: &State) -> Result<Option<Vec<u8>>> {
        let Some(file) = state.file().filter(|file| file.size <= SMALL) else { return Ok(None) };
        let mut content = Vec::with_capacity(file.size as usize);
        self.read(path, file, |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })
        .await?;
        Ok(Some(content))
    }

    async fn get(&self, blob: &BlobId, range: std::ops::Range<u64>, path: &TreePath) -> Result<Bytes> {
        let lost = |reason: String| Error::NoContent { path: path.clone(), reason };
        match self.backend.get_blob(blob, range).await {
            Ok(Some(bytes)) => Ok(bytes),
            Ok(None) => Err(lost(format!("blob {blob} is missing"))),
            Err(StoreError::Damaged { reason, .. }) => Err(lost(reason)),
            Err(error) => Err(error.into()),
        }
    }
}
