//! One transcript, read from end to end: its conversations, and what is wrong with it.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::chain::{Chain, Link};
use crate::chain_index::fingerprint;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::fault::{Fault, FaultKind};
use crate::key::Key;
use crate::lines::{each_entry, each_line};
use crate::message::Message;
use crate::node::{Marks, Node, Span};
use crate::parallel::with_parallels;
use crate::reader::{Reader, collect};
use crate::scan::Scan;
use crate::session::folder_of;
use crate::sidechain::{Sidechain, sidechains};
use crate::text_flaw::text_flaws;
use crate::tree::{Place, Tree};

/// A transcript as it was when it was opened or refreshed last.
///
/// Of the entries only their places are kept, some eighty bytes each; the file stays open for reading.
///
/// ```no_run
/// use rethread_transcripts::Transcript;
///
/// let transcript = Transcript::open("…/projects/-home-ada/5f1c9a52-….jsonl")?;
/// for message in transcript.messages(&transcript.active().last(50))? {
///     println!("{}: {}", message.role, message.content);
/// }
/// for fault in transcript.faults() {
///     println!("at byte {}: {}", fault.offset, fault.kind);
/// }
/// # Ok::<(), rethread_transcripts::Error>(())
/// ```
#[derive(Debug)]
pub struct Transcript {
    path: PathBuf,
    file: File,
    scan: Scan,
    tree: Tree,
    length: u64,
    /// Of what stands before the place where reading goes on.
    fingerprint: u64,
}

impl Transcript {
    /// Opens a transcript for reading and reads it once. Damage is no error.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let file = File::open(&path).map_err(Error::io("open", &path))?;
        Self::of(file, path)
    }

    /// The same for a file that the caller has opened; the path is only what errors speak of.
    pub fn of(file: File, path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let (scan, tree) = (Scan::default(), Tree::default());
        let mut transcript = Self { path, file, scan, tree, length: 0, fingerprint: 0 };
        transcript.refresh()?;
        Ok(transcript)
    }

    /// Reads what was added since. A file that became shorter or another one is read anew.
    pub fn refresh(&mut self) -> Result<()> {
        let length = self.file.metadata().map_err(Error::io("look at", &self.path))?.len();
        let is_same = || fingerprint(&self.file, self.settled()).is_ok_and(|it| it == self.fingerprint);
        if self.length > 0 && (length < self.length || !is_same()) {
            self.scan = Scan::default();
        }
        let fail = |error| Error::io("read", &self.path)(error);
        self.scan.advance(&self.file, length).map_err(fail)?;
        self.fingerprint = fingerprint(&self.file, self.scan.settled.offset).unwrap_or_default();
        self.tree = Tree::of(&self.scan.nodes, &self.scan.compactions);
        self.length = length;
        Ok(())
    }

    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn tree(&self) -> &Tree {
        &self.tree
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Returns how many bytes of it were read.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns where its last whole line ends: where to [`follow`](crate::From::Offset) it from.
    pub fn settled(&self) -> u64 {
        self.scan.settled.offset
    }

    /// Returns the conversation that Claude Code would resume.
    pub fn active(&self) -> Chain {
        active(&self.tree, &self.scan)
    }

    /// Returns the conversation that ends with an entry, on whichever branch that is.
    pub fn chain_to(&self, uuid: &str) -> Result<Chain> {
        let place = self.tree.find(Key::of(uuid));
        let not_found = || Error::EntryNotFound { path: self.path.clone(), entry: uuid.into() };
        Ok(self.chain(place.ok_or_else(not_found)?))
    }

    /// Returns every conversation there is, one for each entry that nothing follows, in the order of the file. Each is put
    /// together when its turn comes: all at once may take a thousand times what the file does.
    pub fn branches(&self) -> impl Iterator<Item = Chain> {
        // A tool's result that the trunk has beside it is no branch of its own.
        let active: HashSet<u64> = self.active().links.iter().map(|link| link.span.offset).collect();
        let beside = move |place: Place| active.contains(&self.tree.nodes[place].span.offset);
        let leaf = self.tree.active_leaf(self.scan.leaf);
        let leaves = self.tree.leaves().filter(move |&place| Some(place) == leaf || !beside(place));
        leaves.map(|leaf| self.chain(leaf))
    }

    /// Returns what subagents said, where an old version of Claude Code wrote that into the session's own file. Newer
    /// ones give each a file of its own: [`Subagent::all_of`](crate::Subagent::all_of).
    pub fn sidechains(&self) -> Vec<Sidechain> {
        let name = |link: Link| self.envelope_of(link, |entry| entry.text("uuid")).unwrap_or_default();
        let chains = sidechains(&self.scan.nodes).into_iter();
        chains.map(|chain| Sidechain { uuid: name(chain.links[0]), chain }).collect()
    }

    /// Returns every entry of every conversation, in the order of the file.
    pub fn all(&self) -> Chain {
        Chain { links: self.scan.nodes.iter().map(Link::from).collect() }
    }

    pub(crate) fn chain(&self, leaf: Place) -> Chain {
        chain(&self.tree, leaf)
    }

    /// Hands out every entry, of every kind, in the order of the file: also what only says something about the session.
    pub fn each_entry(&self, take: impl FnMut(Span, &[u8])) -> Result<()> {
        each_entry(&self.file, self.length, take).map_err(Error::io("read", &self.path))
    }

    /// Hands out every line as it stands, without its newline, whatever is on it.
    pub fn each_line(&self, mut take: impl FnMut(&[u8])) -> Result<()> {
        let take = |_, line: &[u8], _| take(line);
        each_line(&self.file, 0, self.length, take).map_err(Error::io("read", &self.path))
    }

    /// Returns a reader of a chain's entries.
    pub fn read<'a>(&'a self, chain: &'a Chain) -> Reader<'a> {
        Reader::new(&self.file, &self.path, chain)
    }

    /// Returns the messages of a chain, each whole, without what the program put in between.
    pub fn messages(&self, chain: &Chain) -> Result<Vec<Message>> {
        let chain = chain.messages();
        collect(self.read(&chain), &chain)
    }

    /// Returns where the output of a tool is that was too large for its entry; `None` if the entry has all of it.
    pub fn persisted_output(&self, entry: &Entry<'_>) -> Option<PathBuf> {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Line {
            tool_use_result: Output,
        }
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Output {
            persisted_output_path: PathBuf,
        }
        let line: Line = serde_json::from_slice(entry.raw()).ok()?;
        let path = line.tool_use_result.persisted_output_path;
        // Where Claude Code's folder was moved, the output moved with it.
        let beside = folder_of(&self.path).join("tool-results").join(path.file_name()?);
        Some(if beside.is_file() { beside } else { path })
    }

    /// Returns what entries really follow, where that is something else than they say: by their places. What is on the
    /// way to an entry stays there; the active conversation's last if none is named.
    pub(crate) fn mended_parents(&self, leaf: Option<&str>) -> HashMap<u64, Option<String>> {
        let leaf = match leaf {
            Some(uuid) => self.tree.find(Key::of(uuid)),
            None => self.tree.active_leaf(self.scan.leaf),
        };
        let (parents, cycles) = self.tree.without_cycles(leaf);
        let name = |place: Place| self.envelope(place, |entry| entry.text("uuid"));
        let mended = self.tree.bridged.iter().copied().chain(cycles);
        mended.map(|place| (self.tree.nodes[place].span.offset, parents[place].and_then(name))).collect()
    }

    /// Returns the entries of whose id there is another, by their places: with the first of them the place and the bytes
    /// of the last, with the others nothing.
    pub(crate) fn doubled(&self) -> Result<HashMap<u64, Option<Last>>> {
        let keys: HashSet<Key> = self.tree.doubled.iter().map(|node| node.key).collect();
        let (mut doubled, mut seen) = (HashMap::new(), HashSet::new());
        // In a subagent's own file everything is a sidechain.
        let is_own = !self.scan.nodes.iter().all(|node| node.marks.has(Marks::SIDECHAIN));
        let takes_part = |node: &&Node| !(is_own && node.marks.has(Marks::SIDECHAIN));
        for node in self.scan.nodes.iter().filter(takes_part).filter(|node| keys.contains(&node.key)) {
            let last = match self.tree.find_any(node.key).filter(|_| seen.insert(node.key)) {
                Some(place) => {
                    let chain = Chain { links: vec![Link::from(&self.tree.nodes[place])] };
                    let mut reader = self.read(&chain);
                    let last = reader.next().transpose()?;
                    last.map(|entry| (entry.span().offset, entry.raw().to_vec()))
                }
                None => None,
            };
            doubled.insert(node.span.offset, last);
        }
        Ok(doubled)
    }

    /// Returns whether it tells of files that Claude Code kept: whether [`checkpoints`](crate::ClaudeFolder::checkpoints)
    /// are worth a look.
    pub fn keeps_files(&self) -> bool {
        self.scan.keeps_files
    }

    /// Returns everything that is not as Claude Code writes it, in the order of the file.
    pub fn faults(&self) -> Vec<Fault> {
        let mut faults = self.scan.faults.clone();
        let name = |place: Place| self.envelope(place, |entry| entry.text("uuid")).unwrap_or_default();
        for node in &self.tree.doubled {
            let uuid = self.envelope_of(Link::from(node), |entry| entry.text("uuid")).unwrap_or_default();
            faults.push(fault(Link::from(node), FaultKind::DuplicateUuid { uuid }));
        }
        for &place in &self.tree.bridged {
            let parent = self.envelope(place, |entry| entry.text("parentUuid")).unwrap_or_default();
            let kind = FaultKind::DanglingParent { uuid: name(place), parent };
            faults.push(fault(Link::from(&self.tree.nodes[place]), kind));
        }
        let leaf = self.tree.active_leaf(self.scan.leaf);
        for place in self.tree.without_cycles(leaf).1 {
            let kind = FaultKind::Cycle { uuid: name(place) };
            faults.push(fault(Link::from(&self.tree.nodes[place]), kind));
        }
        if self.length == 0 {
            faults.push(Fault { offset: 0, length: 0, kind: FaultKind::Empty });
        } else if self.scan.entries == 0 {
            faults.push(Fault { offset: 0, length: self.length, kind: FaultKind::NothingReadable });
        } else if leaf.is_none() {
            faults.push(Fault { offset: 0, length: self.length, kind: FaultKind::NoConversation });
        }
        // What is broken anyway need not be text as well.
        let broken = |flaw: &Fault| {
            // They are in the order of the file, and there may be as many as lines.
            let before = self.scan.faults.partition_point(|fault| fault.offset <= flaw.offset);
            let last = before.checked_sub(1).map(|last| &self.scan.faults[last]);
            last.is_some_and(|last| flaw.offset < last.offset + last.length)
        };
        let flaws = text_flaws(&self.file, self.length).unwrap_or_default();
        faults.extend(flaws.into_iter().filter(|flaw| !broken(flaw)));
        faults.sort_by_key(|fault| fault.offset);
        faults
    }

    pub(crate) fn envelope<T>(&self, place: Place, of: impl FnOnce(Entry<'_>) -> Option<T>) -> Option<T> {
        self.envelope_of(Link::from(&self.tree.nodes[place]), of)
    }

    fn envelope_of<T>(&self, link: Link, of: impl FnOnce(Entry<'_>) -> Option<T>) -> Option<T> {
        let chain = Chain { links: vec![link] };
        let mut reader = self.read(&chain);
        reader.next()?.ok().and_then(of)
    }
}

/// The last of entries with one id: where it is, and its bytes.
pub(crate) type Last = (u64, Vec<u8>);

/// Returns the conversation that Claude Code would resume.
pub(crate) fn active(tree: &Tree, scan: &Scan) -> Chain {
    tree.active_leaf(scan.leaf).map_or_else(Chain::default, |leaf| chain(tree, leaf))
}

fn chain(tree: &Tree, leaf: Place) -> Chain {
    let places = with_parallels(tree, tree.trunk(leaf));
    Chain { links: places.into_iter().map(|place| Link::from(&tree.nodes[place])).collect() }
}

fn fault(link: Link, kind: FaultKind) -> Fault {
    Fault { offset: link.span.offset, length: u64::from(link.span.length), kind }
}
