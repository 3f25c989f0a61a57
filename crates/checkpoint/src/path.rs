//! Paths beneath a root, safe by construction.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::mark::is_mark;
use crate::name::Name;

/// Where a path may not lead, whoever wrote it.
const RULE: &str = "is no path beneath a root: names without `.`, `..`, NUL, `.git` and `.rethread-rewind`";

/// A path beneath a root: one or more names, none of which is empty, `.`, `..`, `.git` or the mark of a rewind.
///
/// A record on disk may have been written by anybody, so reading one obeys the same rules.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Name", into = "Name")]
pub struct TreePath(Name);

impl TreePath {
    /// Returns where a path, absolute or relative to the root, lies beneath that root.
    ///
    /// The root must be canonical. A folder that leads to the root by another name, through a link, is understood.
    pub fn beneath(root: &Path, path: &Path) -> Result<Self> {
        let outside = || Error::BadPath { path: path.to_owned(), rule: "is not beneath the root" };
        let relative = match path.strip_prefix(root) {
            Ok(relative) => relative.to_owned(),
            Err(_) if path.is_relative() => path.to_owned(),
            Err(_) => {
                let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                    return Err(outside());
                };
                let parent = parent.canonicalize().map_err(|_| outside())?;
                parent.strip_prefix(root).map_err(|_| outside())?.join(name)
            }
        };
        // `./a` and `a//b` are `a` and `a/b` for everybody; `a/../b` is not, if `a` is a link.
        let plain: PathBuf =
            relative.components().filter(|component| *component != Component::CurDir).collect();
        Self::parse(plain.as_os_str().as_bytes())
            .map_err(|_| Error::BadPath { path: path.to_owned(), rule: RULE })
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self> {
        let safe = |name: &[u8]| {
            let plain = !matches!(name, b"" | b"." | b"..") && !name.contains(&0);
            plain && !name.eq_ignore_ascii_case(b".git") && !is_mark(name)
        };
        if bytes.len() < 4096 && bytes.split(|byte| *byte == b'/').all(safe) {
            Ok(Self(bytes.into()))
        } else {
            Err(Error::BadPath { path: OsStr::from_bytes(bytes).into(), rule: RULE })
        }
    }

    /// Returns the path relative to its root.
    pub fn as_path(&self) -> &Path {
        Path::new(self.0.as_os_str())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    /// Returns the folder that it is in; `None` if that is the root.
    pub fn parent(&self) -> Option<Self> {
        let slash = self.as_bytes().iter().rposition(|byte| *byte == b'/')?;
        Some(Self(self.as_bytes()[..slash].into()))
    }

    /// Returns its last name.
    pub(crate) fn name(&self) -> &OsStr {
        let after = self.as_bytes().iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
        OsStr::from_bytes(&self.as_bytes()[after..])
    }

    /// Returns the folders that it is in, the nearest first, without the root.
    pub fn ancestors(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(self.parent(), Self::parent)
    }

    /// Returns whether it is that path, or in that folder.
    pub fn is_within(&self, folder: &TreePath) -> bool {
        self.as_path().starts_with(folder.as_path())
    }
}

impl TryFrom<Name> for TreePath {
    type Error = Error;

    fn try_from(name: Name) -> Result<Self> {
        Self::parse(name.as_bytes())
    }
}

impl From<TreePath> for Name {
    fn from(path: TreePath) -> Name {
        path.0
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_leads_out_of_the_root_or_into_git() {
        for hostile in [
            "",
            "/",
            ".",
            "..",
            "../x",
            "a/../b",
            "a//b",
            "a/",
            "/etc/passwd",
            ".git/config",
            "a/.GIT/x",
            "a\0b",
            "a/.rethread-rewind",
        ] {
            assert!(TreePath::parse(hostile.as_bytes()).is_err(), "{hostile:?}");
        }
        for fine in ["a", "a/b", ".gitignore", "a/.gitmodules", "..a/b..", "\u{fc}"] {
            assert_eq!(TreePath::parse(fine.as_bytes()).unwrap().to_string(), fine);
        }
    }

    #[test]
    fn a_path_is_understood_from_the_root_and_in_full() {
        let root = Path::new("/srv/project");
        for (given, expected) in [("/srv/project/a/b", "a/b"), ("a/b", "a/b"), ("./a//b", "a/b")] {
            assert_eq!(TreePath::beneath(root, Path::new(given)).unwrap().to_string(), expected);
        }
        for outside in ["/srv/other/a", "/srv/project", "a/../../b", "/srv/project/../x"] {
            assert!(TreePath::beneath(root, Path::new(outside)).is_err(), "{outside}");
        }
    }
}
