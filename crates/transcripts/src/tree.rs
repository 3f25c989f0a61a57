//! Who follows whom: the entries of a transcript, linked as the CLI links them when it resumes.
//!
//! # Contract
//!
//! * Of entries with one id the last counts, at the place of the first.
//! * What follows an entry that is not there, or itself, follows the entry before it in the file. The CLI wants that one
//!   to be at most some five seconds older, and else forgets all that came before; here nothing is forgotten.
//! * What a compaction kept follows its anchor, and what followed the anchor follows the last that was kept.
//! * Progress only passes on what it follows. Subagents' entries in the main file take no part.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::key::Key;
use crate::node::{Compaction, Kept, Kind, Marks, Node};

/// A node's number in the order of the file.
pub(crate) type Place = usize;

/// The entries of a transcript, linked.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Each entry once, in the order of the file.
    pub(crate) nodes: Vec<Node>,
    places: HashMap<Key, Place>,
    parents: Vec<Option<Place>>,
    /// Entries that were linked to the one before them, for want of a better one.
    pub(crate) bridged: Vec<Place>,
    /// Entries that there was an earlier one of.
    pub(crate) doubled: Vec<Node>,
    has_children: Vec<bool>,
    groups: OnceLock<Groups>,
}

/// The API messages that entries are parts of, by number, so that nothing is hashed for each conversation anew.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// Each entry's; none if it is no part of any.
    pub(crate) of: Vec<Option<u32>>,
    pub(crate) count: usize,
}

impl Tree {
    /// Links nodes.
    pub(crate) fn of(nodes: &[Node], compactions: &[Compaction]) -> Self {
        // In a subagent's own file everything is a sidechain.
        let is_own = !nodes.iter().all(|node| node.marks.has(Marks::SIDECHAIN));
        let mut tree = Tree { places: HashMap::with_capacity(nodes.len()), ..Tree::default() };
        tree.nodes.reserve(nodes.len());
        for node in nodes.iter().filter(|node| !(is_own && node.marks.has(Marks::SIDECHAIN))) {
            match tree.places.get(&node.key) {
                Some(&place) => {
                    tree.doubled.push(*node);
                    tree.nodes[place] = *node;
                }
                None => {
                    tree.places.insert(node.key, tree.nodes.len());
                    tree.nodes.push(*node);
                }
            }
        }
        tree.link();
        for compaction in compactions {
            tree.keep(compaction);
        }
        tree.has_children = vec![false; tree.nodes.len()];
        for parent in tree.parents.iter().flatten() {
            tree.has_children[*parent] = true;
        }
        tree
    }

    /// Returns where an entry is.
    pub(crate) fn find(&self, key: Key) -> Option<Place> {
        self.find_any(key).filter(|&place| self.nodes[place].kind != Kind::Progress)
    }

    /// Returns where an entry is, even if it only passes on what it follows.
    pub(crate) fn find_any(&self, key: Key) -> Option<Place> {
        self.places.get(&key).copied()
    }

    fn link(&mut self) {
        self.parents.reserve(self.nodes.len());
        let mut before = None;
        for place in 0..self.nodes.len() {
            let parent = match self.nodes[place].parent {
                None => None,
                Some(parent) => self.through_progress(parent).or_else(|| {
                    self.bridged.push(place);
                    before
                }),
            };
            self.parents.push(parent);
            if self.nodes[place].kind != Kind::Progress {
                before = Some(place);
            }
        }
    }

    /// Returns the entry that is meant by a parent, past all progress.
    fn through_progress(&self, mut key: Key) -> Option<Place> {
        for _ in 0..=self.nodes.len() {
            let place = *self.places.get(&key)?;
            match &self.nodes[place] {
                Node { kind: Kind::Progress, parent, .. } => key = (*parent)?,
                _ => return Some(place),
            }
        }
        None
    }

    fn keep(&mut self, compaction: &Compaction) {
        let kept: Vec<Place> = match &compaction.kept {
            Kept::Listed(keys) => keys.iter().filter_map(|key| self.find(*key)).collect(),
            Kept::Segment { head, tail } => self.segment(*head, *tail).unwrap_or_default(),
        };
        let (Some(&first), Some(&last)) = (kept.first(), kept.last()) else { return };
        for (place, node) in self.nodes.iter().enumerate() {
            if node.parent == Some(compaction.anchor) && !kept.contains(&place) {
                self.parents[place] = Some(last);
            }
        }
        for pair in kept.windows(2) {
            self.parents[pair[1]] = Some(pair[0]);
        }
        self.parents[first] = self.find(compaction.anchor).or_else(|| self.find(compaction.boundary));
    }

    /// Returns the entries from one to another, if the one leads to the other.
    fn segment(&self, head: Key, tail: Key) -> Option<Vec<Place>> {
        let (head, mut at) = (self.find(head)?, self.find(tail)?);
        let mut kept = vec![at];
        while at != head {
            at = self.parents[at].filter(|_| kept.len() <= self.nodes.len())?;
            kept.push(at);
        }
        kept.reverse();
        Some(kept)
    }

    /// Returns the last entry of the conversation that the CLI would resume: the one it named last, if nothing follows
    /// that, else the last one in the file.
    pub(crate) fn active_leaf(&self, named: Option<Key>) -> Option<Place> {
        let named = named.and_then(|key| self.find(key)).filter(|&place| !self.has_children[place]);
        named.or_else(|| (0..self.nodes.len()).rfind(|&place| self.nodes[place].kind != Kind::Progress))
    }

    /// Returns every entry that nothing follows, in the order of the file.
    pub(crate) fn leaves(&self) -> impl Iterator<Item = Place> {
        let places = 0..self.nodes.len();
        places.filter(|&place| !self.has_children[place] && self.nodes[place].kind != Kind::Progress)
    }

    /// Returns the entries from the root to a leaf, without those that run beside them.
    pub(crate) fn trunk(&self, leaf: Place) -> Trunk {
        let mut trunk = Trunk { places: Vec::new(), cycles: Vec::new(), on: vec![false; self.nodes.len()] };
        let mut next = Some(leaf);
        while let Some(place) = next {
            trunk.on[place] = true;
            trunk.places.push(place);
            next = self.parents[place];
            if next.is_some_and(|parent| trunk.on[parent]) {
                trunk.cycles.push(place);
                let free = |&before: &Place| !trunk.on[before] && self.nodes[before].kind != Kind::Progress;
                next = (0..place).rfind(free);
            }
        }
        trunk.places.reverse();
        trunk
    }

    /// Returns what each entry follows such that none follows itself, and the entries that did. The conversation that
    /// ends with a leaf is what it was.
    pub(crate) fn without_cycles(&self, leaf: Option<Place>) -> (Vec<Option<Place>>, Vec<Place>) {
        let (mut parents, mut cycles) = (self.parents.clone(), Vec::new());
        let trunk = leaf.map(|leaf| self.trunk(leaf));
        let mut is_sound =
            trunk.as_ref().map_or_else(|| vec![false; parents.len()], |trunk| trunk.on.clone());
        if let Some(trunk) = trunk.filter(|trunk| !trunk.cycles.is_empty()) {
            for pair in trunk.places.windows(2) {
                parents[pair[1]] = Some(pair[0]);
            }
            parents[trunk.places[0]] = None;
            cycles = trunk.cycles;
        }
        let mut on_the_way = vec![false; parents.len()];
        for place in 0..parents.len() {
            let (mut way, mut next) = (Vec::new(), Some(place));
            while let Some(at) = next.filter(|at| !is_sound[*at]) {
                on_the_way[at] = true;
                way.push(at);
                next = parents[at];
                if next.is_some_and(|parent| on_the_way[parent]) {
                    cycles.push(at);
                    parents[at] = (0..at).rfind(|before| is_sound[*before]);
                    break;
                }
            }
            for at in way {
                (is_sound[at], on_the_way[at]) = (true, false);
            }
        }
        cycles.sort_unstable();
        (parents, cycles)
    }

    /// Returns the API messages that the entries are parts of.
    pub(crate) fn groups(&self) -> &Groups {
        self.groups.get_or_init(|| {
            let mut numbers: HashMap<u64, u32> = HashMap::new();
            let mut number = |node: &Node| {
                let next = numbers.len() as u32;
                (node.group != 0).then(|| *numbers.entry(node.group).or_insert(next))
            };
            let of = self.nodes.iter().map(&mut number).collect();
            Groups { of, count: numbers.len() }
        })
    }

    /// Returns the entry that an entry follows.
    pub(crate) fn parent(&self, place: Place) -> Option<Place> {
        self.parents[place]
    }
}

/// The entries from a root to a leaf.
#[derive(Debug)]
pub(crate) struct Trunk {
    pub(crate) places: Vec<Place>,
    /// The entries that followed themselves, over others or directly.
    pub(crate) cycles: Vec<Place>,
    /// Whether each entry of the tree is among them.
    pub(crate) on: Vec<bool>,
}
