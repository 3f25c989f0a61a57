//! Room that a log takes ahead of its end while much is written to it, so that the file system looks for it once and not
//! page by page: that is a quarter of what a write takes.

use super::disk::DiskFile;

/// How much is written to a log without a sync before it takes room: most never come to so much.
const MUCH: u64 = 1 << 20;
/// How much it takes at once: as much as has come so far, but no more than this.
const MOST: u64 = 32 << 20;

/// The room beyond a log's end. Nobody sees it but the file system: the file is as long as before.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headroom {
    /// After how much without a sync some is taken; `None`: never.
    after: Option<u64>,
    /// Up to where there is some.
    end: u64,
    /// There is none to be had.
    is_refused: bool,
}

impl Default for Headroom {
    fn default() -> Self {
        Self::after(Some(MUCH))
    }
}

impl Headroom {
    /// Says after how much that is written and not synced a log takes room.
    pub(crate) fn after(after: Option<u64>) -> Self {
        Self { after, end: 0, is_refused: false }
    }

    /// Takes more before something is written, if this much was before and none is left. Without room it is written as well.
    pub(crate) fn take(&mut self, file: &dyn DiskFile, length: u64, unsynced: u64) {
        let is_wanted = self.after.is_some_and(|after| unsynced >= after) && length >= self.end;
        if !is_wanted || self.is_refused {
            return;
        }
        let size = unsynced.next_power_of_two().min(MOST);
        match file.reserve(length, size) {
            Ok(()) => self.end = length + size,
            Err(_) => self.is_refused = true,
        }
    }

    /// There may be some that another process took, which perhaps has died: it goes with the next sync.
    pub(crate) fn inherit(&mut self) {
        self.end = u64::MAX;
    }

    /// Gives back what was not needed, under the lock. A process that dies leaves it to whoever appends next.
    pub(crate) fn give_back(&mut self, file: &dyn DiskFile, length: u64) {
        // What is longer than we know of is left as it is.
        let is_left = std::mem::take(&mut self.end) > length;
        if is_left && file.extent().is_ok_and(|found| found.length == length) {
            // What cannot be given back takes room, and that is all.
            let _ = file.truncate(length);
        }
    }

    /// Begins anew in another file.
    pub(crate) fn forget(&mut self) {
        *self = Self::after(self.after);
    }
}
