//! The bytes of entries, read a megabyte at a time.

use std::borrow::Cow;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use crate::chain::{Chain, Link};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::message::Message;
use crate::node::Span;

/// How much is read at once, as long as entries follow each other closely.
const WINDOW: usize = 1 << 20;

/// Reads the entries of a chain, one after the other.
///
/// An entry lives until the next one is asked for, so that a conversation of any length takes a megabyte.
#[derive(Debug)]
pub struct Reader<'a> {
    file: &'a File,
    path: &'a Path,
    links: std::slice::Iter<'a, Link>,
    window: Window,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(file: &'a File, path: &'a Path, chain: &'a Chain) -> Self {
        // Few entries are read one by one, many through the window.
        let (Some(first), Some(last)) = (chain.links.first(), chain.links.last()) else {
            return Self { file, path, links: chain.links.iter(), window: Window::default() };
        };
        let all = last.span.offset.saturating_sub(first.span.offset) + u64::from(last.span.length);
        // Nor is much read for the sake of few that lie far apart.
        let wanted: u64 = chain.links.iter().map(|link| u64::from(link.span.length)).sum();
        let window = Window { size: WINDOW.min(all.min(2 * wanted) as usize), ..Window::default() };
        Self { file, path, links: chain.links.iter(), window }
    }

    /// Returns the next entry; `None` after the last one.
    #[expect(clippy::should_implement_trait, reason = "an entry lives until the next one only")]
    pub fn next(&mut self) -> Option<Result<Entry<'_>>> {
        let link = *self.links.next()?;
        Some(match self.window.read(self.file, link.span) {
            Ok(Some(raw)) => Ok(Entry::new(raw, link)),
            Ok(None) => Err(Error::Replaced(PathBuf::from(self.path))),
            Err(error) => Err(Error::io("read", self.path)(error)),
        })
    }
}

/// Returns the messages of a chain that holds messages only, each whole, however many lines it is on.
pub(crate) fn collect(mut reader: Reader<'_>, chain: &Chain) -> Result<Vec<Message>> {
    let mut messages: Vec<Message> = Vec::new();
    let mut before: Option<Link> = None;
    for link in &chain.links {
        let Some(entry) = reader.next().transpose()? else { break };
        let (view, role) = (entry.view(), entry.role());
        let Some(content) = view.content else { continue };
        let uuid = view.uuid.map(Cow::into_owned);
        match messages.last_mut().filter(|_| before.is_some_and(|before| link.continues(before))) {
            Some(message) => message.extend(&content, uuid),
            None => {
                let timestamp = view.timestamp.map(Cow::into_owned);
                messages.push(Message { role, content: content.into_owned(), timestamp, uuid });
            }
        }
        before = Some(*link);
    }
    Ok(messages)
}

/// A part of a file.
#[derive(Debug, Default)]
struct Window {
    begins: u64,
    bytes: Vec<u8>,
    filled: usize,
    size: usize,
}

impl Window {
    /// Returns the bytes of a span; `None` if the file does not reach that far.
    fn read(&mut self, file: &File, span: Span) -> std::io::Result<Option<&[u8]>> {
        let length = span.length as usize;
        let is_inside = span.offset >= self.begins
            && span.offset + u64::from(span.length) <= self.begins + self.filled as u64;
        if !is_inside {
            self.bytes.resize(self.size.max(length).max(self.bytes.len()), 0);
            (self.begins, self.filled) = (span.offset, 0);
            while self.filled < length {
                let read = file.read_at(&mut self.bytes[self.filled..], span.offset + self.filled as u64)?;
                if read == 0 {
                    return Ok(None);
                }
                self.filled += read;
            }
        }
        let at = (span.offset - self.begins) as usize;
        Ok(Some(&self.bytes[at..at + length]))
    }
}
