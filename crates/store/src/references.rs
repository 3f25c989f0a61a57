//! Which contents the checkpoints of a session refer to.

use std::collections::BTreeSet;

use crate::backend::{Backend, Damage, From, LogKey, LogName, Position};
use crate::error::Result;
use crate::id::{BlobId, SessionId};

const READ_AHEAD: usize = 1 << 20;

/// Returns everything that may be a reference in a record that counts: any 64 hex digits. Also returns the first thing
/// that could not be read, since that may refer to anything.
///
/// Knowing less of their shape keeps more: what a newer version writes is safe from an older one.
pub(crate) async fn of(
    backend: &dyn Backend,
    session: &SessionId,
) -> Result<(BTreeSet<BlobId>, Option<Damage>)> {
    let log = LogKey::new(session.clone(), LogName::Checkpoints);
    let (mut from, mut referred, mut given_up) = (0, Vec::new(), GivenUp::default());
    let mut damage = None;
    loop {
        let chunk = backend.read(&log, From::Position(from), READ_AHEAD).await?;
        for line in &chunk.lines {
            let body = line.body();
            referred.push((line.stamp().position, hashes(&body).collect::<Vec<_>>()));
            given_up.learn(&body);
        }
        damage = damage.or(chunk.damage.into_iter().next());
        if chunk.next == from {
            referred.retain(|(position, _)| !given_up.includes(*position));
            return Ok((referred.into_iter().flat_map(|(_, hashes)| hashes).collect(), damage));
        }
        from = chunk.next;
    }
}

/// Returns every hash in a text.
pub(crate) fn hashes(bytes: &[u8]) -> impl Iterator<Item = BlobId> {
    let words = bytes.split(|byte| !byte.is_ascii_hexdigit()).filter(|word| word.len() == 64);
    words.filter_map(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

/// The captures of a log that retention has given up: what they alone refer to may go.
#[derive(Debug, Default, serde::Deserialize)]
struct GivenUp {
    /// All before this position.
    before: Position,
    /// But these.
    #[serde(default)]
    keep: Vec<Position>,
}

impl GivenUp {
    /// Takes in a record, if it is about this.
    fn learn(&mut self, record: &[u8]) {
        #[derive(serde::Deserialize)]
        struct Record {
            retire: Option<GivenUp>,
        }
        if memchr::memmem::find(record, b"\"retire\"").is_some()
            && let Ok(Record { retire: Some(retire) }) = serde_json::from_slice(record)
            && retire.before > self.before
        {
            *self = retire;
        }
    }

    fn includes(&self, position: Position) -> bool {
        position < self.before && !self.keep.contains(&position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hash_in_a_record_counts_as_a_reference() {
        let (one, other) = (BlobId::of(b"one"), BlobId::of(b"other"));
        let record = format!(r#"{{"before":{{"hash":"{one}"}},"after":"sha256:{other}"}}"#);
        assert_eq!(hashes(record.as_bytes()).collect::<Vec<_>>(), [one, other]);
    }
}
