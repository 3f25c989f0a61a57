//! Where the rounds write: a real disk, a fresh folder each time, nothing deleted before the end.
//!
//! ext4 makes files up to sixteen times slower right after many were deleted, so a round that tidied up would spoil
//! the next one.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Advice, fadvise, syncfs};
use tempfile::TempDir;

use crate::failure::Outcome;

/// The folder that everything of one run is in; it goes when the run ends.
#[derive(Debug)]
pub(crate) struct Ground {
    folder: TempDir,
    count: AtomicUsize,
}

impl Ground {
    /// Makes it beneath a folder of the disk that is to be measured.
    pub(crate) fn beneath(folder: &Path) -> Outcome<Self> {
        std::fs::create_dir_all(folder)?;
        let folder = tempfile::Builder::new().prefix("ground-").tempdir_in(folder)?;
        Ok(Self { folder, count: AtomicUsize::new(0) })
    }

    /// Makes a folder that was never there before.
    pub(crate) fn fresh(&self) -> Outcome<PathBuf> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let folder = self.folder.path().join(format!("{number:05}"));
        std::fs::create_dir(&folder)?;
        Ok(folder)
    }

    /// Waits until the disk has nothing left to write, so that no contestant pays for the one before it.
    pub(crate) fn settle(&self) -> Outcome<()> {
        syncfs(std::fs::File::open(self.folder.path())?)?;
        Ok(())
    }
}

/// Takes what was written out of memory again, so that the next one is given the same memory.
///
/// A virtual machine gets memory from its host at a tenth of the speed at which it uses it: if nothing were given back,
/// every round would need more, and whoever comes when none is left would seem to be that slow.
pub(crate) fn let_go(folder: &Path) -> Outcome<()> {
    for entry in std::fs::read_dir(folder)? {
        let (entry, path) = entry.map(|entry| (entry.file_type(), entry.path()))?;
        match entry? {
            kind if kind.is_dir() => let_go(&path)?,
            kind if kind.is_file() => fadvise(std::fs::File::open(path)?, 0, None, Advice::DontNeed)?,
            _ => {}
        }
    }
    Ok(())
}

/// Has the machine give us so much memory, and leaves it free for whoever comes next: who is the first to use what the host
/// had taken back would wait for it, and who is the second would not.
pub(crate) fn warm(mebibytes: usize) {
    const PAGE: usize = 4096;
    let mut memory = vec![0_u8; mebibytes << 20];
    memory.iter_mut().step_by(PAGE).for_each(|byte| *byte = 1);
    std::hint::black_box(&memory);
}
