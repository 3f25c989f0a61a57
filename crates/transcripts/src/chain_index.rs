//! Where the messages of a conversation are, on disk: a cache that may be deleted at any time.
//!
//! ```text
//! header    what the transcript was like, and how long each part is      96 bytes
//! links     the messages of the active conversation, in order           32 bytes each
//! nodes     every entry of every conversation, in order                 64 bytes each
//! rest      what else a scan found, as JSON
//! ```
//!
//! A page of messages needs the header and a few links; the rest lets a scan go on where the transcript grew. Each of
//! them has a checksum of its own, so that no page need be read for another's sake.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::catalog::write_whole;
use crate::chain::{Chain, Link};
use crate::fault::Fault;
use crate::key::Key;
use crate::node::{Compaction, Kind, Marks, Node, Span};
use crate::scan::{Scan, Settled};
use crate::walk::State;

const MAGIC: &[u8; 8] = b"rtchain2";
const HEADER: u64 = 96;
const LINK: u64 = 32;
const NODE: u64 = 64;
/// How many bytes the number of a message has.
const NUMBER: usize = 4;
/// How much of a transcript before the place where it grew must still be the same.
const FINGERPRINT: u64 = 256;

/// An index that is there.
#[derive(Debug)]
pub(crate) struct ChainIndex {
    file: File,
    header: Header,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    state: State,
    links: u64,
    messages: u64,
    nodes: u64,
    rest: u64,
    fingerprint: u64,
    /// Of the nodes and the rest.
    sum: u64,
}

/// A link with the number of its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Numbered {
    pub(crate) number: u64,
    pub(crate) link: Link,
}

#[derive(Serialize, Deserialize)]
struct Rest {
    compactions: Vec<Compaction>,
    leaf: Option<Key>,
    faults: Vec<Fault>,
    entries: u64,
    settled: Settled,
}

impl ChainIndex {
    /// Opens an index; `None` if there is none that can be used.
    pub(crate) fn open(path: &Path) -> Option<Self> {
        let file = File::open(path).ok()?;
        let mut bytes = [0; HEADER as usize];
        file.read_exact_at(&mut bytes, 0).ok()?;
        let header = Header::read(&bytes)?;
        let parts = [header.links.checked_mul(LINK)?, header.nodes.checked_mul(NODE)?, header.rest];
        let length = parts.into_iter().try_fold(HEADER, u64::checked_add)?;
        (file.metadata().ok()?.len() == length).then_some(Self { file, header })
    }

    /// Returns whether it is about a transcript as it is now.
    pub(crate) fn fits(&self, state: State) -> bool {
        self.header.state == state
    }

    /// Returns how many messages there are.
    pub(crate) fn messages(&self) -> u64 {
        self.header.messages
    }

    /// Returns how many links there are.
    pub(crate) fn len(&self) -> u64 {
        self.header.links
    }

    /// Returns some links by their numbers.
    pub(crate) fn lines(&self, numbers: std::ops::Range<u64>) -> io::Result<Vec<Numbered>> {
        let to = numbers.end.min(self.header.links);
        let from = numbers.start.min(to);
        let mut bytes = vec![0; ((to - from) * LINK) as usize];
        self.file.read_exact_at(&mut bytes, HEADER + from * LINK)?;
        bytes.chunks_exact(LINK as usize).map(read_link).collect()
    }

    /// Returns the links of some messages.
    pub(crate) fn links(&self, numbers: std::ops::Range<u64>) -> io::Result<Vec<Numbered>> {
        let from = self.first_of(numbers.start)?;
        let to = self.first_of(numbers.end)?.max(from);
        let mut bytes = vec![0; ((to - from) * LINK) as usize];
        self.file.read_exact_at(&mut bytes, HEADER + from * LINK)?;
        bytes.chunks_exact(LINK as usize).map(read_link).collect()
    }

    /// Returns which link is the first of a message or of a later one.
    fn first_of(&self, number: u64) -> io::Result<u64> {
        if number >= self.header.messages {
            return Ok(self.header.links);
        }
        // A message has one link at least, and few have more.
        let (mut low, mut high) = (number.min(self.header.links), self.header.links);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut bytes = [0; LINK as usize];
            self.file.read_exact_at(&mut bytes, HEADER + middle * LINK)?;
            if read_link(&bytes)?.number < number { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Returns what the scan knew, if the transcript only grew since.
    pub(crate) fn scan(&self, transcript: &File, state: State) -> Option<Scan> {
        let known = self.header.state;
        if known.inode != state.inode || known.size > state.size {
            return None;
        }
        let mut bytes = vec![0; (self.header.nodes * NODE + self.header.rest) as usize];
        self.file.read_exact_at(&mut bytes, HEADER + self.header.links * LINK).ok()?;
        if u64::from(crc32c::crc32c(&bytes)) != self.header.sum {
            return None;
        }
        let (nodes, rest) = bytes.split_at((self.header.nodes * NODE) as usize);
        let rest: Rest = serde_json::from_slice(rest).ok()?;
        if fingerprint(transcript, rest.settled.offset).ok()? != self.header.fingerprint {
            return None;
        }
        let nodes = nodes.chunks_exact(NODE as usize).map(read_node).collect::<Option<Vec<Node>>>()?;
        let Rest { compactions, leaf, faults, entries, settled } = rest;
        Some(Scan { nodes, compactions, leaf, faults, entries, settled, keeps_files: false })
    }

    /// Keeps what a scan found, and the conversation that it led to.
    pub(crate) fn save(
        path: &Path,
        transcript: &File,
        state: State,
        scan: &Scan,
        links: &[Numbered],
    ) -> io::Result<()> {
        let rest = Rest {
            compactions: scan.compactions.clone(),
            leaf: scan.leaf,
            faults: scan.faults.clone(),
            entries: scan.entries,
            settled: scan.settled,
        };
        let rest = serde_json::to_vec(&rest).map_err(io::Error::other)?;
        let mut found = Vec::with_capacity(scan.nodes.len() * NODE as usize + rest.len());
        scan.nodes.iter().for_each(|node| write_node(node, &mut found));
        found.extend_from_slice(&rest);
        let header = Header {
            state,
            links: links.len() as u64,
            messages: links.last().map_or(0, |last| last.number + 1),
            nodes: scan.nodes.len() as u64,
            rest: rest.len() as u64,
            fingerprint: fingerprint(transcript, scan.settled.offset)?,
            sum: crc32c::crc32c(&found).into(),
        };
        let mut bytes = header.bytes();
        links.iter().for_each(|link| write_link(link, &mut bytes));
        bytes.extend(found);
        write_whole(path, &bytes)
    }
}

/// Numbers the messages of a chain: the lines of one API message share a number.
pub(crate) fn numbered(chain: &Chain) -> Vec<Numbered> {
    let (mut before, mut next) = (None::<Link>, 0);
    let links = chain.links.iter().filter(|link| link.is_message()).map(|&link| {
        if !before.is_some_and(|before| link.continues(before)) {
            next += 1;
        }
        before = Some(link);
        Numbered { number: next - 1, link }
    });
    links.collect()
}

/// Returns a hash of what stands before a place.
pub(crate) fn fingerprint(file: &File, place: u64) -> io::Result<u64> {
    let length = place.min(FINGERPRINT);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, place - length)?;
    Ok(hash(&bytes))
}

fn hash(bytes: &[u8]) -> u64 {
    let hash = Sha256::digest(bytes);
    u64_at(&hash, 0)
}

impl Header {
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        let State { size, modified, inode } = self.state;
        let numbers =
            [size, modified.cast_unsigned(), inode, self.links, self.messages, self.nodes, self.rest];
        for number in numbers.into_iter().chain([self.fingerprint, self.sum]) {
            bytes.extend(number.to_le_bytes());
        }
        bytes.resize(HEADER as usize - 8, 0);
        bytes.extend(hash(&bytes).to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8; HEADER as usize]) -> Option<Self> {
        let (body, check) = bytes.split_at(HEADER as usize - 8);
        if !body.starts_with(MAGIC) || hash(body) != u64_at(check, 0) {
            return None;
        }
        let number = |at: usize| u64_at(body, 8 + at * 8);
        let state = State { size: number(0), modified: number(1).cast_signed(), inode: number(2) };
        let (links, messages, nodes, rest) = (number(3), number(4), number(5), number(6));
        Some(Self { state, links, messages, nodes, rest, fingerprint: number(7), sum: number(8) })
    }
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    number.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(number)
}

fn write_span(span: Span, kind: Kind, marks: Marks, bytes: &mut Vec<u8>) {
    bytes.extend(span.offset.to_le_bytes());
    // Two bytes of marks, one of kind, and the length fits into the other five.
    let packed = u64::from(span.length) << 24 | u64::from(marks.0) << 8 | u64::from(kind as u8);
    bytes.extend(packed.to_le_bytes());
}

fn read_span(bytes: &[u8]) -> Option<(Span, Kind, Marks)> {
    let (offset, packed) = (u64_at(bytes, 0), u64_at(bytes, 8));
    let kind = Kind::numbered(packed as u8)?;
    Some((Span { offset, length: (packed >> 24) as u32 }, kind, Marks((packed >> 8) as u16)))
}

fn write_link(numbered: &Numbered, bytes: &mut Vec<u8>) {
    let Link { span, group, kind, marks } = numbered.link;
    let begins = bytes.len();
    write_span(span, kind, marks, bytes);
    bytes.extend(group.to_le_bytes());
    // Half of it is enough for the number of a message, and leaves room for a sum.
    bytes.extend(&numbered.number.to_le_bytes()[..NUMBER]);
    let sum = crc32c::crc32c(&bytes[begins..]);
    bytes.extend(&sum.to_le_bytes()[..8 - NUMBER]);
}

fn read_link(bytes: &[u8]) -> io::Result<Numbered> {
    let damaged = || io::Error::other("a damaged index");
    let (body, sum) = bytes.split_at(LINK as usize - (8 - NUMBER));
    if crc32c::crc32c(body).to_le_bytes()[..8 - NUMBER] != *sum {
        return Err(damaged());
    }
    let (span, kind, marks) = read_span(bytes).ok_or_else(damaged)?;
    let mut number = [0; 8];
    number[..NUMBER].copy_from_slice(&body[24..]);
    let number = u64::from_le_bytes(number);
    Ok(Numbered { number, link: Link { span, group: u64_at(bytes, 16), kind, marks } })
}

fn write_node(node: &Node, bytes: &mut Vec<u8>) {
    write_span(node.span, node.kind, node.marks, bytes);
    bytes.extend(node.group.to_le_bytes());
    bytes.extend(u64::from(node.parent.is_some()).to_le_bytes());
    bytes.extend(node.key.0.to_le_bytes());
    bytes.extend(node.parent.map_or(0, |parent| parent.0).to_le_bytes());
}

fn read_node(bytes: &[u8]) -> Option<Node> {
    let (span, kind, marks) = read_span(bytes)?;
    let key = |at: usize| Key(u128::from(u64_at(bytes, at)) | u128::from(u64_at(bytes, at + 8)) << 64);
    let parent = (u64_at(bytes, 24) == 1).then(|| key(48));
    Some(Node { span, key: key(32), parent, group: u64_at(bytes, 16), kind, marks })
}
