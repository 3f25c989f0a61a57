//! One file and the system calls on it: as fast as this machine gets.

use std::fs::{File, OpenOptions};
use std::io::{IoSlice, Write};
use std::path::Path;

use crate::failure::Outcome;

/// A file that only grows.
pub(crate) struct Bare(File);

impl Bare {
    /// Makes the file.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        Ok(Self(OpenOptions::new().create_new(true).append(true).open(path)?))
    }

    /// Writes at the end.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        Ok(self.0.write_all(bytes)?)
    }

    /// Writes at the end and waits until that is durable.
    pub(crate) fn write_durably(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.write(bytes)?;
        Ok(self.0.sync_data()?)
    }

    /// Writes at the end while no other process does.
    pub(crate) fn write_locked(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.0.lock()?;
        self.write(bytes)?;
        Ok(self.0.unlock()?)
    }

    /// The same with lines that lie anywhere in memory, as callers hand them over.
    pub(crate) fn write_locked_from<L: AsRef<[u8]>>(&mut self, lines: &[L]) -> Outcome<()> {
        let mut pieces: Vec<IoSlice<'_>> =
            lines.iter().flat_map(|line| [IoSlice::new(line.as_ref()), IoSlice::new(b"\n")]).collect();
        let mut rest = pieces.as_mut_slice();
        self.0.lock()?;
        while !rest.is_empty() {
            let written = self.0.write_vectored(rest)?;
            IoSlice::advance_slices(&mut rest, written);
        }
        Ok(self.0.unlock()?)
    }
}

/// Returns lines as a file has them.
pub(crate) fn with_newlines<L: AsRef<[u8]>>(lines: &[L]) -> Vec<Vec<u8>> {
    lines.iter().map(|line| [line.as_ref(), b"\n"].concat()).collect()
}

/// Returns lines as a file has them, some number of them in each piece.
pub(crate) fn in_batches<L: AsRef<[u8]>>(
    lines: &[L],
    counts: impl IntoIterator<Item = usize>,
) -> Vec<Vec<u8>> {
    let (mut lines, mut batches) = (with_newlines(lines), Vec::new());
    for count in counts {
        let later = lines.split_off(count.min(lines.len()));
        batches.push(lines.concat());
        lines = later;
    }
    batches
}
