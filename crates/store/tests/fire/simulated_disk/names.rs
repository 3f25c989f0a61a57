//! Which names lead to which files, now and after a crash.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;

use super::machine::{Inode, Kind, Machine, Node, now};

/// What a name stands for from now on, or two names at once.
#[derive(Clone, Debug)]
pub(super) struct NameChange(pub(super) Vec<(Node, String, Option<Node>)>);

impl Machine {
    pub(super) fn rename_all(&mut self, links: Vec<(Node, String, Option<Node>)>) {
        for (folder, name, node) in &links {
            let inode = self.inode(*folder);
            inode.modified = now();
            let Kind::Folder { names, .. } = &mut inode.kind else { continue };
            let former = match node {
                Some(node) => names.insert(name.clone(), *node),
                None => names.remove(name),
            };
            if let Some(former) = former {
                self.inode(former).linked = false;
            }
            if let Some(node) = node {
                self.inode(*node).linked = true;
            }
        }
        self.pending.push(NameChange(links));
    }

    pub(super) fn make_durable(&mut self, change: &NameChange) {
        for (folder, name, node) in &change.0 {
            if let Kind::Folder { durable, .. } = &mut self.inode(*folder).kind {
                match node {
                    Some(node) => durable.insert(name.clone(), *node),
                    None => durable.remove(name),
                };
            }
        }
    }

    /// Makes everything durable.
    pub(crate) fn sync_all(&mut self) -> io::Result<()> {
        let is_file = |(_, inode): &(&Node, &Arc<Inode>)| matches!(inode.kind, Kind::File(_));
        let files: Vec<Node> = self.nodes.iter().filter(is_file).map(|(node, _)| *node).collect();
        files.into_iter().try_for_each(|node| self.sync_file(node))?;
        std::mem::take(&mut self.pending).iter().for_each(|change| self.make_durable(change));
        Ok(())
    }

    /// Makes the names in a folder durable.
    pub(crate) fn sync_folder(&mut self, folder: Node) -> io::Result<()> {
        self.names(folder)?;
        // From the newest back: what touches the folder, and what stands before it on the same names.
        let mut needed: HashSet<(Node, String)> = HashSet::new();
        let (mut covered, mut left) = (Vec::new(), Vec::new());
        for change in std::mem::take(&mut self.pending).into_iter().rev() {
            let touches = |(at, name, _): &(Node, String, Option<Node>)| {
                *at == folder || needed.contains(&(*at, name.clone()))
            };
            if change.0.iter().any(touches) {
                needed.extend(change.0.iter().map(|(at, name, _)| (*at, name.clone())));
                covered.push(change);
            } else {
                left.push(change);
            }
        }
        left.reverse();
        self.pending = left;
        covered.iter().rev().for_each(|change| self.make_durable(change));
        Ok(())
    }
}
