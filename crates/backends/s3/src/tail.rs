//! The object that a log ends with: where the rest of it is, and its newest lines. It is the only one that changes.

use std::sync::Arc;

use bytes::{BufMut as _, Bytes, BytesMut};
use rethread_store::backend::{LogKey, Position};
use rethread_store::{EntryId, Error, Line, Result};
use serde::{Deserialize, Serialize};

use crate::layout::{self, VERSION};
use crate::piece::Piece;

/// A tail with fewer appends than this and less than [`LARGE`] is only added to: a part for each of them would cost a
/// request for each of them.
const MANY: u32 = 32;
/// A tail of less than this is only added to, however many appends it holds.
const SMALL: usize = 128 << 10;
/// A tail of as much becomes a part.
const LARGE: usize = 8 << 20;
/// Lines of as much become a part at once.
const HUGE: usize = 1 << 20;
/// A part of as much is never merged again.
const WHOLE: u64 = 8 << 20;
/// A part is merged with the next one unless it is so many times larger.
const TIMES: u64 = 8;
/// So many parts that were merged are deleted at once.
const TOGETHER: usize = 8;
/// No log has more positions: what every JSON reader takes for exact, and so no sum of two overflows.
const FURTHEST: Position = (1 << 53) - 1;
/// So many writers are remembered.
const WRITERS: usize = 32;

/// The end of a log.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    head: Head,
    piece: Arc<Piece>,
}

/// What it says of the rest.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Head {
    /// The layout.
    rethread: u32,
    /// No two states of a log are alike, not even if one was removed and begun again.
    nonce: String,
    /// The log's next position.
    next: Position,
    /// How many appends the lines below came with.
    appends: u32,
    /// Where the older lines are, in order.
    parts: Vec<Part>,
    /// Parts that were merged into others, and are still to be deleted.
    merged: Vec<String>,
    /// Who added something, and where each did so last, in the order of that. Older programs leave it out.
    #[serde(default)]
    writers: Vec<(String, Position)>,
    /// The id of the log's first record. Older programs leave it out.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    first: String,
}

/// An object that holds older lines, and never changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) first: Position,
    pub(crate) next: Position,
    pub(crate) size: u64,
}

/// What has to be done so that lines can be added.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// They go below the others.
    Add,
    /// The lines that are there become a part, together with the last ones, of which there are so many.
    Seal { merge: usize },
    /// The same, and the new ones with them.
    SealAll { merge: usize },
}

impl Tail {
    /// Reads what is in the object.
    pub(crate) fn parse(key: String, bytes: Bytes) -> Result<Self> {
        let damaged = |reason: String| Error::Damaged { what: key.clone(), reason };
        let end = memchr::memchr(b'\n', &bytes).ok_or_else(|| damaged("it has no first line".into()))?;
        let head: Head = serde_json::from_slice(&bytes[..end]).map_err(|error| damaged(error.to_string()))?;
        if head.rethread > VERSION {
            return Err(Error::NewerFormat { found: head.rethread.to_string(), known: VERSION });
        }
        if !head.is_in_order() {
            return Err(damaged("its parts are out of order".into()));
        }
        let piece = Arc::new(Piece::new(key, head.first(), head.next, bytes.slice(end + 1..)));
        Ok(Self { head, piece })
    }

    /// Returns the log's next position.
    pub(crate) fn next(&self) -> Position {
        self.head.next
    }

    /// Returns where the older lines are, in order.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.head.parts
    }

    /// Returns the newest lines.
    pub(crate) fn piece(&self) -> &Piece {
        &self.piece
    }

    /// Returns whether the log is known to begin with another record than this one.
    pub(crate) fn is_another_than(&self, first: &EntryId) -> bool {
        !self.head.first.is_empty() && self.head.first != first.as_str()
    }

    /// Returns whether it was this writer who added what begins at a position; `None` if that is not known any more.
    pub(crate) fn is_by(&self, writer: &str, at: Position) -> Option<bool> {
        let writers = &self.head.writers;
        match writers.iter().find(|(name, _)| name == writer) {
            Some((_, last)) => Some(*last == at),
            // Those who were here longest ago are forgotten first: where one of them is known, so is everybody since.
            None => writers.iter().any(|(_, last)| *last <= at).then_some(false),
        }
    }

    /// Returns whether it is known that nobody else has added anything.
    pub(crate) fn is_only_by(&self, writer: &str) -> bool {
        matches!(&self.head.writers[..], [(name, _)] if name == writer)
    }

    /// Returns whether the tail says of an object that it belongs to the log, or did.
    pub(crate) fn names(&self, part: &str) -> bool {
        self.head.parts.iter().any(|known| known.name == part)
    }

    /// Says what to do with so many more bytes.
    pub(crate) fn plan(&self, more: usize) -> Plan {
        let here = self.piece.bytes().len();
        if more >= HUGE {
            return Plan::SealAll { merge: self.to_merge(here + more) };
        }
        let is_full = here >= LARGE || (here >= SMALL && self.head.appends >= MANY);
        if is_full { Plan::Seal { merge: self.to_merge(here) } } else { Plan::Add }
    }

    /// Returns how many parts are so small that they are better one with what comes.
    ///
    /// Sizes grow at least [`TIMES`]-fold from the end to the beginning, up to [`WHOLE`]: however long a log is, beside
    /// its whole parts there are two or three.
    fn to_merge(&self, size: usize) -> usize {
        let mut size = size as u64;
        let small = |part: &&Part| {
            let is_small = part.size < WHOLE && part.size < TIMES * size;
            size += part.size;
            is_small
        };
        self.head.parts.iter().rev().take_while(small).count()
    }

    /// Returns the state after a writer added lines to one, or to none at all.
    pub(crate) fn with(before: Option<&Self>, key: &str, lines: &[Line], writer: &str) -> Self {
        let begin = || {
            let first = lines.first().map_or_else(String::new, |line| line.stamp().id.as_str().to_owned());
            Head { first, ..Head::default() }
        };
        let mut head = before.map_or_else(begin, |before| before.head.clone());
        head.sign(writer);
        head.appends += 1;
        head.next += lines.len() as Position;
        let bytes = joined(before.map(|before| before.piece.bytes()), lines);
        Self::made(head, key, bytes)
    }

    /// Returns the state after what stood here went to a part that takes the place of the last ones, and these lines of a
    /// writer came.
    pub(crate) fn sealed(&self, key: &str, part: Part, merge: usize, lines: &[Line], writer: &str) -> Self {
        let mut head = self.head.clone();
        head.sign(writer);
        let kept = head.parts.len() - merge;
        head.merged.extend(head.parts.drain(kept..).map(|part| part.name));
        head.parts.push(part);
        head.appends = u32::from(!lines.is_empty());
        head.next = head.first() + lines.len() as Position;
        Self::made(head, key, joined(None, lines))
    }

    /// Returns the same state under another name: whoever expects the old one has come too late.
    pub(crate) fn renewed(&self, key: &str) -> Self {
        Self::made(self.head.clone(), key, self.piece.bytes().clone())
    }

    fn made(mut head: Head, key: &str, bytes: Bytes) -> Self {
        (head.rethread, head.nonce) = (VERSION, layout::fresh());
        let piece = Arc::new(Piece::new(key.to_owned(), head.first(), head.next, bytes));
        Self { head, piece }
    }

    /// Takes the names of merged parts, once there are enough of them to be worth a request.
    pub(crate) fn take_merged(&mut self, log: &LogKey) -> Vec<String> {
        if self.head.merged.len() < TOGETHER {
            return Vec::new();
        }
        let names = std::mem::take(&mut self.head.merged);
        names.iter().map(|name| layout::part(log, name)).collect()
    }

    /// Returns what is to be in the object.
    pub(crate) fn to_bytes(&self) -> Bytes {
        let head = serde_json::to_vec(&self.head).unwrap_or_default();
        let mut bytes = BytesMut::with_capacity(head.len() + 1 + self.piece.bytes().len());
        bytes.put_slice(&head);
        bytes.put_u8(b'\n');
        bytes.put_slice(self.piece.bytes());
        bytes.freeze()
    }
}

impl Head {
    /// Returns the position of the first line below.
    fn first(&self) -> Position {
        self.parts.last().map_or(0, |part| part.next)
    }

    /// Returns whether each part goes on where the one before it ends, and none is beyond what a log can reach.
    fn is_in_order(&self) -> bool {
        let mut at = 0;
        let follows =
            |part: &Part| part.first == std::mem::replace(&mut at, part.next) && part.first <= part.next;
        self.parts.iter().all(follows) && self.first() <= self.next && self.next <= FURTHEST
    }

    /// Notes who adds what comes next.
    fn sign(&mut self, writer: &str) {
        self.writers.retain(|(name, _)| name != writer);
        self.writers.push((writer.to_owned(), self.next));
        let forgotten = self.writers.len().saturating_sub(WRITERS);
        self.writers.drain(..forgotten);
    }
}

/// Returns lines as they are stored, after others.
pub(crate) fn joined<'a>(before: impl IntoIterator<Item = &'a Bytes>, lines: &[Line]) -> Bytes {
    let mut bytes = BytesMut::new();
    before.into_iter().for_each(|before| bytes.put_slice(before));
    for line in lines {
        bytes.put_slice(line.as_bytes());
        bytes.put_u8(b'\n');
    }
    bytes.freeze()
}

#[cfg(test)]
mod tests {
    use rethread_store::backend::Chunk;
    use rethread_store::{Entry, Kind, Stamp};

    use super::*;

    const KEY: &str = "logs/s/messages.log";

    fn line(position: Position) -> Line {
        let (id, entry) =
            (format!("u{position}"), Entry::parse(format!(r#"{{"uuid":"u{position}"}}"#)).unwrap());
        let parent = position.checked_sub(1);
        let (kind, id) = (Kind::Entry, id.parse().unwrap());
        Line::new(&entry, Stamp { position, parent, depth: position + 1, kind, id, left: 0, unsettled: 0 })
    }

    /// A log with two parts, and lines of two writers behind them.
    fn tail() -> Tail {
        let first = Tail::with(None, KEY, &[line(0), line(1)], "a");
        let part = |first, next| Part { name: layout::fresh(), first, next, size: 200 };
        let second = first.sealed(KEY, part(0, 2), 0, &[line(2)], "b");
        second.sealed(KEY, part(2, 3), 0, &[line(3), line(4)], "a")
    }

    /// Does all that is done with an object which somebody else may have written.
    fn use_it(bytes: Bytes) -> bool {
        let Ok(tail) = Tail::parse(KEY.into(), bytes) else { return false };
        let mut chunk = Chunk { next: tail.parts().last().map_or(0, |part| part.next), ..Chunk::default() };
        tail.piece().add_to(&mut chunk, &mut 0, usize::MAX);
        assert!(chunk.next <= tail.next(), "nothing is beyond its end");
        assert!(chunk.lines.iter().all(|line| line.stamp().position < tail.next()));
        let _ = (tail.plan(1), tail.plan(HUGE), tail.is_by("a", 3));
        drop(Tail::with(Some(&tail), KEY, &[line(5)], "c").to_bytes());
        true
    }

    #[test]
    fn whatever_stands_in_the_object_is_read_or_refused() {
        let whole = tail().to_bytes();
        assert!(use_it(whole.clone()));
        let (mut read, mut refused) = (0, 0);
        let mut count = |is_read| *(if is_read { &mut read } else { &mut refused }) += 1;
        for at in 0..whole.len() {
            count(use_it(whole.slice(..at)));
            for with in [b'0', b'9', b'"', b'}', b'\n', 0, 0xff, whole[at] ^ 1] {
                let mut bytes = whole.to_vec();
                bytes[at] = with;
                count(use_it(bytes.into()));
            }
        }
        assert!(read > 100 && refused > 100, "{read} read, {refused} refused");
    }

    #[test]
    fn parts_that_are_out_of_order_or_beyond_what_a_log_can_reach_are_refused() {
        let head = |next: u64, parts: &[(u64, u64)]| {
            let part =
                |(first, next): &(u64, u64)| Part { name: "p".into(), first: *first, next: *next, size: 1 };
            let parts = parts.iter().map(part).collect();
            let head = Head { rethread: VERSION, next, parts, ..Head::default() };
            Bytes::from(serde_json::to_string(&head).unwrap() + "\n")
        };
        assert!(use_it(head(5, &[(0, 2), (2, 5)])));
        for (next, parts) in [
            (5, &[(0, 2), (3, 5)][..]),
            (5, &[(0, 4), (2, 5)]),
            (5, &[(1, 5)]),
            (4, &[(0, 5)]),
            (9, &[(0, 5), (5, 3)]),
            (u64::MAX, &[]),
            (u64::MAX, &[(0, u64::MAX)]),
        ] {
            assert!(!use_it(head(next, parts)), "{next} {parts:?}");
        }
    }
}
