//! No persistence: every write succeeds, every read is empty, and nothing touches a disk.

use std::io::Read;
use std::ops::Range;

use async_trait::async_trait;
use bytes::Bytes;

use crate::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, Position,
    Put, Space, Target, Version,
};
use crate::error::Result;
use crate::id::BlobId;
use crate::stamp::Line;

/// Keeps nothing. Exempt from the conformance suite, for it breaks every rule on purpose.
#[derive(Clone, Copy, Debug, Default)]
pub struct OffBackend;

#[async_trait]
impl Backend for OffBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "off",
            durability: Durability::Off,
            across_hosts: true,
            keeps: false,
            max_record: usize::MAX,
            knows_its_own: false,
        }
    }

    async fn get(&self, _: &Key) -> Result<Option<Document>> {
        Ok(None)
    }

    async fn put(&self, _: &Key, _: &[u8], _: Expect) -> Result<Put> {
        Ok(Put::Done(Version(String::new())))
    }

    async fn append(&self, _: &LogKey, _: Position, _: &[Line], _: Durability) -> Result<Append> {
        Ok(Append::Done { durability: Durability::Off, found: Vec::new() })
    }

    async fn read(&self, _: &LogKey, from: From, _: usize) -> Result<Chunk> {
        let next = if let From::Position(position) = from { position } else { 0 };
        Ok(Chunk { next, ..Chunk::default() })
    }

    async fn put_blob(&self, _: &BlobId, _: &mut (dyn Read + Send)) -> Result<()> {
        Ok(())
    }

    async fn get_blob(&self, _: &BlobId, _: Range<u64>) -> Result<Option<Bytes>> {
        Ok(None)
    }

    async fn list(&self, _: Space, _: Option<&str>, _: usize) -> Result<Vec<Listed>> {
        Ok(Vec::new())
    }

    async fn remove(&self, _: &Target) -> Result<bool> {
        Ok(false)
    }
}
