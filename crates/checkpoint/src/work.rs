//! Changing paths from one state to another, so that whatever happens each is in the one or in the other.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rethread_store::EntryId;
use rustix::io::Errno;

use crate::contents::Contents;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::hands::{Hands, sync_each_or_all};
use crate::look::{Print, look_in, look_past};
use crate::path::TreePath;
use crate::root::{Root, says_absent, says_no_folder, stat_in};
use crate::stand::replaced;
use crate::state::{Present, State};

/// A folder that nobody said the mode of.
const FOLDER_MODE: u32 = 0o755;
/// A file that nobody said the mode of.
const FILE_MODE: u32 = 0o644;

/// A path on its way from one state to another.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) path: TreePath,
    pub(crate) from: State,
    pub(crate) to: State,
    /// Which file was seen in the first state; it must still be that one when it is replaced.
    pub(crate) print: Option<Print>,
    /// Its number in the receipt, which its temporary file is named after.
    pub(crate) number: usize,
}

/// The changes of one receipt.
pub(crate) struct Work<'a> {
    pub(crate) root: &'a Root,
    pub(crate) hands: &'a dyn Hands,
    pub(crate) contents: &'a Contents,
    pub(crate) receipt: &'a EntryId,
}

/// What tells how far long work has come: how many paths are done, and of how many.
pub type Tell<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

impl Work<'_> {
    /// Makes every path what it is to be. On an error some may be changed and some not, each wholly or not at all.
    pub(crate) async fn bring(&self, moves: &[Move], tell: Tell<'_>) -> Result<()> {
        let asides = self.prepare(moves, tell).await?;
        self.exchange(moves, &asides)?;
        self.sync_folders(moves)?;
        self.verify(moves)
    }

    /// Writes new contents beside their places and makes them durable. Nothing of the tree is changed yet.
    async fn prepare(&self, moves: &[Move], tell: Tell<'_>) -> Result<BTreeMap<usize, OwnedFd>> {
        // The root's own folder too: its mark must be there before anything changes.
        let root = self.root.folder().try_clone_to_owned();
        let root = root.map_err(Error::io("open", self.root.path()))?;
        let (mut asides, mut files) = (BTreeMap::new(), vec![root]);
        for (done, step) in moves.iter().enumerate() {
            tell(done, moves.len());
            let State::Present(present) = &step.to else { continue };
            let folder = match present {
                Present::Folder { .. } => continue,
                _ => self.nearest_folder(&step.path)?,
            };
            let (name, path) = (self.aside(step), self.root.full(&step.path));
            match present {
                Present::Symlink(target) => {
                    let made = self.hands.make_link(folder.as_fd(), &name, target.as_path().as_os_str());
                    made.map_err(Error::io("make a link beside", &path))?;
                }
                Present::File(file) => {
                    let made = self.hands.make_file(folder.as_fd(), &name);
                    let mut aside = made.map_err(Error::io("write beside", &path))?;
                    let write = |bytes: &[u8]| {
                        self.hands.write(&mut aside, bytes).map_err(Error::io("write beside", &path))
                    };
                    self.contents.read(&step.path, file, write).await?;
                    let mode = file.mode.or_else(|| step.from.file()?.mode).unwrap_or(FILE_MODE);
                    if !Defect::LeaveModesToTheUmask.is_on() {
                        self.hands
                            .set_mode(aside.as_fd(), mode)
                            .map_err(Error::io("set the mode of", &path))?;
                    }
                    // More than a few are synced all at once, and need not be held open for that.
                    if files.len() < 8 {
                        files.push(aside.into());
                    }
                }
                Present::Folder { .. } => unreachable!("folders need no preparation"),
            }
            asides.insert(step.number, folder);
        }
        if !Defect::SkipTheSync.is_on() {
            let synced = sync_each_or_all(self.hands, self.root.folder(), &files);
            synced.map_err(Error::io("sync", self.root.path()))?;
        }
        Ok(asides)
    }

    /// Puts everything in its place: first what goes, then folders, then what comes.
    fn exchange(&self, moves: &[Move], asides: &BTreeMap<usize, OwnedFd>) -> Result<()> {
        let goes = |step: &&Move| {
            matches!(step.from, State::Present(_))
                && !step.from.is_folder()
                && !matches!(&step.to, State::Present(Present::File(_) | Present::Symlink(_)))
        };
        for step in moves.iter().filter(goes) {
            self.take_away(step)?;
        }
        // The deepest first.
        let folder_goes = |step: &&Move| step.from.is_folder() && !step.to.is_folder();
        for step in moves.iter().rev().filter(folder_goes) {
            self.remove_folder(step)?;
        }
        for step in moves.iter().filter(|step| step.to.is_folder()) {
            self.make_folder(step)?;
        }
        for step in moves {
            if let Some(aside) = asides.get(&step.number) {
                self.put(step, aside)?;
            }
        }
        Ok(())
    }

    /// Removes a file or link, unless it is another one than was seen.
    fn take_away(&self, step: &Move) -> Result<()> {
        let (path, name) = (self.root.full(&step.path), self.aside(step));
        let parent = self.root.parent_of(&step.path).map_err(Error::io("open the folder of", &path))?;
        let (folder, target) = (parent.as_fd(), step.path.name());
        // Taken out of the way first: should somebody have replaced it this very moment, it can be put back.
        self.hands.rename((folder, target), (folder, &name)).map_err(Error::io("set aside", &path))?;
        if !self.is_still(step, &parent, &name)? {
            self.hands.rename((folder, &name), (folder, target)).map_err(Error::io("put back", &path))?;
            return Err(Error::Changed { at: Some(step.path.clone()) });
        }
        self.hands.remove(folder, &name).map_err(Error::io("remove", &path))
    }

    fn remove_folder(&self, step: &Move) -> Result<()> {
        let path = self.root.full(&step.path);
        let parent = self.root.parent_of(&step.path).map_err(Error::io("open the folder of", &path))?;
        match self.hands.remove_folder(parent.as_fd(), step.path.name()) {
            // Somebody has put something there since.
            Err(error) if error.raw_os_error() == Some(Errno::NOTEMPTY.raw_os_error()) => {
                Err(Error::Changed { at: Some(step.path.clone()) })
            }
            removed => removed.map_err(Error::io("remove", &path)),
        }
    }

    fn make_folder(&self, step: &Move) -> Result<()> {
        let path = self.root.full(&step.path);
        if !step.from.is_folder() {
            let parent = self.root.parent_of(&step.path).map_err(Error::io("open the folder of", &path))?;
            let made = self.hands.make_folder(parent.as_fd(), step.path.name());
            made.map_err(Error::io("make folder", &path))?;
        }
        let mode = match step.to {
            State::Present(Present::Folder { mode: Some(mode) }) => mode,
            _ if step.from.is_folder() => return Ok(()),
            _ => FOLDER_MODE,
        };
        let folder = self.root.open_folder(&step.path).map_err(Error::io("open", &path))?;
        self.hands.set_mode(folder.as_fd(), mode).map_err(Error::io("set the mode of", &path))
    }

    /// Puts new content in its place, unless another file is there than was seen.
    fn put(&self, step: &Move, aside: &OwnedFd) -> Result<()> {
        let (path, name) = (self.root.full(&step.path), self.aside(step));
        let parent = self.root.parent_of(&step.path).map_err(Error::io("open the folder of", &path))?;
        let (from, to) = ((aside.as_fd(), &*name), (parent.as_fd(), step.path.name()));
        let occupied = matches!(step.from, State::Present(_)) && !step.from.is_folder();
        if !occupied {
            return match self.hands.rename(from, to) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    Err(Error::Changed { at: Some(step.path.clone()) })
                }
                renamed => renamed.map_err(Error::io("put in place", &path)),
            };
        }
        match self.hands.exchange(from, to) {
            Ok(()) => {}
            Err(error) if cannot_exchange(&error) => return self.replace(step, from, to),
            Err(error) if says_absent(&error) => return Err(Error::Changed { at: Some(step.path.clone()) }),
            Err(error) => return Err(Error::io("put in place", &path)(error)),
        }
        if !self.is_still(step, aside, &name)? {
            self.hands.exchange(from, to).map_err(Error::io("put back", &path))?;
            return Err(Error::Changed { at: Some(step.path.clone()) });
        }
        self.hands.remove(aside.as_fd(), &name).map_err(Error::io("remove the former", &path))
    }

    /// The same where names cannot be exchanged: looked at just before.
    fn replace(
        &self,
        step: &Move,
        from: (std::os::fd::BorrowedFd<'_>, &std::ffi::OsStr),
        to: (std::os::fd::BorrowedFd<'_>, &std::ffi::OsStr),
    ) -> Result<()> {
        let path = self.root.full(&step.path);
        let now = Print::of(&stat_in(to.0, to.1).map_err(Error::io("look at", &path))?);
        match step.print.is_none_or(|seen| now.is_still(&seen)) {
            true => self.hands.replace(from, to).map_err(Error::io("put in place", &path)),
            false => Err(Error::Changed { at: Some(step.path.clone()) }),
        }
    }

    /// Returns whether what is under a temporary name is the file that was seen and saved.
    fn is_still(&self, step: &Move, folder: &OwnedFd, name: &std::ffi::OsStr) -> Result<bool> {
        match step.print {
            Some(seen) => {
                let stat = stat_in(folder.as_fd(), name)
                    .map_err(Error::io("look at", self.root.full(&step.path)))?;
                Ok(Print::of(&stat).is_still(&seen))
            }
            None => Ok(look_in(folder.as_fd(), name, u64::MAX).state.same(&step.from)),
        }
    }

    fn sync_folders(&self, moves: &[Move]) -> Result<()> {
        let parents: BTreeSet<Option<TreePath>> = moves.iter().map(|step| step.path.parent()).collect();
        let mut folders = Vec::new();
        for parent in parents.into_iter().take(8) {
            let opened = match &parent {
                Some(parent) => self.root.open_folder(parent),
                None => self.root.folder().try_clone_to_owned(),
            };
            match opened {
                Ok(folder) => folders.push(folder),
                // It went with this very rewind; the folder that it was in is synced.
                Err(error) if says_no_folder(&error) => {}
                Err(error) => return Err(Error::io("open a folder beneath", self.root.path())(error)),
            }
        }
        let synced = sync_each_or_all(self.hands, self.root.folder(), &folders);
        synced.map_err(Error::io("sync", self.root.path()))
    }

    /// Reads every path again.
    fn verify(&self, moves: &[Move]) -> Result<()> {
        let replaced = replaced(moves);
        let differs =
            |step: &&Move| !look_past(self.root, &step.path, &replaced, u64::MAX).state.same(&step.to);
        let wrong = moves.iter().find(differs);
        wrong.map_or(Ok(()), |step| Err(Error::Unverified { path: step.path.clone() }))
    }

    /// Returns the nearest folder that is there: new content waits in it, on the right file system.
    fn nearest_folder(&self, path: &TreePath) -> Result<OwnedFd> {
        let mut failed = None;
        for folder in path.ancestors() {
            match self.root.open_folder(&folder) {
                Ok(opened) => return Ok(opened),
                Err(error) if says_no_folder(&error) => {}
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let failed = failed.map_or_else(|| self.root.folder().try_clone_to_owned(), Err);
        failed.map_err(Error::io("open the folder of", self.root.full(path)))
    }

    /// Returns the name under which a path's new content waits and its former one leaves.
    pub(crate) fn aside(&self, step: &Move) -> OsString {
        // A record says what the receipt is, and records may be anybody's.
        let receipt: String =
            self.receipt.as_str().chars().filter(char::is_ascii_alphanumeric).take(64).collect();
        format!(".rethread-{receipt}-{}", step.number).into()
    }
}

/// Some file systems cannot exchange names.
fn cannot_exchange(error: &io::Error) -> bool {
    [Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}
