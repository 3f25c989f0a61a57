//! What the tests share: a project with a session in a store, and pictures of whole trees.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use pollster::block_on;
use rethread_checkpoint::{
    Checkpoint, Checkpointer, Choices, Moment, Plan, Point, Result, Rewound, Settings, TreePath,
};
use rethread_store::{EntryId, FileBackend, NewSession, Options, Session, Store};
use tempfile::TempDir;

/// A project, and a store beside it.
pub(crate) struct Project {
    folder: TempDir,
    pub(crate) store: Store,
    pub(crate) session: Session,
}

/// Everything in a folder: content, mode and kind of each path.
pub(crate) type Picture = BTreeMap<PathBuf, (u32, Vec<u8>)>;

impl Project {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::new(FileBackend::new(folder.path().join("store")), Options::default());
        Self::within(folder, store)
    }

    /// The same in memory, where a sync costs nothing; on disk if there is no such place.
    pub(crate) fn quick() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        let store = Store::new(FileBackend::new(folder.path().join("store")), Options::default());
        Self::within(folder, store)
    }

    pub(crate) fn within(folder: TempDir, store: Store) -> Self {
        fs::create_dir(folder.path().join("project")).unwrap();
        let session = block_on(store.create(NewSession::at(folder.path().join("project")))).unwrap();
        Self { folder, store, session }
    }

    pub(crate) fn base(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file, and the folders that it needs.
    pub(crate) fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.path(path)).ok()
    }

    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path(path)).unwrap();
    }

    pub(crate) fn open(&self) -> Checkpointer {
        self.open_with(Settings::default())
    }

    pub(crate) fn open_with(&self, settings: Settings) -> Checkpointer {
        block_on(Checkpointer::open(&self.session, &self.root(), settings)).unwrap()
    }

    pub(crate) fn picture(&self) -> Picture {
        picture(&self.root())
    }
}

/// Takes a picture of a folder.
pub(crate) fn picture(folder: &Path) -> Picture {
    let mut all = Picture::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = match metadata.file_type() {
                kind if kind.is_dir() => {
                    waiting.push(path.clone());
                    Vec::new()
                }
                kind if kind.is_symlink() => {
                    fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
                }
                kind if kind.is_file() => fs::read(&path).unwrap(),
                _ => Vec::new(),
            };
            all.insert(path, (metadata.mode(), content));
        }
    }
    all
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// What tests say to a checkpointer, without waiting for anything.
pub(crate) trait Speak {
    fn capture(&self, message: &str, paths: &[&str]) -> Checkpoint;
    fn captured(&self, message: &str, paths: &[&str]) -> Checkpoint;
    fn planned(&self, to: Point) -> Plan;
    fn choose(&self, to: Point, choices: Choices) -> Plan;
    fn rewind(&self, to: Point) -> Result<Rewound>;
}

impl Speak for Checkpointer {
    fn capture(&self, message: &str, paths: &[&str]) -> Checkpoint {
        block_on(self.before(Moment::of(id(message)), paths)).unwrap()
    }

    fn captured(&self, message: &str, paths: &[&str]) -> Checkpoint {
        block_on(self.after(Moment::of(id(message)), paths)).unwrap()
    }

    fn planned(&self, to: Point) -> Plan {
        self.choose(to, Choices::default())
    }

    fn choose(&self, to: Point, choices: Choices) -> Plan {
        block_on(self.plan(&to, &choices)).unwrap()
    }

    fn rewind(&self, to: Point) -> Result<Rewound> {
        block_on(async {
            let plan = self.plan(&to, &Choices::default()).await?;
            self.apply(&plan).await
        })
    }
}

pub(crate) fn id(text: &str) -> EntryId {
    text.parse().unwrap()
}

pub(crate) fn at(text: &str) -> Point {
    Point::At(id(text))
}

pub(crate) fn tree_path(text: &str) -> TreePath {
    TreePath::beneath(Path::new("/"), Path::new(text)).unwrap()
}

pub(crate) fn forcing(paths: &[&str]) -> Choices {
    Choices { force: paths.iter().map(|path| tree_path(path)).collect(), ..Choices::default() }
}

pub(crate) fn leaving(paths: &[&str]) -> Choices {
    Choices { leave: paths.iter().map(|path| tree_path(path)).collect(), ..Choices::default() }
}

/// Says in one line that a test cannot be made here; in CI that is a failure.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn cannot(what: &str) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{what}");
    eprintln!("skipped: {what}");
}
