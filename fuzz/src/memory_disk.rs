//! A disk in memory, so that a store is made, damaged and read thousands of times a second.
//!
//! Whatever changes it must stay beneath the store's root: no byte of an input may become a path elsewhere.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex};

use rethread_store::{Disk, DiskFile, Open, Stat};

use super::memory_file::{Content, MemoryFile, held, now};

/// Where the store is.
pub const ROOT: &str = "/store";

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct MemoryDisk(Arc<Mutex<Tree>>);

impl Default for MemoryDisk {
    fn default() -> Self {
        let nodes = BTreeMap::from([(PathBuf::from("/"), Node::Folder(0))]);
        Self(Arc::new(Mutex::new(Tree { nodes, inodes: 0 })))
    }
}

#[derive(Debug)]
struct Tree {
    nodes: BTreeMap<PathBuf, Node>,
    inodes: u64,
}

#[derive(Clone, Debug)]
enum Node {
    Folder(u64),
    File(Arc<Mutex<Content>>),
}

fn inside(path: &Path) {
    let plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    assert!(plain && path.starts_with(ROOT), "a path of ours: {}", path.display());
}

impl MemoryDisk {
    /// Returns every file with its content.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let tree = held(&self.0);
        let files = tree.nodes.iter().filter_map(|(path, node)| match node {
            Node::File(content) => Some((path.clone(), held(content).bytes.clone())),
            Node::Folder(_) => None,
        });
        files.collect()
    }

    /// Puts a file there as somebody else would, with the folders it is in.
    pub fn put(&self, path: &Path, bytes: &[u8]) {
        let mut tree = held(&self.0);
        for folder in path.ancestors().skip(1) {
            if !tree.nodes.contains_key(folder) {
                let inode = tree.new_inode();
                tree.nodes.insert(folder.to_owned(), Node::Folder(inode));
            }
        }
        let inode = tree.new_inode();
        tree.nodes.insert(path.to_owned(), Node::File(Content::new(inode, bytes)));
    }
}

impl Tree {
    fn new_inode(&mut self) -> u64 {
        self.inodes += 1;
        self.inodes
    }

    fn node(&self, path: &Path) -> io::Result<&Node> {
        let absent = || match path
            .ancestors()
            .skip(1)
            .any(|above| matches!(self.nodes.get(above), Some(Node::File(_))))
        {
            true => ErrorKind::NotADirectory,
            false => ErrorKind::NotFound,
        };
        self.nodes.get(path).ok_or_else(|| absent().into())
    }

    fn check_parent(&self, path: &Path) -> io::Result<()> {
        match path.parent().map(|parent| self.node(parent)) {
            Some(Ok(Node::Folder(_))) => Ok(()),
            Some(Ok(Node::File(_))) => Err(ErrorKind::NotADirectory.into()),
            _ => Err(ErrorKind::NotFound.into()),
        }
    }

    fn beneath(&self, folder: &Path) -> Vec<PathBuf> {
        self.nodes.keys().filter(|path| path.starts_with(folder)).cloned().collect()
    }
}

impl Disk for MemoryDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        let mut tree = held(&self.0);
        let content = match tree.node(path).cloned() {
            Ok(Node::Folder(_)) => return Err(ErrorKind::IsADirectory.into()),
            Ok(Node::File(_)) if how == Open::New => return Err(ErrorKind::AlreadyExists.into()),
            Ok(Node::File(content)) => content,
            Err(error) if matches!(how, Open::Read | Open::Existing) => return Err(error),
            Err(_) => {
                inside(path);
                tree.check_parent(path)?;
                let inode = tree.new_inode();
                let content = Content::new(inode, &[]);
                tree.nodes.insert(path.to_owned(), Node::File(content.clone()));
                content
            }
        };
        Ok(Box::new(MemoryFile::new(content)))
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        match held(&self.0).node(path)? {
            Node::Folder(inode) => Ok(Stat { inode: *inode, length: 0, modified: now(), folder: true }),
            Node::File(content) => Ok(held(content).stat()),
        }
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let tree = held(&self.0);
        if let Node::File(_) = tree.node(folder)? {
            return Err(ErrorKind::NotADirectory.into());
        }
        let inside = tree.nodes.keys().filter(|path| path.parent() == Some(folder));
        Ok(inside.filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect())
    }

    fn make_folder(&self, path: &Path) -> io::Result<()> {
        inside(path);
        let mut tree = held(&self.0);
        if tree.nodes.contains_key(path) {
            return Err(ErrorKind::AlreadyExists.into());
        }
        tree.check_parent(path)?;
        let inode = tree.new_inode();
        tree.nodes.insert(path.to_owned(), Node::Folder(inode));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        inside(from);
        inside(to);
        let mut tree = held(&self.0);
        tree.node(from)?;
        tree.check_parent(to)?;
        for path in tree.beneath(from) {
            let rest = path.strip_prefix(from).map_err(io::Error::other)?;
            let moved = if rest.as_os_str().is_empty() { to.to_owned() } else { to.join(rest) };
            if let Some(node) = tree.nodes.remove(&path) {
                tree.nodes.insert(moved, node);
            }
        }
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        inside(path);
        let mut tree = held(&self.0);
        match tree.node(path)? {
            Node::Folder(_) => Err(ErrorKind::IsADirectory.into()),
            Node::File(_) => {
                tree.nodes.remove(path);
                Ok(())
            }
        }
    }

    fn remove_tree(&self, path: &Path) -> io::Result<()> {
        inside(path);
        let mut tree = held(&self.0);
        tree.node(path)?;
        for path in tree.beneath(path) {
            tree.nodes.remove(&path);
        }
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        held(&self.0).node(path).map(drop)
    }

    fn touch(&self, path: &Path) -> io::Result<()> {
        inside(path);
        match held(&self.0).node(path)? {
            Node::Folder(_) => Err(ErrorKind::IsADirectory.into()),
            Node::File(content) => {
                held(content).modified = now();
                Ok(())
            }
        }
    }
}
