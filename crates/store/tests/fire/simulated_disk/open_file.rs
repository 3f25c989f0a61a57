//! A file of the simulated disk that a process has open.

use std::io;
use std::path::PathBuf;

use rethread_store::{DiskFile, Stat};

use super::fault::{Call, Fate};
use super::machine::{Node, errno};
use super::{SimulatedDisk, State};

#[derive(Debug)]
pub(super) struct SimulatedFile {
    pub(super) disk: SimulatedDisk,
    pub(super) node: Node,
    pub(super) path: PathBuf,
    pub(super) handle: u64,
}

impl DiskFile for SimulatedFile {
    fn stat(&self) -> io::Result<Stat> {
        self.disk.on(Call::Look, &self.path, |machine| Ok(machine.stat(self.node)))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.disk.on(Call::Read, &self.path, |machine| {
            let bytes = machine.content(self.node)?.bytes();
            let from = (offset as usize).min(bytes.len());
            let count = buffer.len().min(bytes.len() - from);
            buffer[..count].copy_from_slice(&bytes[from..from + count]);
            Ok(count)
        })
    }

    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let (mut state, fate) = self.disk.begin(Call::Append, &self.path)?;
        let (half, rest) = bytes.split_at(bytes.len().div_ceil(2));
        let end = state.machine.content(self.node)?.length();
        state.machine.change(self.node, |content| content.write(half, end))?;
        if fate == Fate::Half {
            return Ok(half.len());
        }
        // A process may be killed in the middle of a write.
        state.tell(|| format!("half of Append {}", self.path.display()));
        state.machine.change(self.node, |content| content.write(rest, end + half.len()))?;
        Ok(bytes.len())
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let (mut state, fate) = self.disk.begin(Call::Write, &self.path)?;
        let count = if fate == Fate::Half { bytes.len().div_ceil(2) } else { bytes.len() };
        state.machine.change(self.node, |content| content.write(&bytes[..count], offset as usize))?;
        Ok(count)
    }

    fn truncate(&self, length: u64) -> io::Result<()> {
        self.disk.on(Call::Cut, &self.path, |machine| {
            machine.change(self.node, |content| content.cut(length as usize))
        })
    }

    // What it leaves is as long as before, so that no crash shows it.
    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        self.disk.on(Call::Reserve, &self.path, |_| Ok(()))
    }

    fn sync(&self) -> io::Result<()> {
        let (mut state, fate) = self.disk.begin(Call::Sync, &self.path)?;
        match fate {
            Fate::Failed(failure) => {
                let State { machine, rng, failing, .. } = &mut *state;
                machine.fail_sync(self.node, *failing, rng);
                Err(errno(failure.code()))
            }
            _ => state.machine.sync_file(self.node),
        }
    }

    fn try_lock(&self) -> io::Result<bool> {
        let (mut state, _) = self.disk.begin(Call::Lock, &self.path)?;
        let holder = *state.locks.entry(self.node).or_insert((self.handle, self.disk.process));
        Ok(holder.0 == self.handle)
    }

    fn unlock(&self) -> io::Result<()> {
        self.disk.state().locks.retain(|_, (handle, _)| *handle != self.handle);
        Ok(())
    }
}

impl Drop for SimulatedFile {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        state.locks.retain(|_, (handle, _)| *handle != self.handle);
        state.machine.closed(self.node);
    }
}
