//! Blobs: an object each, or, if they are large, one that says where the content is.

use std::io::{self, Read};
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use jiff::{SignedDuration, Timestamp};
use rethread_store::{BlobId, Error, Result};
use sha2::{Digest as _, Sha256};

use crate::bucket::{Bucket, Expected, Got, Object, Replaced};
use crate::card::{Card, LINE};
use crate::layout;

/// Content of more than this is an object of its own, and comes in parts of this size.
const LARGE: usize = 8 << 20;
/// How often an object that changes while it is looked at is looked at again.
const ATTEMPTS: usize = 100;

/// A blob's object, as it was when somebody looked.
struct Looked {
    card: Card,
    etag: String,
    modified: Timestamp,
}

pub(crate) async fn put(bucket: &Bucket, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
    let first = take(content, blob)?;
    if first.len() <= LARGE {
        return put_small(bucket, blob, &first).await;
    }
    let key = layout::blob(blob);
    let before = look(bucket, &key).await?;
    if let Some(Looked { card: Card::Apart(name), etag, .. }) = &before
        && touch(bucket, &key, name, etag).await?
    {
        return Ok(());
    }
    let name = layout::fresh();
    let object = layout::content(blob, &name);
    upload(bucket, blob, &object, first, content).await?;
    // Only if nothing has changed since before: whoever sweeps may have seen what nobody refers to yet.
    let expected = before.map_or(Expected::Absent, |before| Expected::Etag(before.etag));
    if let Replaced::Done(_) = bucket.replace(&key, &expected, Card::Apart(name.clone()).to_line()).await? {
        return Ok(());
    }
    match look(bucket, &key).await? {
        Some(Looked { card: Card::Apart(now), .. }) if now == name => Ok(()),
        Some(Looked { card: Card::Apart(now), etag, .. }) if touch(bucket, &key, &now, &etag).await? => {
            bucket.delete(&[object]).await
        }
        _ => {
            bucket.delete(&[object]).await?;
            Err(Error::Contended(format!("blob {blob}")))
        }
    }
}

/// Puts content that fits behind its card: one request, whatever is there.
async fn put_small(bucket: &Bucket, blob: &BlobId, content: &[u8]) -> Result<()> {
    if !blob.fits(content) {
        return Err(Error::WrongBlob(*blob));
    }
    bucket.put(&layout::blob(blob), behind(&Card::Here, content)).await
}

/// Puts contents that are all in memory.
pub(crate) async fn put_one(bucket: &Bucket, blob: &BlobId, content: &Bytes) -> Result<()> {
    match content.len() <= LARGE {
        true => put_small(bucket, blob, content).await,
        false => put(bucket, blob, &mut &content[..]).await,
    }
}

fn behind(card: &Card, content: &[u8]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(LINE as usize + content.len());
    bytes.extend_from_slice(&card.to_line());
    bytes.extend_from_slice(content);
    bytes.freeze()
}

/// Reads a part, and one byte more, which says whether there is another.
fn take(content: &mut (dyn Read + Send), blob: &BlobId) -> Result<Vec<u8>> {
    let mut piece = Vec::new();
    let read = io::Read::take(content, LARGE as u64 + 1).read_to_end(&mut piece);
    read.map_err(Error::io("read the content of", blob.to_string()))?;
    Ok(piece)
}

/// Uploads content in parts. Unless it is what it should be, nothing comes of it.
async fn upload(
    bucket: &Bucket,
    blob: &BlobId,
    object: &str,
    mut piece: Vec<u8>,
    content: &mut (dyn Read + Send),
) -> Result<()> {
    let upload = bucket.begin_upload(object).await?;
    let mut hasher = Sha256::new();
    let sent = async {
        let mut parts = Vec::new();
        while !piece.is_empty() {
            hasher.update(&piece);
            let part = Bytes::from(std::mem::take(&mut piece));
            parts.push(bucket.upload_part(object, &upload, parts.len(), part).await?);
            piece = take(content, blob)?;
        }
        if blob.fits_hashed(hasher) { Ok(parts) } else { Err(Error::WrongBlob(*blob)) }
    };
    match sent.await {
        Ok(parts) => bucket.end_upload(object, &upload, parts).await,
        Err(error) => {
            // A server keeps an upload that was never ended until it is told otherwise.
            let _ = bucket.abort_upload(object, &upload).await;
            Err(error)
        }
    }
}

/// Returns what a blob's object says; `None` if there is none.
async fn look(bucket: &Bucket, key: &str) -> Result<Option<Looked>> {
    Ok(match bucket.get(key, Some(0..LINE), None).await? {
        Got::Object(Object { etag, modified, bytes }) => {
            Some(Looked { card: Card::parse(key, &bytes)?, etag, modified })
        }
        // It has no bytes at all, and no range of them can be had.
        Got::Beyond => match bucket.get(key, None, None).await? {
            Got::Object(Object { etag, modified, bytes }) => {
                Some(Looked { card: Card::parse(key, &bytes)?, etag, modified })
            }
            _ => None,
        },
        Got::Missing | Got::Unchanged => None,
    })
}

/// Makes a blob young whose content is apart, unless it is in another state by now.
async fn touch(bucket: &Bucket, key: &str, name: &str, etag: &str) -> Result<bool> {
    let card = Card::Apart(name.to_owned()).to_line();
    let replaced = bucket.replace(key, &Expected::Etag(etag.to_owned()), card).await?;
    Ok(matches!(replaced, Replaced::Done(_)))
}

/// Makes a blob young. Returns whether it is there.
pub(crate) async fn refresh(bucket: &Bucket, blob: &BlobId) -> Result<bool> {
    let key = layout::blob(blob);
    for _ in 0..ATTEMPTS {
        let Got::Object(Object { etag, bytes, .. }) = bucket.get(&key, None, None).await? else {
            return Ok(false);
        };
        let young = match Card::parse(&key, &bytes)? {
            Card::Gone => return Ok(false),
            Card::Here => behind(&Card::Here, &bytes[LINE as usize..]),
            apart @ Card::Apart(_) => apart.to_line(),
        };
        if let Replaced::Done(_) = bucket.replace(&key, &Expected::Etag(etag), young).await? {
            return Ok(true);
        }
    }
    Err(Error::Contended(format!("blob {blob}")))
}

pub(crate) async fn get(bucket: &Bucket, blob: &BlobId, range: &Range<u64>) -> Result<Option<Bytes>> {
    let key = layout::blob(blob);
    let end = range.end.max(range.start);
    let behind = |at: u64| at.saturating_add(LINE);
    for _ in 0..ATTEMPTS {
        // The line and the beginning of the content come with one request; what is further on comes without the line.
        let (from, to) = if range.start == 0 { (0, behind(end)) } else { (behind(range.start), behind(end)) };
        if from < to {
            match bucket
                .get(&key, Some(from..to).filter(|range| range.start > 0 || range.end < u64::MAX), None)
                .await?
            {
                Got::Missing => return Ok(None),
                Got::Object(object) if from > 0 => return Ok(Some(object.bytes)),
                Got::Object(object) => match Card::parse(&key, &object.bytes)? {
                    Card::Gone => return Ok(None),
                    Card::Here => return Ok(Some(object.bytes.slice(LINE as usize..))),
                    Card::Apart(_) => {}
                },
                Got::Beyond | Got::Unchanged => {}
            }
        }
        let name = match look(bucket, &key).await? {
            None | Some(Looked { card: Card::Gone, .. }) => return Ok(None),
            Some(Looked { card: Card::Here, .. }) => return Ok(Some(Bytes::new())),
            Some(Looked { card: Card::Apart(name), .. }) => name,
        };
        if range.start >= end {
            return Ok(Some(Bytes::new()));
        }
        match bucket.get(&layout::content(blob, &name), Some(range.start..end), None).await? {
            Got::Object(object) => return Ok(Some(object.bytes)),
            Got::Beyond => return Ok(Some(Bytes::new())),
            // Another content has taken its place meanwhile, or it was cleared away.
            Got::Missing | Got::Unchanged => {}
        }
    }
    let reason = "its content is not where it should be".into();
    Err(Error::Damaged { what: format!("blob {blob}"), reason })
}

/// Removes a blob, whoever puts it just now.
pub(crate) async fn remove(bucket: &Bucket, blob: &BlobId) -> Result<bool> {
    let key = layout::blob(blob);
    let Some(looked) = look(bucket, &key).await?.filter(|looked| looked.card != Card::Gone) else {
        return Ok(false);
    };
    let content = if let Card::Apart(name) = looked.card { Some(layout::content(blob, &name)) } else { None };
    bucket.delete(&[vec![key], content.into_iter().collect()].concat()).await?;
    Ok(true)
}

/// Removes a blob that nobody has put since then, which the caller's clock says and the server's is to judge.
pub(crate) async fn remove_before(bucket: &Bucket, blob: &BlobId, since: Timestamp) -> Result<bool> {
    let key = layout::blob(blob);
    let Some(looked) = look(bucket, &key).await?.filter(|looked| looked.card != Card::Gone) else {
        return Ok(false);
    };
    // A server tells times to the second, so it may have been put almost a second later.
    let latest = looked.modified.saturating_add(SignedDuration::from_secs(1)).unwrap_or(Timestamp::MAX);
    if latest > bucket.clock.theirs(since) {
        return Ok(false);
    }
    let is_gone = match bucket.replace(&key, &Expected::Etag(looked.etag), Card::Gone.to_line()).await? {
        Replaced::Done(_) => true,
        // Whoever puts it wins.
        Replaced::Conflict => look(bucket, &key).await?.is_some_and(|now| now.card == Card::Gone),
    };
    if let (true, Card::Apart(name)) = (is_gone, looked.card) {
        bucket.delete(&[layout::content(blob, &name)]).await?;
    }
    Ok(is_gone)
}
