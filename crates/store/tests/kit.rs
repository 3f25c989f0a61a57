//! What the tests of this crate share: stores in temporary folders and entries to put in them.

use std::path::{Path, PathBuf};

use rethread_store::{Entry, EntryId, FileBackend, History, NewSession, Options, Session, SessionId, Store};
use tempfile::TempDir;

/// Runs a future to its end.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    pollster::block_on(future)
}

/// Waits until something holds, but not for ever.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < std::time::Duration::from_secs(20), "{what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

/// A store of files in a folder that goes away with it.
pub(crate) struct Home {
    pub(crate) folder: TempDir,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("store")
    }

    /// Opens the store as a new process would.
    pub(crate) fn open(&self) -> Store {
        Store::new(FileBackend::new(self.root()), Options::default())
    }

    pub(crate) fn session_folder(&self, id: &SessionId) -> PathBuf {
        self.root().join("sessions").join(id.as_str())
    }

    pub(crate) fn log(&self, id: &SessionId) -> PathBuf {
        self.session_folder(id).join("messages.jsonl")
    }
}

pub(crate) fn session_id(text: &str) -> SessionId {
    text.parse().unwrap()
}

pub(crate) fn entry_id(text: &str) -> EntryId {
    text.parse().unwrap()
}

/// The n-th message of a conversation: `u1`, `u2`, …
pub(crate) fn message(n: usize) -> Entry {
    let role = if n % 2 == 1 { "user" } else { "assistant" };
    Entry::parse(format!(r#"{{"uuid":"u{n}","role":"{role}","content":"message {n}"}}"#)).unwrap()
}

/// Begins a session with messages `u1` to `uN`.
pub(crate) fn conversation(store: &Store, id: &str, length: usize) -> Session {
    run(async {
        let session = store.create(NewSession::at("/tmp").id(session_id(id))).await.unwrap();
        for n in 1..=length {
            session.append(message(n)).await.unwrap().await.unwrap();
        }
        session
    })
}

/// The ids of a history, joined by spaces.
pub(crate) fn ids(history: &History) -> String {
    history.entries().map(|entry| entry.id().as_str()).collect::<Vec<_>>().join(" ")
}

pub(crate) fn chain_of(session: &Session) -> String {
    ids(&run(session.messages()).unwrap())
}

/// Every file below a folder with its content, in order.
pub(crate) fn tree(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the test") {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let content = std::fs::read(&path).unwrap();
                files.push((path, content));
            }
        }
    }
    files.sort();
    files
}
