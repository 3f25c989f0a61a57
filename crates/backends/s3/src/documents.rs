//! Documents: an object each, with a first line that no other state of it has.

use bytes::{Bytes, BytesMut};
use rethread_store::backend::{Document, Expect, Key, Put, Version};
use rethread_store::{Error, Result};

use crate::bucket::{Bucket, Entry, Expected, Got, Object, Replaced};
use crate::layout::{self, MARKER, VERSION};

/// How often a document that changes while it is looked at is put again.
const ATTEMPTS: usize = 100;

/// A document to be: a first line that no other has, and what it says.
#[derive(Debug)]
pub(crate) struct Draft {
    content: Bytes,
    /// How long the first line is.
    line: usize,
}

impl Draft {
    pub(crate) fn new(bytes: &[u8]) -> Self {
        let line = format!("rethread {VERSION} {}\n", layout::fresh());
        let mut content = BytesMut::with_capacity(line.len() + bytes.len());
        content.extend_from_slice(line.as_bytes());
        content.extend_from_slice(bytes);
        Self { content: content.freeze(), line: line.len() }
    }

    /// Says that the place is ours, and no more: the same every time.
    pub(crate) fn blank() -> Self {
        let content = Bytes::from(format!("rethread {VERSION}\n"));
        Self { line: content.len(), content }
    }

    pub(crate) fn content(&self) -> &Bytes {
        &self.content
    }

    fn line(&self) -> &[u8] {
        &self.content[..self.line]
    }
}

/// A document as it is, and its first line.
struct Found {
    document: Document,
    line: Bytes,
}

impl Found {
    fn new(name: &str, Object { etag, bytes, .. }: Object) -> Result<Self> {
        let damaged =
            || Error::Damaged { what: name.to_owned(), reason: "its first line is not ours".into() };
        let end =
            memchr::memchr(b'\n', &bytes).filter(|_| bytes.starts_with(b"rethread ")).ok_or_else(damaged)?;
        let document = Document { version: Version(etag), bytes: bytes.slice(end + 1..) };
        Ok(Self { document, line: bytes.slice(..=end) })
    }

    /// Returns whether it only says that the place is ours.
    fn is_blank(&self, name: &str) -> bool {
        // Whatever is put there has a second name, whether it says something or not.
        name == MARKER && self.line.trim_ascii_end().split(|&byte| byte == b' ').count() <= 2
    }
}

/// Returns whether what a listing tells of an object is that it only says that the place is ours.
pub(crate) fn is_blank(entry: &Entry) -> bool {
    entry.key == MARKER && entry.size <= Draft::blank().line as u64
}

pub(crate) async fn get(bucket: &Bucket, key: &Key) -> Result<Option<Document>> {
    let name = layout::document(key);
    let Got::Object(object) = bucket.get(&name, None, None).await? else { return Ok(None) };
    read(&name, object)
}

/// Returns the document that an object holds.
pub(crate) fn read(name: &str, object: Object) -> Result<Option<Document>> {
    let found = Found::new(name, object)?;
    Ok(if found.is_blank(name) { None } else { Some(found.document) })
}

/// Replaces a document under its condition; without one, under that it is as it was just now, so that a request that a
/// network delivers late never undoes what came after it.
pub(crate) async fn put(bucket: &Bucket, key: &Key, draft: &Draft, expect: &Expect) -> Result<Put> {
    let name = layout::document(key);
    let mut expected = match expect {
        // Nobody was ever given such a version, and a server might not even understand the question.
        Expect::Version(Version(etag)) if !is_tag(etag) => return Ok(Put::Conflict(get(bucket, key).await?)),
        Expect::Version(Version(etag)) => Expected::Etag(etag.clone()),
        Expect::Absent | Expect::Any => Expected::Absent,
    };
    for _ in 0..ATTEMPTS {
        if let Replaced::Done(etag) = bucket.replace(&name, &expected, draft.content.clone()).await? {
            return Ok(Put::Done(Version(etag)));
        }
        let current = match bucket.get(&name, None, None).await? {
            Got::Object(object) => Some(Found::new(&name, object)?),
            _ => None,
        };
        if let Some(found) = current.as_ref().filter(|found| found.line[..] == *draft.line()) {
            return Ok(Put::Done(found.document.version.clone()));
        }
        let now = match &current {
            Some(found) => Expected::Etag(found.document.version.0.clone()),
            None => Expected::Absent,
        };
        let current = current.filter(|found| !found.is_blank(&name));
        let is_open = *expect == Expect::Any || (*expect == Expect::Absent && current.is_none());
        if is_open {
            expected = now;
        } else if expected != now {
            return Ok(Put::Conflict(current.map(|found| found.document)));
        }
    }
    Err(Error::Contended(key.to_string()))
}

fn is_tag(text: &str) -> bool {
    text.len() > 2 && text.starts_with('"') && text.ends_with('"')
}

/// Removes a document. Returns whether there was one.
pub(crate) async fn remove(bucket: &Bucket, key: &Key) -> Result<bool> {
    let name = layout::document(key);
    if name == MARKER {
        let is_there = get(bucket, key).await?.is_some();
        // The place stays ours.
        put(bucket, key, &Draft::blank(), &Expect::Any).await?;
        return Ok(is_there);
    }
    let is_there = matches!(bucket.get(&name, Some(0..1), None).await?, Got::Object(_));
    if is_there {
        bucket.delete(&[name]).await?;
    }
    Ok(is_there)
}
