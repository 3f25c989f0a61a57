//! The seam: what a place must be able to do so that sessions can live there.

mod begun;
mod forward;
mod hint;
mod key;
mod unanswered;

use std::fmt;
use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;

use async_trait::async_trait;
use bytes::Bytes;

pub use self::begun::Begun;
pub use self::hint::{Hint, Hints};
pub use self::key::Key;
pub use self::unanswered::{Unanswered, holds};
use crate::error::Result;
use crate::id::{BlobId, EntryId, SessionId};
use crate::stamp::{Flaw, Line, Unseal};

/// A record's number in its log: dense, assigned at append, never used again.
pub type Position = u64;

/// Stores documents, logs and blobs. Everything else is written once, above this.
///
/// # Contract
///
/// *Documents*
/// * `get` gives what the last `put` stored, or `None`.
/// * `put` replaces the whole document or nothing; with an expectation that does not hold it changes nothing
///   and answers with the document that is there.
/// * Of several `put`s with the same expected version, one wins. A document is replaced always with an expectation
///   or never: one without may be lost to one with.
///
/// *Logs*
/// * A log that nobody appended to is empty, not an error.
/// * `append` adds its lines in order, at the position it was told, or adds nothing and answers where the log ends.
///   Where there is no room for all of them it may add the first ones, and says so.
/// * Of several appends at the same position, one wins.
/// * `append_to` adds nothing to a log that begins with another record than it was told, however far that goes.
/// * When `append` returns [`Append::Done`], the lines are as durable as the answer says, and every reader that
///   starts afterwards sees them.
/// * `read` gives lines in order of position, byte for byte, never part of one, and never part of an atomic group.
/// * `read` gives at least one line where there is one, however large, and stops once it holds the size it was given.
/// * Logs do not see each other.
///
/// *Blobs*
/// * What is put under a hash has that hash, or the put is an error and nothing is stored.
/// * Putting a blob again is not an error, and makes it young.
///
/// *Listing and removal*
/// * `list` gives names in ascending order, each once, and goes on after a given name.
/// * `remove` answers whether there was something; what is removed is gone for every reader that starts afterwards.
/// * A stale blob is removed only if nobody has put it since; of a put and such a removal at once, the put wins.
/// * Removing a session removes its logs and its documents, and no other's.
///
/// [`conformance`](crate::conformance) checks this contract; run it on every implementation.
#[async_trait]
pub trait Backend: fmt::Debug + Send + Sync {
    /// Says what this place can promise.
    fn capabilities(&self) -> Capabilities;

    /// Returns a document.
    async fn get(&self, key: &Key) -> Result<Option<Document>>;

    /// Replaces a document.
    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put>;

    /// Adds lines to the end of a log, whose next position must be `at`.
    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append>;

    /// Does the same if the log still begins with this record, as far as that can be read. If it begins with another, the
    /// answer is [`Append::Moved`] wherever it ends: a session that was removed and begun again may have come just as far.
    ///
    /// Without one of its own a place looks first and appends then. Whoever can does both in one step.
    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        let start = self.read(log, From::Position(0), 1).await?;
        if start.lines.first().is_some_and(|line| line.is_another_first(first)) {
            return Ok(Append::Moved { next: self.read(log, From::Last, 1).await?.next });
        }
        self.append(log, at, lines, durability).await
    }

    /// Reads a log.
    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk>;

    /// Reads a log whose records were sealed before they came here, and opens them where they lie; `None` if this place
    /// cannot, and whoever asks has to open them. For backends that wrap others.
    ///
    /// A record that cannot be opened is told as damage. Only whoever opens it knows better.
    async fn read_unsealed(
        &self,
        log: &LogKey,
        from: Position,
        max_bytes: usize,
        by: &dyn Unseal,
    ) -> Result<Option<Chunk>> {
        let _ = (log, from, max_bytes, by);
        Ok(None)
    }

    /// Stores content under its hash.
    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()>;

    /// Stores several contents, each under its hash, and is done when all of them are as durable as if each had been
    /// put alone.
    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        for (blob, content) in blobs {
            self.put_blob(blob, &mut &content[..]).await?;
        }
        Ok(())
    }

    /// Returns a range of a blob, cut at its end, or `None` if it is not there.
    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>>;

    /// Makes a blob young, as putting it again would. Returns whether it is there.
    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        let Some(content) = self.get_blob(blob, 0..u64::MAX).await? else { return Ok(false) };
        self.put_blob(blob, &mut &content[..]).await?;
        Ok(true)
    }

    /// Returns what `list` may call a content: first what it is called when it is put now. By any of these it can be
    /// removed.
    fn listed_as(&self, blob: &BlobId) -> Vec<BlobId> {
        vec![*blob]
    }

    /// Returns names of a space, after a given one.
    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>>;

    /// Removes something for good.
    async fn remove(&self, target: &Target) -> Result<bool>;

    /// Makes everything that readers can see of a log durable, and waits for whoever is writing it now.
    async fn settle(&self, log: &LogKey) -> Result<()> {
        let _ = log;
        Ok(())
    }

    /// Returns whether a log may hold records from this position on; may answer yes wrongly, never no.
    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        Ok(!self.read(log, From::Position(since), 1).await?.lines.is_empty())
    }

    /// Returns the newest position that holds this entry.
    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        let (mut found, mut from) = (None, 0);
        loop {
            let chunk = self.read(log, From::Position(from), 1 << 20).await?;
            if chunk.lines.is_empty() && chunk.next == from {
                return Ok(found);
            }
            for line in &chunk.lines {
                if line.stamp().id == *id {
                    found = Some(line.stamp().position);
                }
            }
            from = chunk.next;
        }
    }

    /// Returns what `list` says of one session.
    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        let name = session.as_str();
        // What begins with all but its last character, and comes before it: few do.
        let mut after = name.char_indices().next_back().map_or("", |(last, _)| &name[..last]).to_owned();
        loop {
            let after_it = Some(after.as_str()).filter(|after| !after.is_empty());
            let page = self.list(Space::Sessions, after_it, 16).await?;
            let Some(last) = page.last().map(|listed| listed.name.clone()) else { return Ok(None) };
            if last.as_str() >= name {
                return Ok(page.into_iter().find(|listed| listed.name == name));
            }
            after = last;
        }
    }

    /// Returns what `list` calls the message log of a session while it ends at a position, if that is known without a
    /// look: from the answer to the append that went there. For places where each look costs a request.
    fn change_at(&self, session: &SessionId, next: Position) -> Option<String> {
        let _ = (session, next);
        None
    }

    /// Returns whether a session is there whose records nobody can read any more, because what they were sealed with was
    /// destroyed. Forks that have it go on reading what they inherit. For backends that seal.
    async fn is_erased(&self, session: &SessionId) -> Result<bool> {
        let _ = session;
        Ok(false)
    }

    /// Returns the file that holds a log, where there is one.
    fn path(&self, log: &LogKey) -> Option<PathBuf> {
        let _ = log;
        None
    }

    /// Rewrites a damaged log so that every readable record is kept and every lost one is named,
    /// with the help of what is known about those.
    async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
        let _ = (log, known);
        Ok(Rewrite::default())
    }

    /// Clears away what interrupted operations left behind.
    async fn sweep(&self) -> Result<u64> {
        Ok(0)
    }

    /// Returns hints of what others, and this process, append from now on, where the place gives any. They end when the
    /// receiver is dropped.
    fn hints(&self) -> Option<Hints> {
        None
    }
}

/// What a place can promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// A short name, as in the URL.
    pub scheme: &'static str,
    /// The most that an append can reach here.
    pub durability: Durability,
    /// Whether processes on several hosts may use it at once.
    pub across_hosts: bool,
    /// Whether it keeps anything at all.
    pub keeps: bool,
    /// The largest record it takes, in bytes.
    pub max_record: usize,
    /// Whether it knows its own appends again. One that failed and is tried again through the same handle, with the very
    /// same lines at the same position and before others of that log, is [`Append::Done`] if it had got through after all,
    /// and [`Append::Moved`] only if it had not. Elsewhere lines are known by their bytes, and another's may be the same.
    pub knows_its_own: bool,
}

/// How far a record has got. Ordered: each level includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Durability {
    /// Nothing is promised.
    Off,
    /// It survives the death of the process; it is synced within a second.
    Written,
    /// It survives the death of the machine.
    #[default]
    Synced,
}

/// The logs that a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LogName {
    /// The conversation and its notes.
    Messages,
    /// The agent's full message stream, for replay and audit.
    Transcript,
    /// One record per capture of files.
    Checkpoints,
}

impl LogName {
    /// Every log of a session.
    pub const ALL: [LogName; 3] = [LogName::Messages, LogName::Transcript, LogName::Checkpoints];

    /// Returns the name as it stands in file names.
    pub fn as_str(self) -> &'static str {
        match self {
            LogName::Messages => "messages",
            LogName::Transcript => "transcript",
            LogName::Checkpoints => "checkpoints",
        }
    }
}

/// One log of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LogKey {
    /// Whose log.
    pub session: SessionId,
    /// Which of its logs.
    pub name: LogName,
}

impl LogKey {
    /// Names a log.
    pub fn new(session: SessionId, name: LogName) -> Self {
        Self { session, name }
    }
}

impl fmt::Display for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.session, self.name.as_str())
    }
}

/// A document, and the version to expect when replacing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What the backend calls this state of it.
    pub version: Version,
    /// Its content.
    pub bytes: Bytes,
}

/// What a backend calls one state of a document. Opaque; equal means unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Version(pub String);

/// What must hold for a document to be replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Any,
    /// It is not there yet.
    Absent,
    /// It is still in this state.
    Version(Version),
}

/// What became of a `put`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Put {
    /// It is stored, and this is its version.
    Done(Version),
    /// The expectation did not hold; this is what is there.
    Conflict(Option<Document>),
}

/// What became of an `append`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Append {
    /// The lines are there.
    Done {
        /// How durable they are now.
        durability: Durability,
        /// What was found wrong at the end of the log, and set aside.
        found: Vec<Damage>,
    },
    /// There was room for the first lines only: whole groups, as durable as was asked for. The rest was not added.
    Part {
        /// How many lines are there.
        count: usize,
        /// How durable they are now.
        durability: Durability,
        /// What was found wrong at the end of the log, and set aside.
        found: Vec<Damage>,
    },
    /// Somebody else appended first; nothing was added.
    Moved {
        /// The log's next position.
        next: Position,
    },
}

/// Where to read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// This position, or the next one that can be read.
    Position(Position),
    /// The last record only.
    Last,
}

/// Part of a log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// Whole records in order.
    pub lines: Vec<Line>,
    /// What could not be read between them.
    pub damage: Vec<Damage>,
    /// Where to go on. Equal to where the read began: there is nothing more for now.
    pub next: Position,
    /// Bytes after the last whole record: a write under way, or a torn one.
    pub tail: Option<Damage>,
    /// There was nothing more behind these records when they were read, so that nobody need ask again to learn that. A
    /// backend that does not know says no.
    pub ends: bool,
}

/// A place in a log that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file, or what the backend has instead.
    pub file: String,
    /// Where it begins there.
    pub offset: u64,
    /// How many bytes it has.
    pub length: u64,
    /// What is wrong.
    pub flaw: Flaw,
    /// The positions whose records are lost; empty if none are.
    pub lost: Range<Position>,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Damage { file, offset, length, flaw, lost } = self;
        write!(f, "{file}: {flaw} at byte {offset}, {length} bytes")?;
        match lost.end.saturating_sub(lost.start) {
            0 => Ok(()),
            1 => write!(f, "; record {} is lost", lost.start),
            _ => write!(f, "; records {} to {} are lost", lost.start, lost.end - 1),
        }
    }
}

/// What `list` can list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Sessions that have at least one log or document, by id.
    Sessions,
    /// Documents of the store itself, by name.
    Documents,
    /// Blobs, by hash, or by what [`listed_as`](Backend::listed_as) says: where nobody is to learn hashes.
    Blobs,
}

/// One name in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name.
    pub name: String,
    /// For a session: changes whenever its message log does.
    pub change: String,
    /// When it was last written.
    pub modified: jiff::Timestamp,
}

/// What `remove` can remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One document.
    Document(Key),
    /// A session with its logs and documents.
    Session(SessionId),
    /// One blob.
    Blob(BlobId),
    /// One blob, unless it was put again since then.
    StaleBlob(BlobId, jiff::Timestamp),
}

/// What is known of a damaged log from elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    /// Its first record, made again, should that be lost.
    pub first: Option<Line>,
    /// Its next position before it was damaged; 0 if that is not known.
    pub next: Position,
}

/// What a rewrite of a damaged log did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewrite {
    /// Records kept, byte for byte.
    pub kept: u64,
    /// Records found inside damaged bytes and put back in their place.
    pub salvaged: u64,
    /// Positions whose records are lost; each is now held by a note that says so.
    pub lost: Vec<Position>,
    /// Where the files as they were are kept.
    pub backup: Option<PathBuf>,
}
