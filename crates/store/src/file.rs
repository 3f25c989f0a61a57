//! Sessions as files: plain JSONL under one folder, for any number of processes.

mod blob;
mod disk;
mod document;
mod folder;
mod headroom;
mod index;
mod journal;
mod lock;
mod log;
mod quarantine;
mod read;
mod retained;
mod rewrite;
mod scan;
mod segment;

use std::collections::HashMap;
use std::io::{ErrorKind, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use self::blob::Shelves;
use self::disk::look;
pub use self::disk::{Disk, DiskFile, Extent, Open, RealDisk, Stat};
use self::folder::Folder;
use self::headroom::Headroom;
use self::index::Slots;
use self::journal::Journaling;
use self::read::Bookmark;
use crate::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Known, Listed, LogKey,
    LogName, Position, Put, Rewrite, Space, Target,
};
use crate::error::{Error, Result};
use crate::id::{BlobId, EntryId, SessionId};
use crate::side_by_side::side_by_side;
use crate::stamp::{Line, Unseal};

/// How many sessions are held open; a session's folder costs up to seven file handles.
const MAX_OPEN: usize = 96;
/// How many places readers stopped at are remembered.
const MAX_BOOKMARKS: usize = 1024;
/// The largest record: what a reader still takes in one piece.
const MAX_RECORD: usize = 64 << 20;

/// Sessions as files under one folder.
///
/// Its calls do their work on the calling thread: they take as long as the disk does.
#[derive(Debug)]
pub struct FileBackend {
    disk: Arc<dyn Disk>,
    root: PathBuf,
    /// Names this store in marks and lock files.
    owner: String,
    patience: Duration,
    journaling: Journaling,
    headroom: Headroom,
    folders: Mutex<HashMap<SessionId, Arc<Folder>>>,
    bookmarks: Mutex<HashMap<LogKey, Bookmark>>,
    shelves: Shelves,
}

impl FileBackend {
    /// Opens the store at a folder, which is made with the first write.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::on(Arc::new(RealDisk), root)
    }

    /// Opens a store on some other disk than the machine's own.
    pub fn on(disk: Arc<dyn Disk>, root: impl Into<PathBuf>) -> Self {
        Self {
            disk,
            root: root.into(),
            owner: uuid::Uuid::new_v4().simple().to_string(),
            patience: Duration::from_millis(20),
            journaling: Journaling::default(),
            headroom: Headroom::default(),
            folders: Mutex::default(),
            bookmarks: Mutex::default(),
            shelves: Shelves::default(),
        }
    }

    /// Sets how long one call waits for another process's lock before it answers [`Error::Busy`].
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sets when a log gets a journal, which makes small durable appends faster: after how many of them, and of how many
    /// bytes. `None`: never.
    pub fn with_journal(mut self, after: Option<u32>, space: u64) -> Self {
        self.journaling = Journaling { after, space };
        self
    }

    /// Sets after how many bytes that are written and not synced a log has the file system set room aside ahead of its end,
    /// which makes such appends faster. `None`: never.
    pub fn with_headroom(mut self, after: Option<u64>) -> Self {
        self.headroom = Headroom::after(after);
        self
    }

    /// Returns the store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// How long those wait whose call is not tried again by a writer.
    fn long_patience(&self) -> Duration {
        self.patience.max(Duration::from_secs(5))
    }

    fn session_path(&self, session: &SessionId) -> PathBuf {
        self.root.join("sessions").join(session.as_str())
    }

    fn folder(&self, session: &SessionId) -> Arc<Folder> {
        let mut folders = self.folders.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::new();
        if folders.len() >= MAX_OPEN && !folders.contains_key(session) {
            // What another thread uses stays alive through its own handle; an unsynced end is marked in the
            // lock file, so whoever opens it next makes it durable.
            left.extend(folders.extract_if(|_, folder| Arc::strong_count(folder) == 1));
        }
        let open = || {
            Arc::new(Folder::new(
                &self.disk,
                &self.root,
                session,
                &self.owner,
                self.journaling,
                self.headroom,
            ))
        };
        let folder = folders.entry(session.clone()).or_insert_with(open).clone();
        drop(folders);
        // Not before: it may take a sync.
        drop(left);
        folder
    }

    fn forget(&self, session: &SessionId) {
        self.folders.lock().unwrap_or_else(PoisonError::into_inner).remove(session);
        self.bookmarks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|log, _| log.session != *session);
    }

    fn read_log(&self, log: &LogKey, from: From, max_bytes: usize, by: Option<&dyn Unseal>) -> Result<Chunk> {
        let known = self.bookmarks.lock().unwrap_or_else(PoisonError::into_inner).get(log).copied();
        let folder = self.session_path(&log.session);
        let (chunk, bookmark) = read::read(&*self.disk, &folder, log.name, from, max_bytes, by, known)?;
        if let Some(bookmark) = bookmark {
            let mut bookmarks = self.bookmarks.lock().unwrap_or_else(PoisonError::into_inner);
            if bookmarks.len() >= MAX_BOOKMARKS {
                bookmarks.clear();
            }
            bookmarks.insert(log.clone(), bookmark);
        }
        Ok(chunk)
    }

    fn read_one(&self, log: &LogKey, position: Position) -> Result<Option<Line>> {
        let folder = self.session_path(&log.session);
        let (chunk, _) = read::read(&*self.disk, &folder, log.name, From::Position(position), 1, None, None)?;
        Ok(chunk.lines.into_iter().find(|line| line.stamp().position == position))
    }

    /// Returns the newest position of an entry, from some position on, without an index.
    fn search(&self, log: &LogKey, id: &EntryId, mut from: Position) -> Result<Option<Position>> {
        let folder = self.session_path(&log.session);
        let (mut found, mut bookmark) = (None, None);
        loop {
            let (chunk, mark) =
                read::read(&*self.disk, &folder, log.name, From::Position(from), 1 << 20, None, bookmark)?;
            let hit = chunk.lines.iter().rev().find(|line| line.stamp().id == *id);
            found = hit.map(|line| line.stamp().position).or(found);
            if chunk.next == from {
                return Ok(found);
            }
            (from, bookmark) = (chunk.next, mark);
        }
    }

    fn list_sessions(&self, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        let mut names = self.names(&self.root.join("sessions"))?;
        names.retain(|name| {
            after.is_none_or(|after| name.as_str() > after) && name.parse::<SessionId>().is_ok()
        });
        let look = |name: &String| match self.stat_session(name) {
            Ok(session) => session,
            // Whoever reads it learns why; left out, it would be taken for gone.
            Err(_) => Some(Listed { name: name.clone(), change: String::new(), modified: timestamp(0) }),
        };
        if limit < usize::MAX {
            return Ok(names.iter().filter_map(look).take(limit).collect());
        }
        // Looking at a file is nearly all system call, which scales with the cores.
        Ok(side_by_side(&names, look))
    }

    fn stat_session(&self, name: &str) -> Result<Option<Listed>> {
        let folder = self.root.join("sessions").join(name);
        let log = |number| look(&*self.disk, &segment::path(&folder, LogName::Messages, number));
        let mut newest = match log(0)? {
            Some(stat) if stat.length > 0 => stat,
            // A folder alone is no session: its first record never came, or its last document is gone.
            _ if self.holds_something(&folder)? => match look(&*self.disk, &folder)? {
                Some(stat) => stat,
                None => return Ok(None),
            },
            _ => return Ok(None),
        };
        for number in 1.. {
            match log(number)? {
                Some(stat) => newest = stat,
                None => break,
            }
        }
        let change = format!("{}:{}:{}", newest.inode, newest.length, newest.modified);
        Ok(Some(Listed { name: name.to_owned(), change, modified: timestamp(newest.modified) }))
    }

    fn holds_something(&self, folder: &Path) -> Result<bool> {
        // A file of that name is nobody's session.
        if look(&*self.disk, folder)?.is_none_or(|stat| !stat.folder) {
            return Ok(false);
        }
        for name in self.names(folder)? {
            let written =
                || Ok(look(&*self.disk, &folder.join(&name))?.is_some_and(|stat: Stat| stat.length > 0));
            if name.ends_with(".json") || (name.ends_with(".jsonl") && written()?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the names in a folder, in order; none if it is not there.
    fn names(&self, folder: &Path) -> Result<Vec<String>> {
        match self.disk.names(folder) {
            Ok(mut names) => {
                names.sort_unstable();
                Ok(names)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(Error::io("list", folder)(error)),
        }
    }

    fn remove_session(&self, session: &SessionId) -> Result<bool> {
        let path = self.session_path(session);
        if !self.holds_something(&path)? {
            // Whoever took it away may have died, or have been told of an error, before that was durable.
            return self.sync_sessions().map(|()| false);
        }
        self.take_away(session, &path, || true)
    }

    /// Makes durable which sessions there are.
    fn sync_sessions(&self) -> Result<()> {
        let sessions = self.root.join("sessions");
        match self.disk.sync_folder(&sessions) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(Error::io("sync", &sessions)),
        }
    }

    fn remove_document(&self, key: &Key) -> Result<bool> {
        let path = document::path(&self.root, key);
        let remove = || document::remove(&*self.disk, &path);
        match key.owner() {
            _ if look(&*self.disk, &path)?.is_none() => Ok(false),
            // Under the lock, or a put that expected the document could bring it back.
            Some(session) => self.folder(session).exclusively(self.long_patience(), remove),
            None => document::locked(&self.disk, &self.root, &self.owner, remove),
        }
    }

    /// Removes a folder, if there is still reason to once it is locked.
    fn take_away(&self, session: &SessionId, path: &Path, still: impl FnOnce() -> bool) -> Result<bool> {
        let trash = self.root.join("trash");
        quarantine::make_folder(&*self.disk, &trash)?;
        let aside = trash.join(format!("{session}.{}", uuid::Uuid::new_v4().simple()));
        let taken = self.folder(session).exclusively(self.long_patience(), || {
            if !still() {
                return Ok(false);
            }
            // One rename takes everything away at once; what is left of it is swept up at leisure.
            self.disk.rename(path, &aside).map_err(Error::io("move to the trash", path))?;
            self.sync_sessions().map(|()| true)
        })?;
        self.forget(session);
        if !taken {
            return Ok(false);
        }
        self.disk.remove_tree(&aside).map_err(Error::io("remove", &aside))?;
        Ok(true)
    }
}

#[async_trait]
impl Backend for FileBackend {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            scheme: "file",
            durability: Durability::Synced,
            across_hosts: false,
            keeps: true,
            max_record: MAX_RECORD,
            knows_its_own: false,
        }
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        document::get(&*self.disk, &document::path(&self.root, key))
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        let path = document::path(&self.root, key);
        let replace = || document::put(&*self.disk, &self.root, &path, bytes, &expect);
        match key.owner() {
            // Without an expectation the rename alone is atomic, and waiting for writers would be rude.
            _ if expect == Expect::Any => replace(),
            Some(session) => {
                let folder = self.folder(session);
                if matches!(expect, Expect::Version(_)) && look(&*self.disk, folder.path())?.is_none() {
                    return Ok(Put::Conflict(None));
                }
                quarantine::make_folder(&*self.disk, folder.path())?;
                folder.exclusively(self.long_patience(), replace)
            }
            None => document::locked(&self.disk, &self.root, &self.owner, replace),
        }
    }

    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.folder(&log.session).append(log, None, at, lines, durability, self.patience)
    }

    async fn append_to(
        &self,
        log: &LogKey,
        first: &EntryId,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.folder(&log.session).append(log, Some(first), at, lines, durability, self.patience)
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        self.read_log(log, from, max_bytes, None)
    }

    async fn read_unsealed(
        &self,
        log: &LogKey,
        from: Position,
        max_bytes: usize,
        by: &dyn Unseal,
    ) -> Result<Option<Chunk>> {
        self.read_log(log, From::Position(from), max_bytes, Some(by)).map(Some)
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        blob::put(&*self.disk, &self.root, &self.shelves, blob, content)
    }

    async fn put_blobs(&self, blobs: &[(BlobId, Bytes)]) -> Result<()> {
        blob::put_all(&*self.disk, &self.root, &self.shelves, blobs)
    }

    async fn refresh_blob(&self, blob: &BlobId) -> Result<bool> {
        blob::refresh(&*self.disk, &self.root, &self.shelves, blob)
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        blob::get(&*self.disk, &self.root, blob, range)
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        match space {
            Space::Sessions => self.list_sessions(after, limit),
            Space::Documents => document::list(&*self.disk, &self.root, after, limit),
            Space::Blobs => blob::list(&*self.disk, &self.root, after, limit),
        }
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        match target {
            Target::Session(session) => self.remove_session(session),
            Target::Document(key) => self.remove_document(key),
            Target::Blob(blob) => document::remove(&*self.disk, &blob::path(&self.root, blob)),
            Target::StaleBlob(blob, since) => {
                let remove = || blob::remove_stale(&*self.disk, &self.root, blob, *since);
                document::locked(&self.disk, &self.root, &self.owner, remove)
            }
        }
    }

    async fn settle(&self, log: &LogKey) -> Result<()> {
        self.folder(&log.session).settle(log, self.patience)
    }

    async fn changed(&self, log: &LogKey, since: Position) -> Result<bool> {
        let known = self.bookmarks.lock().unwrap_or_else(PoisonError::into_inner).get(log).copied();
        let folder = self.session_path(&log.session);
        Ok(!known.is_some_and(|known| {
            known.next == since && read::is_still_there(&*self.disk, &folder, log.name, known)
        }))
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        let folder = self.session_path(&log.session);
        let slots = Slots::read(&*self.disk, &folder, log.name);
        // The index lags behind the log's end, where most of what is looked for stands.
        if let Some(position) = self.search(log, id, slots.unknown_after(0))? {
            return Ok(Some(position));
        }
        for position in slots.candidates(id) {
            if self.read_one(log, position)?.is_some_and(|line| line.stamp().id == *id) {
                return Ok(Some(position));
            }
        }
        self.search(log, id, 0)
    }

    async fn stat(&self, session: &SessionId) -> Result<Option<Listed>> {
        self.stat_session(session.as_str())
    }

    fn path(&self, log: &LogKey) -> Option<PathBuf> {
        Some(segment::path(&self.session_path(&log.session), log.name, 0))
    }

    async fn rewrite(&self, log: &LogKey, known: &Known) -> Result<Rewrite> {
        let folder = self.folder(&log.session);
        if look(&*self.disk, folder.path())?.is_none() {
            return Ok(Rewrite::default());
        }
        let done = folder.rewrite(log, known, self.long_patience());
        self.forget(&log.session);
        done
    }

    async fn sweep(&self) -> Result<u64> {
        let (trash, sessions) = (self.root.join("trash"), self.root.join("sessions"));
        let (taken, mut swept) = (self.names(&trash)?, 0);
        if !taken.is_empty() {
            // Whoever took it away may not have got so far: then a power cut brings back a session without its files.
            self.disk.sync_folder(&sessions).map_err(Error::io("sync", &sessions))?;
        }
        for name in taken {
            let path = trash.join(name);
            self.disk.remove_tree(&path).map_err(Error::io("remove", &path))?;
            swept += 1;
        }
        for name in self.names(&sessions)? {
            let path = sessions.join(&name);
            let old = self.disk.stat(&path).is_ok_and(|stat| stat.folder && document::is_abandoned(&stat));
            let empty = || matches!(self.holds_something(&path), Ok(false));
            if let (true, true, Ok(session)) = (old, empty(), name.parse()) {
                swept += u64::from(self.take_away(&session, &path, empty)?);
            }
        }
        if blob::is_undecided(&*self.disk, &self.root) {
            let back = || blob::bring_all_back(&*self.disk, &self.root);
            document::locked(&self.disk, &self.root, &self.owner, back)?;
        }
        Ok(swept + document::sweep(&*self.disk, &self.root)? + blob::sweep(&*self.disk, &self.root)?)
    }
}

fn timestamp(nanoseconds: i128) -> jiff::Timestamp {
    jiff::Timestamp::from_nanosecond(nanoseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
}
