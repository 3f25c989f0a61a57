//! Documents: an object each, with a first line that no other state of it has.

use bytes::{Bytes, BytesMut};
use rethread_store::backend::{Document, Expect, Key, Put, Version};
use rethread_store::{Error, Result};

use crate::bucket::{Bucket, Expected, Got, Object, Replaced};
use crate::layout::{self, VERSION};

/// How often a document that changes while it is looked at is put again.
const ATTEMPTS: usize = 100;

pub(crate) async fn get(bucket: &Bucket, key: &Key) -> Result<Option<Document>> {
    Ok(look(bucket, key).await?.map(|(document, _)| document))
}

/// Returns a document, and its first line.
async fn look(bucket: &Bucket, key: &Key) -> Result<Option<(Document, Bytes)>> {
    let name = layout::document(key);
    let Got::Object(Object { etag, bytes, .. }) = bucket.get(&name, None, None).await? else {
        return Ok(None);
    };
    let damaged = || Error::Damaged { what: name, reason: "its first line is not ours".into() };
    let end =
        memchr::memchr(b'\n', &bytes).filter(|_| bytes.starts_with(b"rethread ")).ok_or_else(damaged)?;
    let document = Document { version: Version(etag), bytes: bytes.slice(end + 1..) };
    Ok(Some((document, bytes.slice(..=end))))
}

/// Replaces a document under its condition; without one, under that it is as it was just now, so that a request that a
/// network delivers late never undoes what came after it.
pub(crate) async fn put(bucket: &Bucket, key: &Key, bytes: &[u8], expect: &Expect) -> Result<Put> {
    let first_line = format!("rethread {VERSION} {}\n", layout::fresh());
    let mut content = BytesMut::with_capacity(first_line.len() + bytes.len());
    content.extend_from_slice(first_line.as_bytes());
    content.extend_from_slice(bytes);
    let content = content.freeze();
    let mut expected = match expect {
        // Nobody was ever given such a version, and a server might not even understand the question.
        Expect::Version(Version(etag)) if !is_tag(etag) => return Ok(Put::Conflict(get(bucket, key).await?)),
        Expect::Version(Version(etag)) => Expected::Etag(etag.clone()),
        Expect::Absent | Expect::Any => Expected::Absent,
    };
    for _ in 0..ATTEMPTS {
        if let Replaced::Done(etag) =
            bucket.replace(&layout::document(key), &expected, content.clone()).await?
        {
            return Ok(Put::Done(Version(etag)));
        }
        let current = look(bucket, key).await?;
        if let Some((document, line)) = &current
            && line[..] == *first_line.as_bytes()
        {
            return Ok(Put::Done(document.version.clone()));
        }
        let now = match &current {
            Some((document, _)) => Expected::Etag(document.version.0.clone()),
            None => Expected::Absent,
        };
        if *expect == Expect::Any {
            expected = now;
        } else if expected != now {
            return Ok(Put::Conflict(current.map(|(document, _)| document)));
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
    let is_there = matches!(bucket.get(&name, Some(0..1), None).await?, Got::Object(_));
    if is_there {
        bucket.delete(&[name]).await?;
    }
    Ok(is_there)
}
