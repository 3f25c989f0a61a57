//! The file system of one machine: what its processes see, and what would be left of it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rethread_store::Stat;

use super::content::{Content, FailingSync};
use super::names::NameChange;

pub(crate) const NOT_FOUND: i32 = 2;
pub(crate) const EXISTS: i32 = 17;
const NOT_A_FOLDER: i32 = 20;
pub(crate) const A_FOLDER: i32 = 21;
/// How finely a file system tells time: writes within it are not told apart.
const TICK: i128 = 4_000_000;

/// A file or folder, whatever its names.
pub(crate) type Node = u64;
pub(super) const ROOT: Node = 1;

/// Whether logs get a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Journals {
    Never,
    /// With the second append, and so small that it is soon full.
    Early,
}

/// The file system of one machine. Copies share what neither has changed since.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(super) nodes: HashMap<Node, Arc<Inode>>,
    last: Node,
    /// Whether the stores on it have journals.
    pub(super) journals: Journals,
    /// Changes of names that no sync has covered, oldest first.
    pub(super) pending: Vec<NameChange>,
}

#[derive(Clone, Debug)]
pub(super) struct Inode {
    /// What `stat` says; unlike a node it is used again.
    number: u64,
    pub(super) modified: i128,
    pub(super) durable_modified: i128,
    pub(super) linked: bool,
    pub(super) open: usize,
    pub(super) kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    File(Content),
    Folder { names: BTreeMap<String, Node>, durable: BTreeMap<String, Node> },
}

impl Machine {
    pub(crate) fn new() -> Self {
        let mut machine =
            Self { nodes: HashMap::new(), last: 0, journals: Journals::Never, pending: Vec::new() };
        machine.add(empty_folder());
        machine
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<Node> {
        let mut node = ROOT;
        for part in path.components().filter(|part| !matches!(part, Component::RootDir)) {
            let name = part.as_os_str().to_string_lossy();
            node = *self.names(node)?.get(&*name).ok_or_else(|| errno(NOT_FOUND))?;
        }
        Ok(node)
    }

    pub(crate) fn names(&self, folder: Node) -> io::Result<&BTreeMap<String, Node>> {
        match &self.nodes[&folder].kind {
            Kind::Folder { names, .. } => Ok(names),
            Kind::File(_) => Err(errno(NOT_A_FOLDER)),
        }
    }

    /// Returns every path below a folder.
    pub(crate) fn paths(&self, path: &str, folder: Node) -> Vec<String> {
        let mut paths = Vec::new();
        for (name, node) in self.names(folder).into_iter().flatten() {
            let path = format!("{path}/{name}");
            paths.extend(self.paths(&path, *node));
            paths.push(path);
        }
        paths
    }

    pub(crate) fn stat(&self, node: Node) -> Stat {
        let inode = &self.nodes[&node];
        let (length, folder) = match &inode.kind {
            Kind::File(content) => (content.length() as u64, false),
            Kind::Folder { .. } => (4096, true),
        };
        Stat { inode: inode.number, length, modified: inode.modified, folder }
    }

    pub(crate) fn content(&self, node: Node) -> io::Result<&Content> {
        match &self.nodes[&node].kind {
            Kind::File(content) => Ok(content),
            Kind::Folder { .. } => Err(errno(A_FOLDER)),
        }
    }

    /// Changes a file's bytes, and its time with them.
    pub(crate) fn change<T>(&mut self, node: Node, change: impl FnOnce(&mut Content) -> T) -> io::Result<T> {
        let inode = self.inode(node);
        inode.modified = now();
        match &mut inode.kind {
            Kind::File(content) => Ok(change(content)),
            Kind::Folder { .. } => Err(errno(A_FOLDER)),
        }
    }

    pub(crate) fn sync_file(&mut self, node: Node) -> io::Result<()> {
        let inode = self.inode(node);
        inode.durable_modified = inode.modified;
        match &mut inode.kind {
            Kind::File(content) => {
                content.sync();
                Ok(())
            }
            Kind::Folder { .. } => Err(errno(A_FOLDER)),
        }
    }

    pub(crate) fn fail_sync(&mut self, node: Node, how: FailingSync, rng: &mut fastrand::Rng) {
        if let Kind::File(content) = &mut self.inode(node).kind {
            content.fail_sync(how, rng);
        }
    }

    pub(crate) fn touch(&mut self, node: Node) {
        self.inode(node).modified = now();
    }

    pub(crate) fn opened(&mut self, node: Node) {
        self.inode(node).open += 1;
    }

    pub(crate) fn closed(&mut self, node: Node) {
        self.inode(node).open -= 1;
    }

    pub(crate) fn create(&mut self, path: &Path, kind: Kind) -> io::Result<Node> {
        let (folder, name) = self.place(path)?;
        if self.names(folder)?.contains_key(&name) {
            return Err(errno(EXISTS));
        }
        let node = self.add(kind);
        self.rename_all(vec![(folder, name, Some(node))]);
        Ok(node)
    }

    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let node = self.find(from)?;
        let ((old_folder, old_name), (folder, name)) = (self.place(from)?, self.place(to)?);
        if self.names(folder)?.get(&name).is_some_and(|there| self.names(*there).is_ok()) {
            return Err(errno(A_FOLDER));
        }
        self.rename_all(vec![(old_folder, old_name, None), (folder, name, Some(node))]);
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.find(path)?;
        let (folder, name) = self.place(path)?;
        self.rename_all(vec![(folder, name, None)]);
        Ok(())
    }

    fn place(&self, path: &Path) -> io::Result<(Node, String)> {
        let name = path.file_name().ok_or_else(|| errno(EXISTS))?.to_string_lossy().into_owned();
        Ok((self.find(path.parent().unwrap_or(path))?, name))
    }

    fn add(&mut self, kind: Kind) -> Node {
        let used: HashSet<u64> = self
            .nodes
            .values()
            .filter(|inode| inode.linked || inode.open > 0)
            .map(|inode| inode.number)
            .collect();
        let number = (1..).find(|number| !used.contains(number)).unwrap_or_default();
        let (modified, durable_modified) = (now(), now());
        self.last += 1;
        let inode = Inode { number, modified, durable_modified, linked: true, open: 0, kind };
        self.nodes.insert(self.last, Arc::new(inode));
        self.last
    }

    pub(super) fn inode(&mut self, node: Node) -> &mut Inode {
        Arc::make_mut(self.nodes.get_mut(&node).expect("nodes are never forgotten while they have a name"))
    }
}

pub(crate) fn empty_folder() -> Kind {
    Kind::Folder { names: BTreeMap::new(), durable: BTreeMap::new() }
}

pub(crate) fn errno(code: i32) -> io::Error {
    io::Error::from_raw_os_error(code)
}

pub(super) fn now() -> i128 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as i128;
    now - now % TICK
}
