//! A store on a disk in memory, whose files an input may replace, and what every process would see in it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rethread_store::backend::{Backend, Chunk, From, LogKey, LogName, Position};
use rethread_store::{Entry, FileBackend, Line, Options, SessionId, Store};

use super::memory_disk::{MemoryDisk, ROOT};

/// The session that inputs are about.
pub const SESSION: &str = "s";

/// A record as it is stored.
pub type Stored = (Position, Vec<u8>);

/// Runs a future to its end.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    pollster::block_on(future)
}

/// An entry with this id.
pub fn entry(id: &str) -> Entry {
    Entry::parse(format!(r#"{{"uuid":"{id}","role":"user","content":"more"}}"#)).expect("an entry")
}

/// A store in memory.
#[derive(Debug, Default)]
pub struct Home {
    /// Where its files are.
    pub disk: MemoryDisk,
}

impl Home {
    /// Opens the store's files as a new process would.
    pub fn backend(&self) -> FileBackend {
        FileBackend::on(Arc::new(self.disk.clone()), ROOT)
    }

    /// Opens the store as a new process would.
    pub fn store(&self) -> Store {
        Store::new(self.backend(), Options { close_within: Duration::from_secs(1), ..Options::default() })
    }

    /// Returns the id of the session that inputs are about.
    pub fn session(&self) -> SessionId {
        SESSION.parse().expect("an id")
    }

    /// Returns its conversation.
    pub fn messages(&self) -> LogKey {
        LogKey::new(self.session(), LogName::Messages)
    }

    /// Puts a file into the session's folder, or beside it.
    pub fn put(&self, name: &str, bytes: &[u8]) {
        let mut path = self.folder();
        for part in name.split('/') {
            match part {
                ".." => drop(path.pop()),
                part => path.push(part),
            }
        }
        self.disk.put(&path, bytes);
    }

    /// Returns the files of the session by name.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let folder = self.folder();
        let name = |path: &Path| Some(path.strip_prefix(&folder).ok()?.to_str()?.to_owned());
        self.disk.files().into_iter().filter_map(|(path, bytes)| Some((name(&path)?, bytes))).collect()
    }

    fn folder(&self) -> PathBuf {
        Path::new(ROOT).join("sessions").join(SESSION)
    }
}

/// A log read from its beginning, so many bytes at a time.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Whole {
    /// Its records.
    pub records: Vec<Stored>,
    /// The positions that were reported as lost, in order.
    pub lost: Vec<std::ops::Range<Position>>,
    /// Where it ends.
    pub next: Position,
    /// Whether there are bytes after its last record.
    pub tail: bool,
}

/// Reads a log from its beginning to its end.
pub fn read_all(backend: &FileBackend, log: &LogKey, size: usize) -> Whole {
    let mut whole = Whole::default();
    loop {
        let Chunk { lines, damage, next, tail, .. } =
            run(backend.read(log, From::Position(whole.next), size)).expect("files in memory can be read");
        whole.records.extend(lines.iter().map(stored));
        whole.lost.extend(damage.into_iter().map(|damage| damage.lost).filter(|lost| !lost.is_empty()));
        assert!(next >= whole.next, "reading goes forward");
        if next == whole.next {
            whole.tail = tail.is_some();
            return whole;
        }
        whole.next = next;
    }
}

/// Returns a record's position and bytes.
pub fn stored(line: &Line) -> Stored {
    (line.stamp().position, line.as_bytes().to_vec())
}
