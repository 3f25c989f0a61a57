//! The calls that a process makes to the simulated disk by path.

use std::io;
use std::path::Path;

use rethread_store::{Disk, DiskFile, Open, Stat};

use super::SimulatedDisk;
use super::content::Content;
use super::fault::Call;
use super::machine::{EXISTS, Kind, Machine, NOT_FOUND, empty_folder, errno};
use super::open_file::SimulatedFile;

impl Disk for SimulatedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let found = self.state().machine.find(path);
        let makes = !matches!(how, Open::Read | Open::Existing);
        let creates = makes && matches!(&found, Err(error) if error.raw_os_error() == Some(NOT_FOUND));
        let (mut state, _) = self.begin(if creates { Call::Create } else { Call::Open }, path)?;
        let node = match state.machine.find(path) {
            Ok(_) if how == Open::New => return Err(errno(EXISTS)),
            Err(error) if makes && error.raw_os_error() == Some(NOT_FOUND) => {
                state.machine.create(path, Kind::File(Content::default()))?
            }
            found => found?,
        };
        state.machine.opened(node);
        state.handles += 1;
        let handle = state.handles;
        drop(state);
        Ok(Box::new(SimulatedFile { disk: self.clone(), node, path: path.to_owned(), handle }))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.on(Call::Look, path, |machine| Ok(machine.stat(machine.find(path)?)))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let names =
            |machine: &mut Machine| Ok(machine.names(machine.find(folder)?)?.keys().cloned().collect());
        self.on(Call::List, folder, names)
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        self.on(Call::MakeFolder, path, |machine| machine.create(path, empty_folder()).map(drop))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.on(Call::Rename, from, |machine| machine.rename(from, to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.on(Call::Remove, path, |machine| machine.remove(path))
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        let names = self.names(path)?;
        for below in names.into_iter().map(|name| path.join(name)) {
            match self.stat(&below)?.folder {
                true => self.remove_tree(&below)?,
                false => self.remove_file(&below)?,
            }
        }
        self.remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        self.on(Call::SyncFolder, path, |machine| machine.sync_folder(machine.find(path)?))
    }

    fn sync_all(&self, folder: &Path) -> io::Result<bool> {
        self.on(Call::SyncAll, folder, |machine| machine.sync_all().map(|()| true))
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        self.on(Call::Touch, path, |machine| {
            let node = machine.find(path)?;
            machine.touch(node);
            Ok(())
        })
    }
}
