//! Splits what the CLI sends into lines, however long and however broken.

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// How much is asked for at once: as much as a pipe holds.
const CHUNK: usize = 64 << 10;

/// How much is asked for at least.
const LEAST: usize = 4 << 10;

/// Lines of a stream of bytes. A line is a slice of what was read, not a copy.
pub(crate) struct Lines<R> {
    input: R,
    buffer: BytesMut,
    /// How far the buffer is known to hold no end of a line.
    searched: usize,
    limit: usize,
    /// Whether the line that is being read is too long, and what comes of it is dropped.
    is_skipping: bool,
}

/// What was read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// A line, without its end.
    Whole(Bytes),
    /// A line was longer than allowed, and is left out.
    TooLong,
    /// The last line, which has no end.
    Torn(Bytes),
    /// There is nothing more.
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, buffer: BytesMut::new(), searched: 0, limit, is_skipping: false }
    }

    /// Returns the next line, if it is here already.
    pub(crate) fn ready(&mut self) -> Option<Line> {
        loop {
            let found = memchr::memchr(b'\n', &self.buffer[self.searched..]);
            let Some(end) = found.map(|at| at + self.searched) else {
                self.searched = self.buffer.len();
                if self.is_skipping || self.searched > self.limit {
                    self.is_skipping = true;
                    self.buffer.clear();
                    self.searched = 0;
                }
                return None;
            };
            self.searched = 0;
            let line = self.buffer.split_to(end + 1).freeze();
            if std::mem::take(&mut self.is_skipping) || end > self.limit {
                return Some(Line::TooLong);
            }
            let line = line.slice(..end);
            if !line.trim_ascii().is_empty() {
                return Some(Line::Whole(line));
            }
        }
    }

    /// Waits for the next line. What was read is kept if the future is dropped.
    pub(crate) async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            if let Some(line) = self.ready() {
                return Ok(line);
            }
            // Short lines share a chunk, so that whoever keeps some of them keeps no more than their neighbours. A long
            // one grows the buffer by half of itself, so that it is not copied again for every chunk.
            if self.buffer.capacity() - self.buffer.len() < LEAST {
                self.buffer.reserve(CHUNK.max(self.buffer.len() / 2));
            }
            if self.input.read_buf(&mut self.buffer).await? == 0 {
                return Ok(self.rest());
            }
        }
    }

    fn rest(&mut self) -> Line {
        self.searched = 0;
        let rest = self.buffer.split().freeze();
        match std::mem::take(&mut self.is_skipping) {
            true => Line::TooLong,
            false if rest.trim_ascii().is_empty() => Line::End,
            false => Line::Torn(rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;

    #[tokio::test]
    async fn short_lines_that_came_one_by_one_share_their_memory() {
        let (mut writer, reader) = tokio::io::duplex(1 << 10);
        let mut lines = Lines::new(reader, 1 << 10);
        let mut kept: Vec<Bytes> = Vec::new();
        for _ in 0..100 {
            writer.write_all(b"a line of no great length\n").await.unwrap();
            let Line::Whole(line) = lines.next().await.unwrap() else { panic!("a whole line was sent") };
            kept.push(line);
        }
        let first = kept[0].as_ptr() as usize;
        assert!(kept.iter().all(|line| (line.as_ptr() as usize).abs_diff(first) < CHUNK));
    }

    #[tokio::test]
    async fn lines_come_whole_however_they_were_cut() {
        let long = "x".repeat(100);
        let input = format!("one\n\r\n{long}\ntwo\n{}", "half");
        for step in 1..input.len() {
            let (mut writer, reader) = tokio::io::duplex(step);
            let text = input.clone();
            tokio::spawn(async move { writer.write_all(text.as_bytes()).await });
            let mut lines = Lines::new(reader, 50);
            let mut all = Vec::new();
            while all.last() != Some(&Line::End) {
                all.push(lines.next().await.unwrap());
            }
            let whole = |text: &'static str| Line::Whole(Bytes::from_static(text.as_bytes()));
            let torn = Line::Torn(Bytes::from_static(b"half"));
            assert_eq!(all, [whole("one"), Line::TooLong, whole("two"), torn, Line::End], "{step}");
        }
    }
}
