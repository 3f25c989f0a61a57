//! Where everything of a demonstration is.

use std::path::{Path, PathBuf};

/// The file in a keeper's folder that says that everything of that home is a demonstration.
const MARK: &str = "demo";

/// The folder of a demonstration, and what is where in it.
#[derive(Clone, Debug)]
pub(crate) struct DemoPlace {
    folder: PathBuf,
}

impl DemoPlace {
    pub(super) fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Finds the demonstration that a home belongs to, if it does: whoever works in it means nothing of their own.
    pub(crate) fn of(home: &Path) -> Option<Self> {
        let home = std::path::absolute(home).ok()?;
        is_marked(&home.join("keeper")).then(|| home.parent().map(Self::new)).flatten()
    }

    /// Returns the store, and the keeper's folder in it. The project is elsewhere: what is the store's is never captured.
    pub(crate) fn home(&self) -> PathBuf {
        self.folder.join("home")
    }

    pub(super) fn mark(&self) -> PathBuf {
        self.home().join("keeper").join(MARK)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.join("demo-project")
    }

    /// Returns Claude Code's folder. It is called as in a home, so that the page shows paths from there.
    pub(crate) fn claude(&self) -> PathBuf {
        self.folder.join(".claude")
    }

    pub(super) fn agent(&self) -> PathBuf {
        self.folder.join("demo-agent")
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }
}

/// Returns whether a keeper's folder is a demonstration's.
pub(crate) fn is_marked(keeper: &Path) -> bool {
    keeper.join(MARK).is_file()
}
