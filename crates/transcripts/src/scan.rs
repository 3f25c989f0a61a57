//! Everything that a pass over a transcript finds.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::envelope::Envelope;
use crate::fault::{Fault, FaultKind};
use crate::key::Key;
use crate::lines::each_line;
use crate::node::{Compaction, Marks, Node, Span};
use crate::recover::remains;

/// From which size on two threads are faster than one.
const SHARED: u64 = 4 << 20;
/// What some editors put before everything else.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// What was found between the beginning of a file and a place in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The entries of conversations, in the order of the file.
    pub(crate) nodes: Vec<Node>,
    pub(crate) compactions: Vec<Compaction>,
    /// The newest word of the CLI on which entry is the last.
    pub(crate) leaf: Option<Key>,
    pub(crate) faults: Vec<Fault>,
    /// Entries of all kinds.
    pub(crate) entries: u64,
    /// Some of them are about files that were kept. No index knows.
    pub(crate) keeps_files: bool,
    pub(crate) settled: Settled,
}

/// Where the last line ends that has its newline: from here on a file is to be read again when it grew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) offset: u64,
    // How much had been found by then.
    pub(crate) nodes: usize,
    pub(crate) compactions: usize,
    pub(crate) entries: u64,
}

impl Scan {
    fn from(offset: u64) -> Self {
        Self { settled: Settled { offset, ..Settled::default() }, ..Self::default() }
    }

    /// Reads a file from where this scan is settled up to `length`.
    pub(crate) fn advance(&mut self, file: &File, length: u64) -> io::Result<()> {
        self.unsettle();
        let range = self.settled.offset..length;
        if range.end.saturating_sub(range.start) < SHARED {
            return self.read(file, range, length);
        }
        let middle = range.start + (range.end - range.start) / 2;
        let middle = line_after(file, middle, length)?;
        let (first, second) = thread::scope(|scope| {
            let other = scope.spawn(|| {
                let mut scan = Scan::from(middle);
                scan.read(file, middle..length, length).map(|()| scan)
            });
            let mut own = Scan::from(range.start);
            let first = own.read(file, range.start..middle, length).map(|()| own);
            let gone = || Err(io::Error::other("the other half's thread is gone"));
            (first, other.join().unwrap_or_else(|_| gone()))
        });
        self.append(first?);
        self.append(second?);
        Ok(())
    }

    /// Forgets what stood on a line without an end: it may have been cut.
    fn unsettle(&mut self) {
        self.nodes.truncate(self.settled.nodes);
        self.compactions.truncate(self.settled.compactions);
        self.entries = self.settled.entries;
        self.faults.retain(|fault| fault.offset < self.settled.offset);
    }

    fn append(&mut self, later: Scan) {
        self.settled = Settled {
            offset: later.settled.offset,
            nodes: self.nodes.len() + later.settled.nodes,
            compactions: self.compactions.len() + later.settled.compactions,
            entries: self.entries + later.settled.entries,
        };
        self.nodes.extend(later.nodes);
        self.compactions.extend(later.compactions);
        self.leaf = later.leaf.or(self.leaf);
        self.faults.extend(later.faults);
        self.entries += later.entries;
        self.keeps_files |= later.keeps_files;
    }

    /// Reads the lines that begin within a range, the end of which is the beginning of a line or the end of the file.
    fn read(&mut self, file: &File, range: Range<u64>, length: u64) -> io::Result<()> {
        each_line(file, range.start, range.end, |offset, line, is_ended| {
            // A line without an end in the middle of the file is one that the file was cut at just now.
            if is_ended || range.end == length {
                self.line(offset, line, is_ended);
            }
            if is_ended {
                self.settle(offset + line.len() as u64 + 1);
            }
        })
    }

    fn settle(&mut self, offset: u64) {
        let (nodes, compactions) = (self.nodes.len(), self.compactions.len());
        self.settled = Settled { offset, nodes, compactions, entries: self.entries };
    }

    /// Takes one line.
    pub(crate) fn line(&mut self, offset: u64, line: &[u8], is_ended: bool) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let (offset, line) = match line.strip_prefix(BYTE_ORDER_MARK) {
            Some(rest) if offset == 0 => (3, rest),
            _ => (offset, line),
        };
        if let Some(envelope) = Envelope::of(line) {
            return self.entry(&envelope, offset, line.len());
        }
        let Some(remains) = remains(line, !is_ended) else { return };
        self.faults.push(Fault { offset, length: line.len() as u64, kind: remains.kind });
        for range in remains.entries {
            if let Some(envelope) = Envelope::of(&line[range.clone()]) {
                self.entry(&envelope, offset + range.start as u64, range.len());
            }
        }
    }

    fn entry(&mut self, envelope: &Envelope<'_>, offset: u64, length: usize) {
        self.entries += 1;
        if envelope.kind() == "last-prompt" {
            self.leaf = envelope.leaf_uuid.as_ref().map(|leaf| Key::of(leaf.as_str())).or(self.leaf);
            return;
        }
        self.keeps_files |= envelope.kind().starts_with("file-history-");
        let Ok(length) = u32::try_from(length) else {
            // No machine has the memory to say four gigabytes in one message.
            self.faults.push(Fault { offset, length: length as u64, kind: FaultKind::Garbage });
            return;
        };
        if let Some(node) = Node::of(envelope, Span { offset, length }) {
            if node.marks.has(Marks::BOUNDARY) {
                self.compactions.extend(Compaction::of(envelope));
            }
            self.nodes.push(node);
        }
    }
}

/// Returns where the first line begins that begins at or after a place.
fn line_after(file: &File, place: u64, length: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut at = place.saturating_sub(1);
    while at < length {
        let read = file.read_at(&mut buffer, at)?;
        if read == 0 {
            break;
        }
        if let Some(newline) = memchr::memchr(b'\n', &buffer[..read]) {
            return Ok(at + newline as u64 + 1);
        }
        at += read as u64;
    }
    Ok(length)
}
