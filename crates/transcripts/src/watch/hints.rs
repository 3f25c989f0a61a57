//! Where something may have happened: the system's notices, or the passing of time.

use std::collections::HashMap;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};

use super::{Means, USUALLY};
use crate::shared_file_system::is_shared;

/// Something that may have happened.
#[derive(Debug)]
pub(super) enum Hint {
    /// To these files.
    Files(Vec<PathBuf>),
    /// To anything.
    Everything,
}

/// Where hints come from.
#[derive(Debug)]
pub(super) enum Hints {
    Notices(Notices),
    Looking(Duration),
}

/// The system's notices.
#[derive(Debug)]
pub(super) struct Notices {
    inotify: OwnedFd,
    /// By the number of their watch, which is that of a folder, whatever that is called.
    folders: HashMap<i32, PathBuf>,
    watched: HashMap<PathBuf, i32>,
    /// What leads to the folder that holds everything: if one of these goes, all are to be looked for anew.
    above: HashMap<PathBuf, i32>,
    root: PathBuf,
    /// Not all folders could be watched, so that they are looked at too.
    is_partial: bool,
}

impl Hints {
    pub(super) fn new(root: &Path, means: Means) -> io::Result<Self> {
        Ok(match means {
            Means::Looking { every } => Hints::Looking(every),
            Means::Best if is_remote(root) => Hints::Looking(USUALLY),
            Means::Best => match inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK) {
                Ok(inotify) => Hints::Notices(Notices {
                    inotify,
                    folders: HashMap::new(),
                    watched: HashMap::new(),
                    above: HashMap::new(),
                    root: root.to_owned(),
                    is_partial: false,
                }),
                // Too many of them in use already.
                Err(_) => Hints::Looking(USUALLY),
            },
        })
    }

    /// Watches folders that are not watched yet; returns whether there were any. `is_all` says whether all that happens
    /// happens in them.
    pub(super) fn watch(&mut self, folders: Vec<PathBuf>, is_all: bool) -> bool {
        let Hints::Notices(notices) = self else { return false };
        let before = notices.watched.len();
        let is_way_watched = notices.watch_the_way();
        let unwatched = folders.into_iter().filter(|folder| !notices.add(folder)).count();
        notices.is_partial = unwatched > 0 || !is_way_watched || !is_all;
        notices.watched.len() > before
    }

    /// Waits for the next hint, no longer than given; `None` once the bell rang.
    pub(super) fn wait(&mut self, bell: &Bell, at_most: Option<Duration>) -> Option<Hint> {
        match self {
            Hints::Looking(every) => bell.rings_within(None, Some(*every)).ok().map(|_| Hint::Everything),
            Hints::Notices(notices) => loop {
                let patience = notices.is_partial.then_some(USUALLY).into_iter().chain(at_most).min();
                match bell.rings_within(Some(&notices.inotify), patience) {
                    Err(Rung) => return None,
                    Ok(false) => return Some(Hint::Everything),
                    Ok(true) => {}
                }
                if let Some(hint) = notices.read() {
                    return Some(hint);
                }
            },
        }
    }

    /// Waits for the next hint that may be about something that matters.
    pub(super) fn wait_for(
        &mut self,
        bell: &Bell,
        at_most: Option<Duration>,
        matters: impl Fn(&Path) -> bool,
    ) -> Option<Hint> {
        loop {
            match self.wait(bell, at_most)? {
                Hint::Files(paths) if !paths.iter().any(|path| matters(path)) => {}
                hint => return Some(hint),
            }
        }
    }
}

impl Notices {
    /// Watches the folders and links that lead to the one that holds everything, for nothing but that they go: a folder
    /// gives no notice when one above it is renamed. Returns whether that worked.
    fn watch_the_way(&mut self) -> bool {
        let root = self.root.clone();
        let way = |to: &Path| to.ancestors().skip(1).map(Path::to_owned).collect::<Vec<_>>();
        // From above, each once the way to it is watched: what goes meanwhile is either told of or not found.
        let mut is_watched = way(&root).iter().rev().all(|folder| self.add_above(folder));
        if root.is_symlink() {
            is_watched &= self.add_above(&root);
        }
        if let Ok(real) = root.canonicalize() {
            is_watched &= way(&real).iter().rev().all(|folder| self.add_above(folder));
        }
        is_watched
    }

    fn add_above(&mut self, folder: &Path) -> bool {
        // A relative path's first folder has no name.
        if folder.as_os_str().is_empty() || self.above.contains_key(folder) {
            return true;
        }
        let flags =
            WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF | WatchFlags::DONT_FOLLOW | WatchFlags::MASK_ADD;
        match inotify::add_watch(&self.inotify, folder, flags) {
            Ok(number) => {
                self.above.insert(folder.to_owned(), number);
                true
            }
            // Whoever may not even look into a folder does not rename it either.
            Err(error) => error == rustix::io::Errno::ACCESS,
        }
    }

    /// Watches a folder; returns whether that worked or needs not.
    fn add(&mut self, folder: &Path) -> bool {
        if self.watched.contains_key(folder) {
            return true;
        }
        let flags = WatchFlags::MODIFY
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::MASK_ADD;
        match inotify::add_watch(&self.inotify, folder, flags) {
            Ok(number) => {
                self.folders.insert(number, folder.to_owned());
                self.watched.insert(folder.to_owned(), number);
                true
            }
            // One that is not there is told of by the folder above it, when it comes.
            Err(error) => {
                let above = folder.parent().is_some_and(|above| self.watched.contains_key(above));
                error == rustix::io::Errno::NOENT && above
            }
        }
    }

    /// Reads all notices there are; `None` if none of them matters.
    fn read(&mut self) -> Option<Hint> {
        let mut buffer = [MaybeUninit::uninit(); 8192];
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        let (mut paths, mut everything): (Vec<PathBuf>, bool) = (Vec::new(), false);
        let (mut gone, mut moved, mut is_way_gone) = (Vec::new(), Vec::new(), false);
        // It ends with an error when there are no more.
        while let Ok(notice) = reader.next() {
            let flags = notice.events();
            if flags.contains(ReadFlags::IGNORED) {
                gone.push(notice.wd());
            }
            if flags.contains(ReadFlags::MOVE_SELF) {
                moved.extend(self.folders.get(&notice.wd()).cloned());
            }
            let goes = ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::IGNORED;
            is_way_gone |= flags.intersects(goes) && self.above.values().any(|above| *above == notice.wd());
            // Lost notices, and folders that come or go, mean that everything is looked at.
            everything |= flags.intersects(
                ReadFlags::QUEUE_OVERFLOW
                    | ReadFlags::ISDIR
                    | ReadFlags::DELETE_SELF
                    | ReadFlags::MOVE_SELF
                    | ReadFlags::IGNORED,
            );
            if let (Some(folder), Some(name)) = (self.folders.get(&notice.wd()), notice.file_name()) {
                let name = std::ffi::OsStr::new(name.to_str().unwrap_or_default());
                let path = folder.join(name);
                if paths.last() != Some(&path) {
                    paths.push(path);
                }
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        gone.into_iter().for_each(|number| self.forget(number));
        moved.iter().for_each(|folder| self.forget_beneath(folder));
        if is_way_gone {
            self.forget_all();
        }
        match (everything, paths.is_empty()) {
            (true, _) => Some(Hint::Everything),
            (false, false) => Some(Hint::Files(paths)),
            (false, true) => None,
        }
    }
}

impl Notices {
    /// Forgets a watch that is over.
    fn forget(&mut self, number: i32) {
        // Another folder may have that name by now, and a watch of its own.
        if let Some(folder) = self.folders.remove(&number)
            && self.watched.get(&folder) == Some(&number)
        {
            self.watched.remove(&folder);
        }
    }

    /// Ends the watches of a folder that is called something else by now, and of all in it: what is there under the old
    /// names, if anything, is to be watched anew.
    fn forget_beneath(&mut self, moved: &Path) {
        let beneath = self.watched.iter().filter(|(folder, _)| folder.starts_with(moved));
        for number in beneath.map(|(_, number)| *number).collect::<Vec<_>>() {
            self.end(number);
            self.forget(number);
        }
    }

    /// Ends all watches.
    fn forget_all(&mut self) {
        let above = std::mem::take(&mut self.above).into_values();
        let folders = std::mem::take(&mut self.folders).into_keys();
        above.chain(folders).for_each(|number| self.end(number));
        self.watched.clear();
    }

    fn end(&self, number: i32) {
        // It can only fail when it is over already.
        let _ = inotify::remove_watch(&self.inotify, number);
    }
}

/// What ends a watch.
#[derive(Clone, Debug)]
pub(super) struct Bell(Arc<OwnedFd>);

/// The bell rang.
pub(super) struct Rung;

impl Bell {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)))
    }

    pub(super) fn ring(&self) {
        // It can only fail when it rings already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }

    /// Waits for the bell, for notices, or for time to pass; returns whether there are notices.
    fn rings_within(&self, notices: Option<&OwnedFd>, patience: Option<Duration>) -> Result<bool, Rung> {
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut waited = vec![PollFd::new(&*self.0, PollFlags::IN)];
        waited.extend(notices.map(|notices| PollFd::new(notices, PollFlags::IN)));
        loop {
            match poll(&mut waited, patience.as_ref()) {
                Err(rustix::io::Errno::INTR) => {}
                // Without it there is nothing to wait with.
                Err(_) => return Err(Rung),
                Ok(_) if !waited[0].revents().is_empty() => return Err(Rung),
                Ok(_) => return Ok(waited.get(1).is_some_and(|notices| !notices.revents().is_empty())),
            }
        }
    }
}

fn is_remote(folder: &Path) -> bool {
    let there = folder.ancestors().find(|folder| folder.is_dir());
    let kind = there.and_then(|folder| rustix::fs::statfs(folder).ok()).map(|it| it.f_type);
    kind.is_some_and(is_shared)
}
