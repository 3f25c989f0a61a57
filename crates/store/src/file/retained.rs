//! What a failed sync could take down with it, kept in memory to be written again.

use std::collections::VecDeque;

use bytes::Bytes;

use crate::stamp::Line;

/// The unit in which a disk may lose a write.
pub(crate) const BLOCK: u64 = 4096;

/// The end of a file, from the last synced block on.
///
/// It is kept as it was written: each piece holds whole lines, and whole groups.
#[derive(Debug, Default)]
pub(crate) struct Retained {
    pieces: VecDeque<Bytes>,
    /// Where in the file it begins.
    from: u64,
    size: usize,
}

impl Retained {
    /// Keeps one piece.
    pub(crate) fn new(from: u64, piece: Bytes) -> Self {
        let mut retained = Self { from, ..Self::default() };
        retained.push(piece);
        retained
    }

    /// Adds what was written next.
    pub(crate) fn push(&mut self, piece: Bytes) {
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
    pub(crate) fn lines(&self) -> impl Iterator<Item = Line> {
        let lines = |piece: &Bytes| {
            let piece = piece.clone();
            let ends = memchr::memchr_iter(b'\n', &piece).chain([piece.len()]).collect::<Vec<_>>();
            let starts = [0].into_iter().chain(ends.clone().into_iter().map(|end| end + 1));
            starts
                .zip(ends)
                .filter_map(|(start, end)| Line::parse(piece.slice(start..end)).ok())
                .collect::<Vec<_>>()
        };
        self.pieces.iter().flat_map(lines)
    }

    /// Forgets the lines before the last synced block.
    pub(crate) fn trim(&mut self, synced: u64) {
        let block = synced - synced % BLOCK;
        while let Some(piece) = self.pieces.front_mut() {
            let cut = block.saturating_sub(self.from) as usize;
            if cut < piece.len() {
                let line = memchr::memrchr(b'\n', &piece[..cut]).map_or(0, |newline| newline + 1);
                let from = group_start(piece, line).unwrap_or(0);
                // Copied, or the little that is wanted would hold the whole of a large write.
                if from > 0 {
                    *piece = Bytes::copy_from_slice(&piece[from..]);
                }
                self.from += from as u64;
                self.size -= from;
                return;
            }
            self.from += piece.len() as u64;
            self.size -= piece.len();
            self.pieces.pop_front();
        }
    }
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
