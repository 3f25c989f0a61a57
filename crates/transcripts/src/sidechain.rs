//! Subagents within a session's own file, as Claude Code wrote them before each had a file of its own.

use std::collections::HashMap;

use crate::chain::{Chain, Link};
use crate::key::Key;
use crate::node::{Marks, Node};

/// What one subagent said.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sidechain {
    /// The id of its first entry: what it was sent for. It has no other name.
    pub uuid: String,
    /// Its entries.
    pub chain: Chain,
}

/// Returns the entries of each subagent, in the order of the file. None is empty.
pub(crate) fn sidechains(nodes: &[Node]) -> Vec<Chain> {
    let (mut chains, mut chain_of): (Vec<Chain>, HashMap<Key, usize>) = (Vec::new(), HashMap::new());
    for node in nodes.iter().filter(|node| node.marks.has(Marks::SIDECHAIN)) {
        let parent = node.parent.and_then(|parent| chain_of.get(&parent).copied());
        let at = parent.unwrap_or_else(|| {
            chains.push(Chain { links: Vec::new() });
            chains.len() - 1
        });
        chains[at].links.push(Link::from(node));
        chain_of.insert(node.key, at);
    }
    chains
}
