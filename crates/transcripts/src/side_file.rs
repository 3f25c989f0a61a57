//! The small files around transcripts: a title, a note, a subagent's description, a register, a pointer of Git's.
//!
//! Anybody who can write beside a transcript can put something else in their place, and whoever looks must neither be
//! led elsewhere nor be kept waiting, as a pipe would.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{CWD, Mode, OFlags};

use crate::claude_folder::Links;

/// The longest that is read of one, in bytes: all of them are far shorter.
const LONGEST: u64 = 1 << 20;

/// Reads a small file; `None` if there is none, or something else in its place.
pub(crate) fn read(path: &Path, links: Links) -> Option<Vec<u8>> {
    read_in(CWD, path, links)
}

/// Reads one in a folder that was [opened](open_folder).
pub(crate) fn read_in(folder: impl AsFd, name: &Path, links: Links) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | no_link(links);
    let file = File::from(rustix::fs::openat(folder, name, flags, Mode::empty()).ok()?);
    file.metadata().ok().filter(|found| found.is_file() && found.len() <= LONGEST)?;
    let mut bytes = Vec::new();
    file.take(LONGEST).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Opens a folder in another one, unless it is a link.
pub(crate) fn open_folder(within: impl AsFd, name: &Path) -> Option<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(within, name, flags, Mode::empty()).ok()
}

fn no_link(links: Links) -> OFlags {
    if links == Links::Refuse { OFlags::NOFOLLOW } else { OFlags::empty() }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::fs::{FileType, mknodat};

    use super::*;

    #[test]
    fn whatever_is_in_a_small_files_place_leads_nowhere_and_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("real"), "{}").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink(at("real"), at("link")).unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        File::create(at("huge")).unwrap().set_len(LONGEST + 1).unwrap();
        assert_eq!(read(&at("real"), Links::Refuse).unwrap(), b"{}");
        assert_eq!(read(&at("link"), Links::Follow).unwrap(), b"{}");
        for refused in ["link", "pipe", "folder", "huge", "nothing"] {
            assert_eq!(read(&at(refused), Links::Refuse), None, "{refused}");
        }
        assert!(open_folder(CWD, &at("folder")).is_some());
        assert!(open_folder(CWD, &at("link")).is_none());
    }
}
