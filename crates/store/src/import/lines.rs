//! The lines of a file that may hold anything, with the place of each, in bounded memory.

use std::io::{self, BufRead};

/// Reads one line after the other into the same buffer.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    limit: usize,
    offset: u64,
    line: Vec<u8>,
}

/// A line of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'a> {
    /// A line that ended with a newline, which is not part of it.
    Whole(&'a [u8]),
    /// The end of the file, without a newline.
    Unended(&'a [u8]),
    /// A line over the limit, of so many bytes. It was passed by, not kept.
    TooLong(u64),
}

impl<R: BufRead> Lines<R> {
    /// Reads from here on; lines over `limit` bytes are passed by.
    pub(crate) fn new(reader: R, limit: usize) -> Self {
        Self { reader, limit, offset: 0, line: Vec::new() }
    }

    /// Returns where the next line begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the next line; `None` at the end of the file.
    pub(crate) fn next(&mut self) -> io::Result<Option<Found<'_>>> {
        self.line.clear();
        let mut length = 0;
        let ended = loop {
            let part = match self.reader.fill_buf() {
                Ok(part) => part,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if part.is_empty() {
                break false;
            }
            let newline = memchr::memchr(b'\n', part);
            let part = &part[..newline.unwrap_or(part.len())];
            length += part.len();
            if length <= self.limit {
                self.line.extend_from_slice(part);
            }
            let read = part.len() + usize::from(newline.is_some());
            self.reader.consume(read);
            self.offset += read as u64;
            if newline.is_some() {
                break true;
            }
        };
        Ok(match (ended, length) {
            (false, 0) => None,
            (_, length) if length > self.limit => Some(Found::TooLong(length as u64)),
            (true, _) => Some(Found::Whole(&self.line)),
            (false, _) => Some(Found::Unended(&self.line)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_over_the_limit_does_not_hide_the_next_one() {
        let mut lines = Lines::new(io::BufReader::with_capacity(3, &b"ab\nabcdefgh\n\nabcd"[..]), 4);
        assert_eq!(lines.next().unwrap(), Some(Found::Whole(b"ab")));
        assert_eq!(lines.next().unwrap(), Some(Found::TooLong(8)));
        assert_eq!(lines.offset(), 12);
        assert_eq!(lines.next().unwrap(), Some(Found::Whole(b"")));
        assert_eq!(lines.next().unwrap(), Some(Found::Unended(b"abcd")));
        assert_eq!(lines.next().unwrap(), None);
    }
}
