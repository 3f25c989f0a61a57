//! What a failed sync could take down with it, kept in memory to be written again.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::stamp::Line;

/// The unit in which a disk may lose a write.
pub(crate) const BLOCK: u64 = 4096;

/// The end of a file, from the last synced block on.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pieces: VecDeque<Piece>,
    /// Where in the file it begins.
    from: u64,
    size: usize,
}

/// What stands one after the other in the file.
#[derive(Debug)]
enum Piece {
    /// A record as it was written, with its newline.
    Record(Record),
    /// Bytes as they were found: whole lines, and whole groups.
    Found(Bytes),
}

/// The bytes of a record and nothing else: many of them wait for one sync, and a whole line is four times as large.
#[derive(Debug)]
struct Record {
    body: Bytes,
    /// `None`: a newline.
    end: Option<Arc<[u8]>>,
    ends_a_group: bool,
}

impl Record {
    fn of(line: &Line) -> Self {
        let (body, end) = line.shared_pieces();
        Self { body, end, ends_a_group: line.stamp().left == 0 }
    }

    fn len(&self) -> usize {
        self.body.len() + self.end.as_ref().map_or(1, |end| end.len())
    }

    fn line(&self) -> Option<Line> {
        let end = self.end.as_deref().and_then(|end| end.strip_suffix(b"\n")).unwrap_or_default();
        Line::parse([&self.body, end].concat().into()).ok()
    }
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Record(record) => record.len(),
            Piece::Found(bytes) => bytes.len(),
        }
    }

    /// Returns whether a group, if any, ends with it.
    fn ends_a_group(&self) -> bool {
        match self {
            Piece::Record(record) => record.ends_a_group,
            Piece::Found(_) => true,
        }
    }
}

impl Retained {
    /// Keeps what was found.
    pub(crate) fn new(from: u64, found: Bytes) -> Self {
        let mut retained = Self { from, ..Self::default() };
        retained.push_found(found);
        retained
    }

    /// Adds a record that was written next.
    pub(crate) fn push(&mut self, line: &Line) {
        self.add(Piece::Record(Record::of(line)));
    }

    /// Adds what was found next.
    pub(crate) fn push_found(&mut self, found: Bytes) {
        self.add(Piece::Found(found));
    }

    fn add(&mut self, piece: Piece) {
        self.size += piece.len();
        self.pieces.push_back(piece);
    }

    /// Returns where in the file it begins.
    pub(crate) fn from(&self) -> u64 {
        self.from
    }

    /// Returns how many bytes are kept.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// Returns the whole lines.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        for piece in &self.pieces {
            match piece {
                Piece::Record(record) => lines.extend(record.line()),
                Piece::Found(found) => lines.extend(whole_lines(found)),
            }
        }
        lines
    }

    /// Forgets the groups before the last synced block.
    pub(crate) fn trim(&mut self, synced: u64) {
        let block = synced - synced % BLOCK;
        let (mut end, mut forgotten) = (self.from, 0);
        for (index, piece) in self.pieces.iter().enumerate() {
            end += piece.len() as u64;
            if end > block {
                break;
            }
            if piece.ends_a_group() {
                forgotten = index + 1;
            }
        }
        for piece in self.pieces.drain(..forgotten) {
            self.from += piece.len() as u64;
            self.size -= piece.len();
        }
        let cut = block.saturating_sub(self.from) as usize;
        if let Some(Piece::Found(found)) = self.pieces.front_mut()
            && cut < found.len()
        {
            let line = memchr::memrchr(b'\n', &found[..cut]).map_or(0, |newline| newline + 1);
            let from = group_start(found, line).unwrap_or(0);
            // Copied, or the little that is wanted would hold the whole of a large read.
            if from > 0 {
                *found = Bytes::copy_from_slice(&found[from..]);
            }
            self.from += from as u64;
            self.size -= from;
        }
    }
}

fn whole_lines(found: &Bytes) -> impl Iterator<Item = Line> {
    let ends = memchr::memchr_iter(b'\n', found).chain([found.len()]).collect::<Vec<_>>();
    let starts = [0].into_iter().chain(ends.clone().into_iter().map(|end| end + 1));
    starts.zip(ends).filter_map(|(start, end)| Line::parse(found.slice(start..end)).ok())
}

/// Returns where the group begins that the line at `at` belongs to; `None` if that is before these bytes.
///
/// A segment that began in the middle of a group would leave the other half without its end.
pub(crate) fn group_start(bytes: &[u8], mut at: usize) -> Option<usize> {
    while at > 0 {
        let before = memchr::memrchr(b'\n', &bytes[..at - 1]).map_or(0, |newline| newline + 1);
        let line = Line::parse(Bytes::copy_from_slice(&bytes[before..at - 1]));
        match line {
            Ok(line) if line.stamp().left > 0 => at = before,
            // The first line of these bytes may itself be cut, or the end of a line that began earlier.
            Err(_) if before == 0 => return None,
            _ => return Some(at),
        }
    }
    None
}
