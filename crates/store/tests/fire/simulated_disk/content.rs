//! One file's bytes twice: as processes read them from the cache, and as the disk has them.
//!
//! # What a crash may leave
//!
//! Every write since the last sync left a new image of each 4 KiB block that it touched. A crash keeps, for each block
//! by itself, any of these images or the one before them: the kernel writes blocks back in any order and at any time.
//! A block that was just being written is a mixture, by sectors of 512 bytes, of two of its images. The length is any
//! that the file had since, or lies in between while it grew, whatever became of the blocks: a block within the length
//! that never got to the disk reads as NULs.

use std::collections::BTreeSet;

use fastrand::Rng;

/// What the kernel writes at once.
pub(crate) const BLOCK: usize = 4096;
/// What the device writes at once.
const SECTOR: usize = 512;

type Image = Vec<u8>;

/// What a sync does that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailingSync {
    /// Its blocks are lost, torn or written.
    Loses,
    /// It takes down what its blocks held before, too. A crash right after that loses acknowledged records whatever a
    /// program does, so it is not among what any sync may do.
    Ruins,
    /// Its blocks are lost for good: what is written there later does not get to the disk either, though syncs say so.
    /// ext4 does that where a block's space was never written and could not be.
    Spoils,
}

/// What one write or cut changed: blocks as the cache has them since, and the length.
#[derive(Clone, Debug)]
struct Change {
    blocks: Vec<(usize, Image)>,
    length: usize,
}

/// One file's bytes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    cached: Vec<u8>,
    /// The blocks on disk, and how much of them the file's length covers there.
    durable: Vec<u8>,
    durable_length: usize,
    /// What a sync would bring to the disk, oldest first. Not all that differs: a failed sync forgets what it lost.
    dirty: Vec<Change>,
    /// Blocks that never get to the disk again.
    spoiled: BTreeSet<usize>,
}

impl Content {
    pub(crate) fn length(&self) -> usize {
        self.cached.len()
    }

    /// Returns the bytes as processes see them.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.cached
    }

    pub(crate) fn write(&mut self, bytes: &[u8], at: usize) {
        let end = at + bytes.len();
        let from = at.min(self.cached.len());
        if self.cached.len() < end {
            self.cached.resize(end, 0);
        }
        self.cached[at..end].copy_from_slice(bytes);
        self.note(from, end);
    }

    pub(crate) fn cut(&mut self, length: usize) {
        let before = self.cached.len();
        self.cached.resize(length, 0);
        self.note(length.min(before), length.max(before));
    }

    /// A page is written back whole, so every image is that of the whole block.
    fn note(&mut self, from: usize, to: usize) {
        let blocks = (from / BLOCK..to.div_ceil(BLOCK)).map(|index| (index, block(&self.cached, index)));
        self.dirty.push(Change { blocks: blocks.collect(), length: self.cached.len() });
    }

    /// Brings everything that is dirty to the disk.
    pub(crate) fn sync(&mut self) {
        for Change { blocks, length } in std::mem::take(&mut self.dirty) {
            let written = blocks.iter().filter(|(index, _)| !self.spoiled.contains(index));
            written.for_each(|(index, image)| put(&mut self.durable, *index, image));
            self.durable_length = length;
        }
    }

    /// A sync that fails: blocks are lost, torn or written, and all of them count as clean from now on, so the next
    /// sync says that all is well. What the cache holds is still right, which is why reading it back proves nothing.
    pub(crate) fn fail_sync(&mut self, how: FailingSync, rng: &mut Rng) {
        for (index, images) in self.images() {
            let last = images.len() - 1;
            match rng.u8(..8) {
                _ if how == FailingSync::Ruins => put(&mut self.durable, index, &vec![0; BLOCK]),
                // What is on the disk already is overwritten there, and stays as good as it was.
                _ if how == FailingSync::Spoils => {
                    self.spoiled.extend((index * BLOCK >= self.durable_length).then_some(index));
                }
                0 => put(&mut self.durable, index, &images[last]),
                1 => put(&mut self.durable, index, &torn(&images[0], &images[last], rng)),
                _ => {}
            }
        }
        // The length goes through the journal: it is still to be written, and a crash may come before.
        let length = self.cached.len();
        self.dirty = vec![Change { blocks: Vec::new(), length }];
    }

    /// Reads everything clean from the disk again, as under memory pressure: what a failed sync lost shows.
    pub(crate) fn drop_cache(&mut self) {
        let dirty: Vec<usize> = self.images().into_iter().map(|(index, _)| index).collect();
        let length = self.cached.len();
        for index in (0..length.div_ceil(BLOCK)).filter(|index| !dirty.contains(index)) {
            let image = block(&self.durable, index);
            put(&mut self.cached, index, &image);
        }
        self.cached.truncate(length);
    }

    /// Returns what may be there after a crash of the machine.
    pub(crate) fn after_crash(&self, rng: &mut Rng) -> Self {
        let mut bytes = self.durable.clone();
        let mood = rng.u8(..8);
        for (index, images) in self.images() {
            let (first, last) = (&images[0], &images[images.len() - 1]);
            let image = match (mood, rng.u8(..8)) {
                (0, _) => first.clone(),
                (1 | 2, _) => last.clone(),
                (_, 0 | 1) => torn(rng.choice(&images).unwrap_or(first), last, rng),
                (_, 2..=4) => first.clone(),
                _ => rng.choice(&images).unwrap_or(last).clone(),
            };
            put(&mut bytes, index, &image);
        }
        let durable_length = self.length_after_crash(mood, rng);
        bytes.resize(durable_length, 0);
        Self { cached: bytes.clone(), durable: bytes, durable_length, ..Self::default() }
    }

    fn length_after_crash(&self, mood: u8, rng: &mut Rng) -> usize {
        let since = self.dirty.iter().map(|change| change.length);
        let lengths: Vec<usize> = std::iter::once(self.durable_length).chain(since).collect();
        let last = lengths.len() - 1;
        match mood {
            0 => return lengths[0],
            1..=4 => return lengths[last],
            _ => {}
        }
        let at = rng.usize(..lengths.len());
        let (before, after) = (lengths[at], lengths[(at + 1).min(last)]);
        match rng.u8(..4) {
            0 | 1 => before,
            // A long write makes the file longer page by page.
            2 if before < after => (before / BLOCK + 1 + rng.usize(..=(after - before) / BLOCK)) * BLOCK,
            3 if before < after => rng.usize(before..after),
            _ => after,
        }
        .min(after.max(before))
    }

    /// Returns every dirty block with its images, oldest first, the first being the one on disk.
    fn images(&self) -> Vec<(usize, Vec<Image>)> {
        let mut found: std::collections::BTreeMap<usize, Vec<Image>> = std::collections::BTreeMap::new();
        let blocks = self.dirty.iter().flat_map(|change| &change.blocks);
        for (index, image) in blocks.filter(|(index, _)| !self.spoiled.contains(index)) {
            found.entry(*index).or_insert_with(|| vec![block(&self.durable, *index)]).push(image.clone());
        }
        found.into_iter().collect()
    }
}

/// Returns a block, with NULs where the file ends before it does.
fn block(bytes: &[u8], index: usize) -> Image {
    let from = (index * BLOCK).min(bytes.len());
    let mut image = bytes[from..(from + BLOCK).min(bytes.len())].to_vec();
    image.resize(BLOCK, 0);
    image
}

fn put(bytes: &mut Vec<u8>, index: usize, image: &[u8]) {
    let from = index * BLOCK;
    if bytes.len() < from + BLOCK {
        bytes.resize(from + BLOCK, 0);
    }
    bytes[from..from + BLOCK].copy_from_slice(image);
}

/// Returns a block of which some sectors are old and some are new.
fn torn(old: &[u8], new: &[u8], rng: &mut Rng) -> Image {
    let sectors = old.chunks(SECTOR).zip(new.chunks(SECTOR));
    sectors.flat_map(|(old, new)| if rng.bool() { new } else { old }).copied().collect()
}
