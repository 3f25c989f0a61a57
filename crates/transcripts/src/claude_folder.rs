//! Claude Code's folder, and the sessions in it.

use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::catalog::{Catalog, Learnt};
use crate::count::Count;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::listing::{Listing, assemble};
use crate::live::{Live, Stale, live, register_of, stale};
use crate::look::{Look, Looked, RACY};
use crate::session::Session;
use crate::skim::Buffer;
use crate::transcript::Transcript;
use crate::walk::{Found, State, Walked, is_uuid, name_of, walk};

/// Claude Code's configuration folder: `$CLAUDE_CONFIG_DIR`, else `~/.claude`. It is only read.
///
/// ```no_run
/// use rethread_transcripts::{ClaudeFolder, ListOptions};
///
/// let claude = ClaudeFolder::new("/home/ada/.claude");
/// for session in claude.list(&ListOptions::default())?.sessions {
///     println!("{} {}", session.session_id, session.name.unwrap_or_default());
/// }
/// # Ok::<(), rethread_transcripts::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClaudeFolder {
    root: PathBuf,
    links: Links,
}

/// How to list sessions.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ListOptions {
    /// Where to keep what was learnt, so that the next listing opens only what changed. A file of the caller's.
    pub index: Option<PathBuf>,
    /// How many sessions at most, the newest; 0 for all. Others are then not even looked at.
    pub limit: usize,
    /// What to do about links beneath the folder.
    pub links: Links,
}

/// What to do about symbolic links beneath Claude Code's folder. The folder itself may be one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Links {
    /// Follow them, as Claude Code does.
    #[default]
    Follow,
    /// Take what they point to for nothing: for programs that show what they read to somebody else.
    Refuse,
}

impl ListOptions {
    /// Keeps what was learnt in a file.
    pub fn index(self, path: impl Into<PathBuf>) -> Self {
        Self { index: Some(path.into()), ..self }
    }

    /// Lists the newest only.
    pub fn limit(self, limit: usize) -> Self {
        Self { limit, ..self }
    }

    /// Says what to do about links.
    pub fn links(self, links: Links) -> Self {
        Self { links, ..self }
    }
}

impl ClaudeFolder {
    /// Names a folder. Nothing is read yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), links: Links::default() }
    }

    /// Says what to do about links beneath the folder when something is changed: renamed, deleted, restored, forked.
    pub fn links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// Opens the folder that a file of this one is in; also returns the file's name.
    pub(crate) fn place<'a>(&self, path: &'a Path) -> Result<(Folder, &'a OsStr)> {
        let nowhere = || Error::io("open", path)(io::ErrorKind::NotFound.into());
        let within = path.strip_prefix(&self.root).map_err(|_| nowhere())?;
        let (Some(folder), Some(name)) = (within.parent(), path.file_name()) else { return Err(nowhere()) };
        Ok((Folder::open(&self.root, self.links)?.beneath(folder)?, name))
    }

    /// Opens this folder itself.
    pub(crate) fn open(&self) -> Result<Folder> {
        Folder::open(&self.root, self.links)
    }

    /// Returns the folder.
    pub fn path(&self) -> &Path {
        &self.root
    }

    /// Returns the folder of projects.
    pub fn projects(&self) -> PathBuf {
        self.root.join("projects")
    }

    /// Lists sessions, the newest first. Damaged ones are among them.
    pub fn list(&self, options: &ListOptions) -> Result<Listing> {
        let projects = self.projects();
        let bytes = OnceLock::new();
        let read = || options.index.as_deref().map(Catalog::bytes).unwrap_or_default();
        let load = || Catalog::of(bytes.get_or_init(read));
        let (catalog, walked) = thread::scope(|scope| {
            let walked = scope.spawn(|| walk(&projects, options.links));
            (load(), walked.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let Walked { mut found, unreadable } = walked.map_err(Error::io("look into", &projects))?;
        found.sort_unstable_by(|one, other| {
            other.state.modified.cmp(&one.state.modified).then_with(|| one.id.cmp(&other.id))
        });
        if options.limit > 0 {
            found.truncate(options.limit);
        }
        let Looked { learnt, has_news } = Looked::at(&found, &catalog, options.links);
        if let Some(index) = options.index.as_deref().filter(|_| has_news && options.limit == 0) {
            let files = found.iter().map(Found::name);
            Catalog::keep(index, now().saturating_sub(RACY), files.zip(&learnt))?;
        }
        Ok(Listing { unreadable, ..assemble(found, &learnt, &self.live()) })
    }

    /// Counts the messages of sessions that nobody counted since they changed, the newest first, and keeps the counts in
    /// an index. Stops when `go_on` says no. Returns how many were counted.
    pub fn count(&self, index: &Path, mut go_on: impl FnMut() -> bool) -> Result<usize> {
        let listing = self.list(&ListOptions::default().index(index))?;
        let uncounted = listing.sessions.into_iter().filter(|session| session.message_count.is_none());
        // One that cannot be read stays uncounted; the listing says why.
        let counted = uncounted.take_while(|_| go_on()).filter_map(|session| {
            Transcript::open(session.path).ok().map(|transcript| Count::of(&transcript))
        });
        self.keep_counts(index, counted)
    }

    /// Keeps counts in an index, of files that are still as the index knows them. Returns how many those were.
    pub fn keep_counts(&self, index: &Path, counts: impl IntoIterator<Item = Count>) -> Result<usize> {
        let bytes = Catalog::bytes(index);
        let mut catalog = Catalog::of(&bytes);
        let mut kept = 0;
        for count in counts {
            let project = count.path.parent().and_then(Path::file_name).unwrap_or_default();
            let id = count.path.file_stem().unwrap_or_default();
            let name = name_of(&project.to_string_lossy(), &id.to_string_lossy());
            if let Some(known) = catalog.kept.get_mut(&*name).filter(|known| known.size == count.size) {
                known.message_count = Some(count.messages);
                known.damage = count.damage;
                kept += 1;
            }
        }
        catalog.save(index)?;
        Ok(kept)
    }

    /// Returns the ids of all sessions, in no order. No file is opened.
    pub fn ids(&self) -> Vec<String> {
        let folders = fs::read_dir(self.projects()).into_iter().flatten().flatten();
        let entries = folders.flat_map(|folder| fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names
            .filter_map(|name| name.strip_suffix(".jsonl").filter(|id| is_uuid(id)).map(str::to_owned))
            .collect()
    }

    /// Finds a session's file by its id. Where a folder was copied there are two of them; the newer is meant.
    pub fn find(&self, session: &str) -> Result<PathBuf> {
        let not_found = || Error::SessionNotFound(session.to_owned());
        if !is_uuid(session) {
            return Err(not_found());
        }
        let projects = self.projects();
        let folders = fs::read_dir(&projects).map_err(|_| not_found())?;
        let files = folders.flatten().map(|folder| folder.path().join(format!("{session}.jsonl")));
        let is_file = |file: PathBuf| Some((fs::metadata(&file).ok().filter(Metadata::is_file)?, file));
        // In the order of a listing, the first of which is the newest.
        let newest = files.filter_map(is_file).max_by_key(|(metadata, _)| State::of(metadata).modified);
        newest.map(|(_, file)| file).ok_or_else(not_found)
    }

    /// Looks at one session again that a listing found: costs its ends, not the whole folder. What only other sessions
    /// tell, such as its forks, stays as it was.
    pub fn again(&self, session: &Session, links: Links) -> Result<Session> {
        let mut again = self.look(&session.path, links)?;
        let is_as_it_was = (again.updated_at, again.size) == (session.updated_at, session.size);
        again.message_count = session.message_count.filter(|_| is_as_it_was);
        // What grows does not get well by it.
        again.damage = session.damage.clone().filter(|_| again.size >= session.size);
        again.forked_from = again.forked_from.or_else(|| session.forked_from.clone());
        again.forks.clone_from(&session.forks);
        Ok(again)
    }

    /// Looks at one session by its file, without what only other sessions tell.
    pub fn look(&self, path: &Path, links: Links) -> Result<Session> {
        let id =
            path.file_stem().and_then(|stem| stem.to_str()).filter(|stem| is_uuid(stem)).unwrap_or_default();
        let not_found = || Error::SessionNotFound(id.to_owned());
        let is_ours = path.extension().is_some_and(|it| it == "jsonl") && !id.is_empty();
        let found = Found::at(path, id, links).filter(|_| is_ours).ok_or_else(not_found)?;
        let record = Look::at(&found, None, links).record(&mut Buffer::default());
        let listing = assemble(vec![found], &[Learnt::Fresh(Box::new(record))], &self.live());
        listing.sessions.into_iter().next().ok_or_else(not_found)
    }

    /// Returns where they say so.
    pub(crate) fn register(&self) -> PathBuf {
        register_of(&self.root)
    }

    /// Returns the processes of Claude Code that are at work.
    pub fn live(&self) -> Vec<Live> {
        live(&self.root)
    }

    /// Returns processes that the register speaks of and that have ended.
    pub fn stale(&self) -> Vec<Stale> {
        stale(&self.root)
    }

    /// Returns the process that is at work on a session.
    pub fn live_on(&self, session: &str) -> Option<Live> {
        self.live().into_iter().find(|live| live.session == session)
    }
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
