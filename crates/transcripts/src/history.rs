//! Pages of a conversation, from either end, without reading the rest.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::chain::Chain;
use crate::chain_index::{ChainIndex, Numbered, numbered};
use crate::error::{Error, Result};
use crate::message::Message;
use crate::reader::{Reader, collect};
use crate::scan::Scan;
use crate::transcript::active;
use crate::tree::Tree;
use crate::walk::State;

/// The active conversation of a transcript, a page at a time.
///
/// With an index, opening a transcript that is as it was reads a hundred bytes, and a page costs what it holds. Where
/// the transcript grew, only what is new is read.
///
/// ```no_run
/// use rethread_transcripts::History;
///
/// let history = History::open("…/5f1c9a52-….jsonl".as_ref(), Some("/home/ada/.cache/x.chain".as_ref()))?;
/// let newest = history.last(50)?;
/// let before = history.messages(history.count().saturating_sub(100)..history.count().saturating_sub(50))?;
/// # Ok::<(), rethread_transcripts::Error>(())
/// ```
#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: File,
    links: Links,
    size: u64,
    index: Option<PathBuf>,
}

/// Where the messages are.
#[derive(Debug)]
enum Links {
    OnDisk(ChainIndex),
    Known(Vec<Numbered>),
}

impl History {
    /// Opens a transcript, with an index in a file of the caller's if it is to have one.
    pub fn open(path: &Path, index: Option<&Path>) -> Result<Self> {
        let file = File::open(path).map_err(Error::io("open", path))?;
        Self::of(file, path, index)
    }

    /// The same for a file that the caller has opened; the path is only what errors speak of.
    pub fn of(file: File, path: &Path, index: Option<&Path>) -> Result<Self> {
        let metadata = file.metadata().map_err(Error::io("look at", path))?;
        let state = State::of(&metadata);
        let there = index.and_then(ChainIndex::open);
        let links = match there {
            Some(there) if there.fits(state) => Links::OnDisk(there),
            there => {
                let mut scan = there.and_then(|there| there.scan(&file, state)).unwrap_or_default();
                scan.advance(&file, state.size).map_err(Error::io("read", path))?;
                let links = numbered(&conversation(&scan));
                if let Some(index) = index {
                    ChainIndex::save(index, &file, state, &scan, &links)
                        .map_err(Error::io("write", index))?;
                }
                Links::Known(links)
            }
        };
        Ok(Self { path: path.to_owned(), file, links, size: state.size, index: index.map(Path::to_owned) })
    }

    /// Returns how many messages there are.
    pub fn count(&self) -> u64 {
        match &self.links {
            Links::OnDisk(index) => index.messages(),
            Links::Known(links) => links.last().map_or(0, |last| last.number + 1),
        }
    }

    /// Returns some messages by their numbers, from 0. What lies beyond the last one is left out.
    pub fn messages(&self, numbers: Range<u64>) -> Result<Vec<Message>> {
        let among = |links: &[Numbered]| {
            let first = |number: u64| links.partition_point(|link| link.number < number);
            links[first(numbers.start)..first(numbers.end).max(first(numbers.start))].to_vec()
        };
        let chain = self.some(|index| index.links(numbers.clone()), among)?;
        collect(Reader::new(&self.file, &self.path, &chain), &chain)
    }

    /// Returns how many lines the messages are written on: one for each of their blocks.
    pub fn lines(&self) -> u64 {
        match &self.links {
            Links::OnDisk(index) => index.len(),
            Links::Known(links) => links.len() as u64,
        }
    }

    /// Returns some lines by their numbers, from 0, as a chain to be [`read`](History::read).
    pub fn chain(&self, lines: Range<u64>) -> Result<Chain> {
        let among = |links: &[Numbered]| {
            let end = usize::try_from(lines.end).unwrap_or(usize::MAX).min(links.len());
            let start = usize::try_from(lines.start).unwrap_or(usize::MAX).min(end);
            links[start..end].to_vec()
        };
        self.some(|index| index.lines(lines.clone()), among)
    }

    /// Returns some of the links as a chain, from wherever they are.
    fn some(
        &self,
        on_disk: impl Fn(&ChainIndex) -> io::Result<Vec<Numbered>>,
        among: impl Fn(&[Numbered]) -> Vec<Numbered>,
    ) -> Result<Chain> {
        let links = match &self.links {
            Links::Known(links) => among(links),
            // A damaged index costs what it would have spared, and nothing else.
            Links::OnDisk(index) => match on_disk(index) {
                Ok(links) => links,
                Err(_) => among(&self.read_anew()?),
            },
        };
        Ok(Chain { links: links.into_iter().map(|numbered| numbered.link).collect() })
    }

    fn read_anew(&self) -> Result<Vec<Numbered>> {
        if let Some(index) = &self.index {
            // So that the next one who opens it makes it anew. If it cannot be, it is read anew each time.
            drop(std::fs::remove_file(index));
        }
        let mut scan = Scan::default();
        scan.advance(&self.file, self.size).map_err(Error::io("read", &self.path))?;
        Ok(numbered(&conversation(&scan)))
    }

    /// Returns a reader of a chain's lines.
    pub fn read<'a>(&'a self, chain: &'a Chain) -> Reader<'a> {
        Reader::new(&self.file, &self.path, chain)
    }

    /// Returns how long the file was when it was opened.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the first messages.
    pub fn first(&self, count: u64) -> Result<Vec<Message>> {
        self.messages(0..count)
    }

    /// Returns the last messages.
    pub fn last(&self, count: u64) -> Result<Vec<Message>> {
        self.messages(self.count().saturating_sub(count)..self.count())
    }
}

fn conversation(scan: &Scan) -> Chain {
    active(&Tree::of(&scan.nodes, &scan.compactions), scan)
}
