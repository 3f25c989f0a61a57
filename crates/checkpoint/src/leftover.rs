//! What an interrupted change left beside its place: new content that waited there, or the former one on its way out.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::error::{Error, Result};
use crate::look::{look, look_in, shortage};
use crate::path::TreePath;
use crate::state::State;
use crate::work::{Move, Work};

impl Work<'_> {
    /// Clears away what an interrupted change left beside its place. Returns whether the path itself is somebody
    /// else's, which was caught on its way out and is put back.
    pub(crate) fn clear(&self, step: &Move) -> Result<bool> {
        let name = self.aside(step);
        let mut caught = false;
        for folder in self.folders_of(&step.path)? {
            let aside = look_in(folder.as_fd(), &name, u64::MAX).or_short_of(self.root, &step.path)?;
            if matches!(aside.state, State::Absent) {
                continue;
            }
            let path = self.root.full(&step.path);
            let here = look(self.root, &step.path, u64::MAX).or_short_of(self.root, &step.path)?.state;
            let ours = aside.state.same(&step.from) || aside.state.same(&step.to);
            match self.is_swapped(step, &here) {
                // A folder of ours is in its place already; what was caught stays where it is.
                Some(true) if !ours && here.is_folder() => {
                    caught = true;
                    continue;
                }
                // Somebody saved it while the two changed places: what was caught goes back.
                Some(true) if !ours => {
                    caught = true;
                    let back = self.put_back(step, folder.as_fd(), &name, &here);
                    back.map_err(Error::io("put back", &path))?;
                    if here == State::Absent {
                        continue;
                    }
                }
                // It is half of the new content, or all of either.
                Some(_) => {}
                None if ours => {}
                // Somebody changed the path since, and what is aside may be somebody's too: it is never removed.
                None => continue,
            }
            let cleared = self.hands.remove(folder.as_fd(), &name);
            cleared.map_err(Error::io("clear away what is beside", &path))?;
        }
        Ok(caught)
    }

    /// Returns whether a path and what is aside have changed places; nothing if that cannot be told.
    fn is_swapped(&self, step: &Move, here: &State) -> Option<bool> {
        let had_content = matches!(step.from, State::Present(_)) && !step.from.is_folder();
        let gets_content = matches!(step.to, State::Present(_)) && !step.to.is_folder();
        match () {
            () if !had_content => Some(false),
            () if here.same(&step.from) => Some(false),
            () if here.same(&step.to) => Some(true),
            () if !gets_content && (*here == State::Absent || here.is_folder()) => Some(true),
            () => None,
        }
    }

    fn put_back(
        &self,
        step: &Move,
        folder: std::os::fd::BorrowedFd<'_>,
        name: &std::ffi::OsStr,
        here: &State,
    ) -> io::Result<()> {
        let parent = self.root.parent_of(&step.path)?;
        let place = (parent.as_fd(), step.path.name());
        match here {
            State::Absent => self.hands.rename((folder, name), place),
            _ => self.hands.exchange((folder, name), place),
        }
    }

    /// Returns every folder that new content may have waited in.
    fn folders_of(&self, path: &TreePath) -> Result<Vec<OwnedFd>> {
        let opened = path.ancestors().map(|folder| self.root.open_folder(&folder));
        let opened = opened.chain([self.root.folder().try_clone_to_owned()]);
        let mut folders = Vec::new();
        for folder in opened {
            match folder {
                Ok(folder) => folders.push(folder),
                // What cannot be opened now may hold something of ours; what one may not open never did.
                Err(error) if shortage(&error).is_some() => {
                    return Err(Error::io("open a folder of", self.root.full(path))(error));
                }
                Err(_) => {}
            }
        }
        Ok(folders)
    }
}
