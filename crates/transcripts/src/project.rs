//! The repository that a working directory belongs to.

use std::fs;
use std::path::{Component, Path, PathBuf};

use foldhash::HashMap;

use crate::claude_folder::Links;
use crate::side_file;

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
        // One that is told from nowhere is nowhere, and least of all where we are.
        let path = Some(Path::new(cwd)).filter(|path| path.is_absolute());
        let exists = path.is_some_and(Path::is_dir);
        let project = path.and_then(repository).unwrap_or_else(|| without_worktree(cwd));
        let place = Place { project, exists };
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
        let text = String::from_utf8(side_file::read(&git, Links::Follow)?).ok()?;
        let pointed = Path::new(text.strip_prefix("gitdir:")?.trim());
        let pointed = without_dots(&folder.join(pointed));
        let worktrees = pointed.parent().filter(|it| it.file_name().is_some_and(|name| name == "worktrees"));
        let Some(git) = worktrees.and_then(Path::parent) else { return Some(folder.to_owned()) };
        // A bare repository is what people see of it; one that is hidden is known by the directory around it.
        let is_hidden = git.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        Some(if is_hidden { git.parent().unwrap_or(git) } else { git }.to_owned())
    })
}

/// Returns a path without `.` and `..`, as it is written: Git may tell a repository from where its worktree is.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => drop(plain.pop()),
            component => plain.push(component),
        }
    }
    plain
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

    #[test]
    fn a_worktree_belongs_to_a_bare_repository_and_not_to_what_lies_around_it() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let worktree = |repository: &str, name: &str, pointed: &str| {
            fs::create_dir_all(folder.join(repository).join("worktrees").join(name)).unwrap();
            fs::create_dir_all(folder.join(name)).unwrap();
            let short = Path::new(name).file_name().unwrap().to_str().unwrap();
            fs::write(folder.join(name).join(".git"), format!("gitdir: {pointed}/worktrees/{short}\n"))
                .unwrap();
            Projects::default().of(folder.join(name).to_str().unwrap()).project
        };
        let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        assert_eq!(worktree("one.git", "one-side", &at("one.git")), folder.join("one.git"));
        // Where the repository itself is hidden, the directory around it is what people know.
        assert_eq!(worktree("app/.bare", "app/side", &at("app/.bare")), folder.join("app"));
        // Told from where the worktree is, as Git does if it is asked to.
        assert_eq!(worktree("two/.git", "two-side", "../two/.git"), folder.join("two"));
    }
}
