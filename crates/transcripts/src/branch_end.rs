//! Where the conversations of a transcript end: the active one, those that were left, and what a compaction summed up.

use std::collections::HashSet;

use serde::Serialize;

use crate::chain::Link;
use crate::key::Key;
use crate::node::Marks;
use crate::transcript::Transcript;
use crate::tree::{Place, Tree};

/// The end of one conversation. [`Transcript::chain_to`] leads there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BranchEnd {
    /// The id of the last that was said there.
    pub uuid: String,
    /// Why it ends there.
    pub reason: BranchReason,
}

/// Why a conversation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BranchReason {
    /// It is the active one, and nothing followed yet.
    Active,
    /// It went on from an earlier message: nobody sees what was said here unless they ask for it.
    Left,
    /// It was compacted: the active one goes on with a summary of it.
    Compacted,
}

impl Transcript {
    /// Returns where conversations end that something was said in, in the order of the file.
    pub fn branch_ends(&self) -> Vec<BranchEnd> {
        let tree = self.tree();
        let active = self.active();
        let mut told: HashSet<u64> = active.spans().map(|span| span.offset).collect();
        let summed_up = self.summed_up(tree);
        let mut ends = Vec::new();
        let last = active.messages().links.last().map(|link| link.span.offset);
        // Of results of tools that were called at once the last has the others beside it.
        for leaf in tree.leaves().collect::<Vec<_>>().into_iter().rev() {
            let Some(said) = said_last(tree, leaf, &told) else { continue };
            told.extend(self.chain(leaf).spans().map(|span| span.offset));
            let is_summed_up = summed_up.contains(&tree.nodes[leaf].key);
            ends.push((said, if is_summed_up { BranchReason::Compacted } else { BranchReason::Left }));
        }
        let is_last = |place: &Place| Some(tree.nodes[*place].span.offset) == last;
        ends.extend((0..tree.nodes.len()).rfind(is_last).map(|place| (place, BranchReason::Active)));
        ends.sort_unstable_by_key(|(place, _)| *place);
        let named = ends.into_iter().filter_map(|(place, reason)| {
            let uuid = self.envelope(place, |entry| entry.text("uuid"))?;
            Some(BranchEnd { uuid, reason })
        });
        named.collect()
    }

    /// Returns the entries that a compaction goes on from: what it names, and what was followed by something that it kept.
    fn summed_up(&self, tree: &Tree) -> HashSet<Key> {
        let followed = tree.nodes.iter().filter_map(|node| node.parent);
        let boundaries = (0..tree.nodes.len()).filter(|&place| tree.nodes[place].marks.has(Marks::BOUNDARY));
        let named = boundaries.filter_map(|place| {
            self.envelope(place, |entry| entry.text("logicalParentUuid")).map(|uuid| Key::of(&uuid))
        });
        followed.chain(named).collect()
    }
}

/// Returns the last thing that was said on the way to a leaf, if that is nothing that was told before.
fn said_last(tree: &Tree, leaf: Place, told: &HashSet<u64>) -> Option<Place> {
    let mut next = Some(leaf);
    for _ in 0..tree.nodes.len() {
        let node = &tree.nodes[next?];
        if told.contains(&node.span.offset) {
            return None;
        }
        if Link::from(node).is_message() {
            return next;
        }
        next = next.and_then(|place| tree.parent(place));
    }
    None
}
