//! Transcripts as they grow: each new entry once, in order, from any number of files.
//!
//! The system's notices are only hints where to look. What was delivered of a file is known by its offset, so a notice
//! that is late, doubled or lost changes nothing but the time; where notices cannot be had at all, files are looked at
//! every so often.

mod files;
#[cfg(target_os = "linux")]
mod hints;
#[cfg(not(target_os = "linux"))]
#[path = "watch/looking.rs"]
mod hints;

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::claude_folder::ClaudeFolder;
use crate::error::{Error, Result};
use crate::line::Line;
use crate::live::Live;
use crate::node::Span;

use files::Files;
use hints::{Bell, Hint, Hints};

/// What happened to a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The transcript.
    pub path: PathBuf,
    /// What happened.
    pub event: Event,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// An entry was added.
    Added {
        /// Where it stands.
        span: Span,
        /// The line, without its newline.
        raw: Vec<u8>,
    },
    /// The file became shorter or another one. What it holds now follows, from its beginning.
    Restarted,
    /// The file is gone.
    Removed,
}

/// What happened to a transcript, told where it was read: nothing of it is kept.
#[derive(Clone, Debug)]
pub struct News<'a> {
    /// The transcript.
    pub path: &'a Path,
    /// What happened.
    pub event: Happening<'a>,
}

/// What happened.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are of this one, and none is kept")]
pub enum Happening<'a> {
    /// An entry was added.
    Added(Line<'a>),
    /// The file became shorter or another one. What it holds now follows, from its beginning.
    Restarted,
    /// The file is gone.
    Removed,
    /// That was all for now: whoever gathers entries to tell others of them may do so.
    Rested,
}

impl News<'_> {
    /// Returns it such that it can be kept; `None` where there is nothing to keep.
    pub fn into_change(self) -> Option<Change> {
        let event = match self.event {
            Happening::Added(line) => Event::Added { span: line.span(), raw: line.raw().to_vec() },
            Happening::Restarted => Event::Restarted,
            Happening::Removed => Event::Removed,
            Happening::Rested => return None,
        };
        Some(Change { path: self.path.to_owned(), event })
    }
}

/// From where on a transcript is followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum From {
    /// What is there already is passed over.
    #[default]
    Now,
    /// What is there already is delivered first.
    Beginning,
    /// What stands before this place is passed over. A line must begin there.
    Offset(u64),
}

/// How transcripts are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Means {
    /// By the system's notices, where they can be relied on; else by looking.
    Best,
    /// By looking every so often.
    Looking {
        /// How often.
        every: Duration,
    },
}

/// How often files are looked at where the system gives no notices.
const USUALLY: Duration = Duration::from_secs(1);
/// How often it is looked whether processes are still there.
const ALIVE: Duration = Duration::from_secs(2);

/// Transcripts that are being watched; dropping it ends that.
#[derive(Debug)]
pub struct Watch {
    bell: Bell,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Watches every transcript of Claude Code's folder, those of subagents and those to come included. Folders that are
    /// only linked there are left out.
    ///
    /// `take` is called on a thread of its own, for one change after the other.
    pub fn all(
        claude: &ClaudeFolder,
        from: From,
        means: Means,
        mut take: impl FnMut(Change) + Send + 'static,
    ) -> Result<Self> {
        Self::all_read(claude, from, means, move |news| {
            news.into_change().into_iter().for_each(&mut take);
        })
    }

    /// Watches as [`all`](Self::all) does, for whoever does not keep lines: they are handed out where they were read.
    pub fn all_read(
        claude: &ClaudeFolder,
        from: From,
        means: Means,
        take: impl FnMut(News<'_>) + Send + 'static,
    ) -> Result<Self> {
        Self::start(Files::beneath(claude.projects()), from, means, take)
    }

    /// Watches one transcript, which need not be there yet.
    pub fn one(
        path: &Path,
        from: From,
        means: Means,
        mut take: impl FnMut(Change) + Send + 'static,
    ) -> Result<Self> {
        Self::start(Files::only(path.to_owned()), from, means, move |news| {
            news.into_change().into_iter().for_each(&mut take);
        })
    }

    /// Watches which processes of Claude Code are at work: `take` gets all of them now, whenever its register changes, and
    /// every so often while there are any, since one that is killed leaves the register as it was.
    pub fn live(claude: &ClaudeFolder, mut take: impl FnMut(Vec<Live>) + Send + 'static) -> Result<Self> {
        let (claude, register) = (claude.clone(), claude.register());
        let bell = Bell::new().map_err(Error::io("watch", &register))?;
        let mut hints = Hints::new(&register, Means::Best).map_err(Error::io("watch", &register))?;
        // The register is made by the first process that needs it.
        let folders: Vec<PathBuf> =
            register.parent().into_iter().chain([&*register]).map(Path::to_owned).collect();
        while hints.watch(folders.clone(), true) {}
        let (rung, place) = (bell.clone(), register.clone());
        let work = move || loop {
            let live = claude.live();
            let patience = (!live.is_empty()).then_some(ALIVE);
            take(live);
            match hints.wait_for(&rung, patience, |path| path.starts_with(&register)) {
                None => return,
                Some(Hint::Everything) => while hints.watch(folders.clone(), true) {},
                Some(Hint::Files(_)) => {}
            }
        };
        Self::run(bell, &place, work)
    }

    fn start(
        mut files: Files,
        from: From,
        means: Means,
        mut take: impl FnMut(News<'_>) + Send + 'static,
    ) -> Result<Self> {
        let root = files.root().to_owned();
        let bell = Bell::new().map_err(Error::io("watch", &root))?;
        let mut hints = Hints::new(&root, means).map_err(Error::io("watch", &root))?;
        // Watched first and looked at afterwards, so that nothing happens unseen in between; and again, because a folder
        // may have come into another one before that was watched.
        while hints.watch(files.folders(), files.are_all_in_folders()) {}
        files.begin(from, &mut take);
        let rung = bell.clone();
        let work = move || {
            while let Some(hint) = hints.wait(&rung, None) {
                match hint {
                    Hint::Files(paths) => paths.iter().for_each(|path| files.look_at(path, &mut take)),
                    Hint::Everything => {
                        while hints.watch(files.folders(), files.are_all_in_folders()) {}
                        files.look_at_all(&mut take);
                    }
                }
            }
        };
        Self::run(bell, &root, work)
    }

    fn run(bell: Bell, root: &Path, work: impl FnOnce() + Send + 'static) -> Result<Self> {
        let thread = std::thread::Builder::new().name("transcripts".into()).spawn(work);
        let thread = thread.map_err(Error::io("watch", root))?;
        Ok(Self { bell, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.bell.ring();
        if let Some(thread) = self.thread.take() {
            // A sink that panicked has told so itself.
            drop(thread.join());
        }
    }
}
