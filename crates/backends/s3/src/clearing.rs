//! Removing sessions, and what interrupted work left behind. No clock decides what may go.

use std::collections::BTreeMap;

use rethread_store::backend::{LogKey, LogName};
use rethread_store::{BlobId, Result, SessionId};

use crate::bucket::{Bucket, Expected, Got, Replaced};
use crate::card::{Card, LINE};
use crate::known::Known;
use crate::layout::{self, CONTENTS, PARTS};
use crate::listing::all;
use crate::logs;

/// Removes a session's logs and documents. Returns whether there was something.
pub(crate) async fn remove_session(bucket: &Bucket, known: &Known, session: &SessionId) -> Result<bool> {
    let keys = async |prefix: String| -> Result<Vec<String>> {
        Ok(all(bucket, &prefix).await?.into_iter().map(|entry| entry.key).collect())
    };
    let mut own = keys(layout::session(session)).await?;
    let was_there = !own.is_empty();
    known.forget_session(session);
    // The messages last: they say that the session is to be removed, should this be interrupted.
    let messages = layout::tail(&LogKey::new(session.clone(), LogName::Messages));
    own.retain(|key| *key != messages);
    bucket.delete(&own).await?;
    if was_there {
        bucket.delete(&[messages]).await?;
    }
    // Nobody refers to them any more; whoever is reading them looks again and finds nothing.
    bucket.delete(&keys(layout::session_parts(session)).await?).await?;
    Ok(was_there)
}

/// Clears away parts and contents that nothing refers to. Returns how many.
pub(crate) async fn sweep(bucket: &Bucket, known: &Known) -> Result<u64> {
    Ok(sweep_parts(bucket, known).await? + sweep_contents(bucket).await?)
}

async fn sweep_parts(bucket: &Bucket, known: &Known) -> Result<u64> {
    let mut logs: BTreeMap<LogKey, Vec<String>> = BTreeMap::new();
    for entry in all(bucket, PARTS).await? {
        let names: Vec<&str> = entry.key.strip_prefix(PARTS).unwrap_or_default().split('!').collect();
        let [session, log, name] = names[..] else { continue };
        let log = LogName::ALL.into_iter().find(|known| known.as_str() == log);
        if let (Ok(session), Some(log)) = (session.parse(), log) {
            logs.entry(LogKey::new(session, log)).or_default().push(name.to_owned());
        }
    }
    let mut swept = 0;
    for (log, names) in logs {
        let seen = logs::look(bucket, known, &log).await?;
        let unnamed: Vec<String> = match &seen {
            Some(seen) => names.into_iter().filter(|name| !seen.tail.names(name)).collect(),
            None => names,
        };
        if unnamed.is_empty() {
            continue;
        }
        // Somebody may be about to refer to one of them, however long ago it was written: not any more.
        if let Some(seen) = seen {
            let key = layout::tail(&log);
            let renewed = seen.tail.renewed(&key).to_bytes();
            match bucket.replace(&key, &Expected::Etag(seen.etag), renewed).await? {
                Replaced::Done(_) => {}
                // The log grows; there will be another sweep.
                Replaced::Conflict => continue,
            }
        }
        let keys: Vec<String> = unnamed.iter().map(|name| layout::part(&log, name)).collect();
        bucket.delete(&keys).await?;
        swept += keys.len() as u64;
    }
    Ok(swept)
}

async fn sweep_contents(bucket: &Bucket) -> Result<u64> {
    let mut swept = 0;
    for entry in all(bucket, CONTENTS).await? {
        let Some((blob, name)) = entry.key.strip_prefix(CONTENTS).and_then(|rest| rest.split_once('!'))
        else {
            continue;
        };
        let Ok(blob) = blob.parse::<BlobId>() else { continue };
        let key = layout::blob(&blob);
        let (expected, card) = match bucket.get(&key, Some(0..LINE), None).await? {
            Got::Object(object) => (Expected::Etag(object.etag), Card::parse(&key, &object.bytes)?),
            // Whoever has uploaded it, and is about to say so, expects nothing to be there.
            Got::Missing => (Expected::Absent, Card::Gone),
            Got::Beyond | Got::Unchanged => match bucket.get(&key, None, None).await? {
                Got::Object(object) => (Expected::Etag(object.etag), Card::Gone),
                _ => continue,
            },
        };
        if card == Card::Apart(name.to_owned()) || card == Card::Here {
            continue;
        }
        if let Replaced::Done(_) = bucket.replace(&key, &expected, card.to_line()).await? {
            bucket.delete(&[entry.key]).await?;
            swept += 1;
        }
    }
    Ok(swept)
}
