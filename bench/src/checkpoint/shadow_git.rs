//! What others do: git with a repository of its own beside the tree.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::failure::Outcome;

/// A repository apart from its tree.
pub(super) struct ShadowGit {
    repository: PathBuf,
    tree: PathBuf,
}

impl ShadowGit {
    pub(super) fn plain(folder: &Path, tree: &Path) -> Outcome<Self> {
        let git = Self { repository: folder.join("shadow"), tree: tree.to_owned() };
        git.run(&["init", "--quiet"])?;
        for (key, value) in [("user.name", "bench"), ("user.email", "bench@example.org"), ("gc.auto", "0")] {
            git.run(&["config", key, value])?;
        }
        Ok(git)
    }

    /// With everything that makes it faster on large trees.
    pub(super) fn tuned(folder: &Path, tree: &Path) -> Outcome<Self> {
        let git = Self::plain(folder, tree)?;
        for (key, value) in
            [("core.untrackedCache", "true"), ("index.version", "4"), ("feature.manyFiles", "true")]
        {
            git.run(&["config", key, value])?;
        }
        Ok(git)
    }

    /// Records the whole tree.
    pub(super) fn capture(&self) -> Outcome<()> {
        self.run(&["add", "-A"])?;
        self.run(&["write-tree"])
    }

    pub(super) fn commit(&self) -> Outcome<()> {
        self.run(&["add", "-A"])?;
        self.run(&["commit", "--quiet", "--allow-empty", "-m", "baseline"])
    }

    /// Takes the tree back.
    pub(super) fn reset(&self) -> Outcome<()> {
        self.run(&["reset", "--quiet", "--hard"])
    }

    fn run(&self, words: &[&str]) -> Outcome<()> {
        let mut command = Command::new("git");
        command.args(words).current_dir(&self.tree);
        command.env("GIT_DIR", &self.repository).env("GIT_WORK_TREE", &self.tree);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("HOME", &self.repository);
        match command.stdout(Stdio::null()).stderr(Stdio::null()).status()?.success() {
            true => Ok(()),
            false => Err(format!("git {} failed", words.join(" ")).into()),
        }
    }
}
