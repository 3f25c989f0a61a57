//! What the beginning and the end of a transcript say about the session.
//!
//! Claude Code writes a session's name, tag and last prompt again whenever 64 KiB were added, so that they always are
//! within the last 64 KiB; where it worked and what it was asked first stand at the beginning.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::memrchr;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use crate::facts::{Ending, Opening, OpeningReader};
use crate::scan::BYTE_ORDER_MARK;

/// How much of the end is read: what the official SDKs read too.
const TAIL: u64 = 64 << 10;
/// How much of the beginning is read first.
const HEAD: u64 = 16 << 10;
/// How much of the beginning is read at most.
const LONG_HEAD: u64 = 64 << 10;

/// How much is read if a prompt is longer than that: where it was asked stands behind it.
const LONGEST_LINE: u64 = 16 << 20;

/// What is known of a session without reading all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skim {
    pub(crate) opening: Opening,
    pub(crate) ending: Ending,
}

/// Room for what is read, used again for the next file.
#[derive(Debug, Default)]
pub(crate) struct Buffer(Vec<u8>);

impl Buffer {
    fn read(&mut self, file: &File, offset: u64, length: u64) -> io::Result<&[u8]> {
        self.0.resize(self.0.len().max(length as usize), 0);
        let mut filled = 0;
        while filled < length as usize {
            match file.read_at(&mut self.0[filled..length as usize], offset + filled as u64)? {
                0 => break,
                read => filled += read,
            }
        }
        Ok(&self.0[..filled])
    }
}

impl Skim {
    /// Looks at both ends of a file. What is known of its beginning from an earlier time still holds.
    pub(crate) fn of(
        file: &File,
        size: u64,
        known: Option<&Opening>,
        buffer: &mut Buffer,
    ) -> io::Result<Self> {
        if size <= LONG_HEAD + TAIL {
            let bytes = buffer.read(file, 0, size)?;
            let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
            let (older, tail) = bytes.split_at(last_lines(bytes));
            let mut ending = Ending::of(tail);
            if ending.custom_title.is_none() && !older.is_empty() {
                // Too short for the name to have been written again.
                ending.add_older(Ending::of(older));
            }
            let opening = match known {
                Some(opening) => opening.clone(),
                None => opening_of(bytes),
            };
            return Ok(Self { opening, ending });
        }
        // Only its ends are wanted, and the system would read on after each. If it does all the same, that only costs.
        let _ = fadvise(file, 0, None, Advice::Random);
        let end = buffer.read(file, size - TAIL - 1, TAIL + 1)?;
        let ending = Ending::of(&end[last_lines(end)..]);
        if let Some(opening) = known {
            return Ok(Self { opening: opening.clone(), ending });
        }
        let mut opening = OpeningReader::default();
        let mut length = HEAD;
        loop {
            let head = buffer.read(file, 0, length.min(size))?;
            let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
            let is_enough = opening.read(head) || length >= size.min(LONGEST_LINE);
            if is_enough || (length >= LONG_HEAD && !opening.is_within_a_prompt(head)) {
                return Ok(Self { opening: opening.end(head), ending });
            }
            length *= 4;
        }
    }
}

/// The same for all the bytes of a file.
fn opening_of(bytes: &[u8]) -> Opening {
    let mut opening = OpeningReader::default();
    let head = &bytes[..bytes.len().min(LONG_HEAD as usize)];
    let is_enough = opening.read(head) || !opening.is_within_a_prompt(head);
    opening.end(if is_enough { head } else { bytes })
}

/// Returns where the first line begins that is within the last 64 KiB as a whole.
fn last_lines(bytes: &[u8]) -> usize {
    let Some(from) = bytes.len().checked_sub(TAIL as usize + 1) else { return 0 };
    memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |newline| from + newline + 1)
}

/// Returns lines from the last to the first, and whether each has its newline.
pub(crate) fn lines_from_the_end(bytes: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = Some(bytes);
    let mut is_ended = false;
    std::iter::from_fn(move || {
        let bytes = rest?;
        let (line, ended) = match memrchr(b'\n', bytes) {
            Some(newline) => {
                rest = Some(&bytes[..newline]);
                (&bytes[newline + 1..], is_ended)
            }
            None => {
                rest = None;
                (bytes, is_ended)
            }
        };
        is_ended = true;
        Some((line, ended))
    })
}
