//! Places on the server that all tests share, and what is put into them.

use std::path::PathBuf;
use std::time::Duration;

use pollster::block_on;
use rethread_s3::{S3Backend, Settings};
use rethread_store::backend::{Append, Backend as _, Chunk, Durability, From, LogKey, LogName, Position};
use rethread_store::{Entry, Kind, Line, NewSession, Options, Session, Stamp, Store};
use rethread_testkit::{S3, S3Proxy, cannot};

/// A bucket of its own, and a way to it.
pub(crate) struct Place {
    pub(crate) way: S3Proxy,
    pub(crate) objects: PathBuf,
    bucket: String,
    /// How long a call goes on trying.
    pub(crate) patience: Duration,
}

impl Place {
    /// Returns an empty one, unless the server cannot be installed.
    pub(crate) fn new() -> Option<Self> {
        let Some(server) = S3::shared() else {
            cannot("there is no S3 server: scripts/setup s3");
            return None;
        };
        Some(Self::on(server))
    }

    pub(crate) fn on(server: &S3) -> Self {
        let bucket = server.bucket();
        let (way, objects) = (server.way(), server.objects(&bucket).join("team/a"));
        Self { way, objects, bucket, patience: Duration::from_secs(30) }
    }

    /// Returns a backend, as another process would have it.
    pub(crate) fn backend(&self) -> S3Backend {
        self.backend_by(&self.way)
    }

    pub(crate) fn backend_by(&self, way: &S3Proxy) -> S3Backend {
        let settings = Settings::parse(&format!("s3://{}/team/a", self.bucket)).unwrap();
        let mut settings = settings.with_variables(way.variables());
        settings.patience = self.patience;
        S3Backend::new(&settings).unwrap()
    }

    pub(crate) fn store(&self) -> Store {
        Store::new(self.backend(), Options::default())
    }

    /// Returns a store with a session in it.
    pub(crate) fn session(&self) -> (Store, Session) {
        let store = self.store();
        let session = block_on(store.create(NewSession::default().id("s".parse().unwrap()))).unwrap();
        (store, session)
    }

    /// Returns the names of the objects whose names begin with a text, in order.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        let mut names = Vec::new();
        for folder in ["sessions", "parts", "blobs", "contents", "documents"] {
            let files = std::fs::read_dir(self.objects.join(folder)).into_iter().flatten();
            names.extend(
                files.map(|file| format!("{folder}/{}", file.unwrap().file_name().to_str().unwrap())),
            );
        }
        names.retain(|name| name.starts_with(prefix));
        names.sort();
        names
    }
}

pub(crate) fn entry(id: &str) -> Entry {
    Entry::parse(format!(r#"{{"uuid":"{id}","text":"hi"}}"#)).unwrap()
}

/// Returns the ids of a session's entries, in order.
pub(crate) fn ids(session: &Session) -> Vec<String> {
    let history = block_on(session.messages()).unwrap();
    assert_eq!(history.gaps, []);
    history.entries().map(|entry| entry.id().to_string()).collect()
}

/// Returns the log of messages of a session.
pub(crate) fn messages(session: &str) -> LogKey {
    LogKey::new(session.parse().unwrap(), LogName::Messages)
}

/// Returns a record that stands alone, with a text of a certain length.
pub(crate) fn sized(position: Position, id: &str, length: usize) -> Line {
    let stamp = Stamp {
        position,
        parent: position.checked_sub(1),
        depth: position + 1,
        kind: Kind::Entry,
        id: id.parse().unwrap(),
        left: 0,
        unsettled: 0,
    };
    let text = "x".repeat(length);
    Line::new(&Entry::parse(format!(r#"{{"uuid":"{id}","text":"{text}"}}"#)).unwrap(), stamp)
}

pub(crate) fn line(position: Position, id: &str) -> Line {
    sized(position, id, 2)
}

/// Appends, and expects that to be done.
pub(crate) fn append(backend: &S3Backend, log: &LogKey, lines: &[Line]) {
    let at = lines[0].stamp().position;
    let appended = block_on(backend.append(log, at, lines, Durability::Synced)).unwrap();
    assert_eq!(appended, Append::Done { durability: Durability::Synced, found: Vec::new() });
}

/// Reads a log from its beginning to its end.
pub(crate) fn whole(backend: &S3Backend, log: &LogKey) -> Chunk {
    let mut all = Chunk::default();
    loop {
        let chunk = block_on(backend.read(log, From::Position(all.next), 1 << 20)).unwrap();
        if chunk.next == all.next {
            return all;
        }
        all.lines.extend(chunk.lines);
        all.damage.extend(chunk.damage);
        all.next = chunk.next;
    }
}

/// Returns the ids of lines.
pub(crate) fn names(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| line.stamp().id.to_string()).collect()
}
