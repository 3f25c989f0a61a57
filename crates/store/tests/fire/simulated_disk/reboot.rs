//! What is left of a machine when its processes, or the machine itself, went down.
//!
//! # What a crash may leave of names
//!
//! A change of a name (create, make folder, rename, remove) is durable once a folder that it touches was synced, and
//! with it every earlier change of the same names. A sync of the file itself does nothing for its name: ext4 and XFS
//! happen to write it, POSIX does not promise it. Of the other changes a crash keeps any subset that has no change of
//! a name without the earlier ones of that name. That is more than the journals of ext4 and XFS allow, which keep the
//! order of all. A rename is one transaction in each of them, also between two folders: it is there or not, never
//! half, and what it replaces is never absent in between. Content follows the file, not the name: a file that was
//! synced before its rename is whole under the new name, another one may be empty there.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;

use super::machine::{Kind, Machine, ROOT};

impl Machine {
    /// Returns the machine as it may be after a crash and a reboot.
    pub(crate) fn after_crash(&self, rng: &mut Rng) -> Self {
        let mut after = self.after_death();
        for inode in after.nodes.values_mut().map(Arc::make_mut) {
            inode.modified = if rng.bool() { inode.modified } else { inode.durable_modified };
            inode.durable_modified = inode.modified;
            if let Kind::File(content) = &mut inode.kind {
                *content = content.after_crash(rng);
            }
        }
        let (keep, mut lost) = (rng.u8(..=4), HashSet::new());
        for change in std::mem::take(&mut after.pending) {
            let links = || change.0.iter().map(|(at, name, _)| (*at, name.clone()));
            // None of them, all of them, or any.
            let kept = rng.u8(..4) < keep && !links().any(|link| lost.contains(&link));
            if kept { after.make_durable(&change) } else { lost.extend(links()) }
        }
        for inode in after.nodes.values_mut().map(Arc::make_mut) {
            if let Kind::Folder { names, durable } = &mut inode.kind {
                names.clone_from(durable);
            }
        }
        after.find_linked();
        after
    }

    /// Returns the machine as it is once all its processes are dead.
    pub(crate) fn after_death(&self) -> Self {
        let mut after = self.clone();
        for inode in after.nodes.values_mut().filter(|inode| inode.open > 0) {
            Arc::make_mut(inode).open = 0;
        }
        after
    }

    /// Lets time pass.
    pub(crate) fn age(&mut self, by: Duration) {
        for inode in self.nodes.values_mut().map(Arc::make_mut) {
            inode.modified -= by.as_nanos() as i128;
            inode.durable_modified -= by.as_nanos() as i128;
        }
    }

    /// Reads from the disk again whatever counts as clean.
    pub(crate) fn drop_caches(&mut self) {
        for inode in self.nodes.values_mut().map(Arc::make_mut) {
            if let Kind::File(content) = &mut inode.kind {
                content.drop_cache();
            }
        }
    }

    /// Forgets what no name leads to.
    fn find_linked(&mut self) {
        let (mut found, mut next) = (HashSet::from([ROOT]), vec![ROOT]);
        while let Some(node) = next.pop() {
            let names = self.names(node).map(|names| names.values().copied().collect::<Vec<_>>());
            next.extend(names.unwrap_or_default().into_iter().filter(|node| found.insert(*node)));
        }
        self.nodes.retain(|node, _| found.contains(node));
        self.nodes.values_mut().for_each(|inode| Arc::make_mut(inode).linked = true);
    }
}
