//! The repository that a working directory belongs to.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Where Claude Code makes worktrees within a repository.
const WORKTREES: &str = "/.claude/worktrees/";

/// Looks up repositories, each directory once.
#[derive(Debug, Default)]
pub(crate) struct Projects {
    known: HashMap<String, Place>,
}

/// What is known of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) project: PathBuf,
    pub(crate) exists: bool,
}

impl Projects {
    /// Returns what a directory belongs to.
    pub(crate) fn of(&mut self, cwd: &str) -> Place {
        if let Some(place) = self.known.get(cwd) {
            return place.clone();
        }
        let path = Path::new(cwd);
        let exists = path.is_dir();
        let place = Place { project: repository(path).unwrap_or_else(|| without_worktree(cwd)), exists };
        self.known.insert(cwd.to_owned(), place.clone());
        place
    }
}

/// Returns the main directory of the repository that a path is in.
fn repository(path: &Path) -> Option<PathBuf> {
    path.ancestors().find_map(|folder| {
        let git = folder.join(".git");
        let metadata = fs::metadata(&git).ok()?;
        if metadata.is_dir() {
            return Some(folder.to_owned());
        }
        // A worktree has a file there: `gitdir: /repository/.git/worktrees/name`.
        let text = fs::read_to_string(&git).ok()?;
        let pointed = Path::new(text.strip_prefix("gitdir:")?.trim());
        let pointed = folder.join(pointed);
        let worktrees = pointed.parent().filter(|it| it.file_name().is_some_and(|name| name == "worktrees"));
        let main = worktrees.and_then(Path::parent).and_then(Path::parent);
        Some(main.unwrap_or(folder).to_owned())
    })
}

/// Returns a directory that is no more, or the repository it was a worktree of.
fn without_worktree(cwd: &str) -> PathBuf {
    match cwd.split_once(WORKTREES) {
        Some((repository, name)) if !name.contains('/') => repository.into(),
        _ => cwd.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_belongs_to_its_repository_even_when_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (main, side) = (folder.path().join("main"), folder.path().join("side"));
        fs::create_dir_all(main.join(".git/worktrees/side")).unwrap();
        fs::create_dir_all(side.join("deep")).unwrap();
        fs::write(side.join(".git"), format!("gitdir: {}/.git/worktrees/side\n", main.display())).unwrap();
        let of = |path: &Path| Projects::default().of(path.to_str().unwrap());
        assert_eq!(of(&side.join("deep")), Place { project: main.clone(), exists: true });
        assert_eq!(of(&main), Place { project: main.clone(), exists: true });
        let gone = folder.path().join("x/.claude/worktrees/y");
        assert_eq!(of(&gone), Place { project: folder.path().join("x"), exists: false });
    }
}
