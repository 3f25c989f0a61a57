//! Which directories' sessions may be seen.

use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::error::{Error, Result};

/// Directories whose sessions may be seen; all of them if there are none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Roots(Vec<PathBuf>);

impl Roots {
    /// Takes directories, which must be there: one that is misspelt must not hide everything in silence.
    pub(crate) fn new(roots: &[PathBuf]) -> Result<Self> {
        let canonical = |root: &PathBuf| root.canonicalize().ok().filter(|path| path.is_dir());
        let roots = roots.iter().map(|root| canonical(root).ok_or_else(|| Error::NoSuchRoot(root.clone())));
        roots.collect::<Result<_>>().map(Self)
    }

    /// Returns whether a session of this directory may be seen. The directory need not be there any more.
    pub(crate) fn admit(&self, cwd: Option<&Path>) -> bool {
        self.0.is_empty()
            || cwd.and_then(canonical).is_some_and(|cwd| self.0.iter().any(|root| cwd.starts_with(root)))
    }

    /// Opens a directory that may be seen: its canonical path, and a handle that no link leads away from.
    pub(crate) fn open(&self, path: &Path) -> Option<(PathBuf, OwnedFd)> {
        let path = path.canonicalize().ok().filter(|_| path.is_absolute())?;
        let everything = [PathBuf::from("/")];
        let roots = if self.0.is_empty() { &everything[..] } else { &self.0 };
        let root = roots.iter().find(|root| path.starts_with(root))?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut folder = rustix::fs::open(root, flags, Mode::empty()).ok()?;
        // One by one: a link that somebody puts in place of a folder meanwhile is not followed.
        for part in path.strip_prefix(root).ok()?.components() {
            folder = rustix::fs::openat(&folder, part.as_os_str(), flags, Mode::empty()).ok()?;
        }
        Some((path, folder))
    }

    /// Returns what is beneath both these and others; `None` if nothing is.
    pub(crate) fn within(&self, others: &Roots) -> Option<Roots> {
        if self.0.is_empty() || others.0.is_empty() {
            return Some(if self.0.is_empty() { others.clone() } else { self.clone() });
        }
        let beneath = |roots: &Roots, other: &Roots| -> Vec<PathBuf> {
            let is = |path: &&PathBuf| other.0.iter().any(|root| path.starts_with(root));
            roots.0.iter().filter(is).cloned().collect()
        };
        let mut both = [beneath(self, others), beneath(others, self)].concat();
        both.sort();
        both.dedup();
        (!both.is_empty()).then_some(Self(both))
    }

    pub(crate) fn list(&self) -> &[PathBuf] {
        &self.0
    }
}

/// Resolves what is there of a path; what is not there must not climb out of it.
fn canonical(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    path.ancestors().find_map(|ancestor| {
        let there = ancestor.canonicalize().ok()?;
        let rest = path.strip_prefix(ancestor).ok()?;
        let climbs = rest.components().any(|part| matches!(part, Component::ParentDir));
        (!climbs).then(|| there.join(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_compared_by_component_and_by_where_links_lead() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["work/api", "workshop", "secret"] {
            std::fs::create_dir_all(at(name)).unwrap();
        }
        std::os::unix::fs::symlink(at("secret"), at("work/link")).unwrap();
        std::os::unix::fs::symlink(at("work"), at("door")).unwrap();
        let roots = Roots::new(&[at("door")]).unwrap();
        for inside in ["work", "work/api", "work/gone/deep", "door/api", "work/api/../x"] {
            assert!(roots.admit(Some(&at(inside))), "{inside}");
        }
        for outside in
            ["workshop", "secret", "work/link", "work/link/gone", "work/gone/../../secret", "work/../secret"]
        {
            assert!(!roots.admit(Some(&at(outside))), "{outside}");
        }
        for (path, is_open) in [
            ("work/api", true),
            ("door/api", true),
            ("work/link", false),
            ("secret", false),
            ("work/gone", false),
        ] {
            assert_eq!(roots.open(&at(path)).is_some(), is_open, "{path}");
        }
        let (work, api) =
            (Roots::new(&[at("work"), at("secret")]).unwrap(), Roots::new(&[at("work/api")]).unwrap());
        assert_eq!(api.within(&work).unwrap().0, [at("work/api").canonicalize().unwrap()]);
        assert_eq!(work.within(&api).unwrap().0, [at("work/api").canonicalize().unwrap()]);
        assert_eq!(work.within(&Roots::default()).unwrap().0, work.0);
        assert!(Roots::new(&[at("workshop")]).unwrap().within(&work).is_none());
        assert!(!roots.admit(None) && !roots.admit(Some(Path::new("work"))) && Roots::default().admit(None));
    }
}
