//! What ran beside the trunk: tools that were called at once make a tree of their results, of which a walk from the
//! leaf to the root meets one only.

use std::collections::HashMap;

use crate::node::{Kind, Marks};
use crate::tree::{Place, Tree, Trunk};

/// Returns a trunk with the other lines of its API messages and all their tools' results, in the order of the file.
pub(crate) fn with_parallels(tree: &Tree, trunk: Trunk) -> Vec<Place> {
    let groups = tree.groups();
    // Where the last line of each API message stands on the trunk.
    let mut last_of: Vec<Option<usize>> = vec![None; groups.count];
    for (at, &place) in trunk.places.iter().enumerate() {
        if let Some(group) = groups.of[place] {
            last_of[group as usize] = Some(at);
        }
    }
    let last_with = |place: Place| groups.of[place].and_then(|group| last_of[group as usize]);
    let mut answered = vec![false; tree.nodes.len()];
    for &place in trunk.places.iter().filter(|&&place| tree.nodes[place].marks.has(Marks::RESULT)) {
        if let Some(parent) = tree.parent(place) {
            answered[parent] = true;
        }
    }
    let mut beside: HashMap<usize, Beside> = HashMap::new();
    for (place, node) in tree.nodes.iter().enumerate().filter(|(place, _)| !trunk.on[*place]) {
        let called_by = tree.parent(place).filter(|&parent| tree.nodes[parent].kind == Kind::Assistant);
        if node.kind == Kind::Assistant && node.group != 0 {
            if let Some(at) = last_with(place) {
                beside.entry(at).or_default().lines.push(place);
            }
        } else if node.marks.has(Marks::RESULT)
            && let Some(parent) = called_by.filter(|&parent| !answered[parent])
            && let Some(at) = last_with(parent)
        {
            beside.entry(at).or_default().results.push(place);
        }
    }
    if beside.is_empty() { trunk.places } else { insert(tree, &trunk.places, beside) }
}

/// What belongs to one API message and is not on the trunk.
#[derive(Default)]
struct Beside {
    lines: Vec<Place>,
    results: Vec<Place>,
}

fn insert(tree: &Tree, trunk: &[Place], mut beside: HashMap<usize, Beside>) -> Vec<Place> {
    let mut chain = Vec::with_capacity(trunk.len());
    let mut at = 0;
    while at < trunk.len() {
        chain.push(trunk[at]);
        let Some(Beside { lines, mut results }) = beside.remove(&at) else {
            at += 1;
            continue;
        };
        let group = tree.nodes[trunk[at]].group;
        let begins = chain.iter().rposition(|&place| tree.nodes[place].group != group).map_or(0, |at| at + 1);
        chain.extend(lines);
        chain[begins..].sort_unstable();
        at += 1;
        while at < trunk.len() && tree.nodes[trunk[at]].marks.has(Marks::RESULT) {
            results.push(trunk[at]);
            at += 1;
        }
        results.sort_unstable();
        chain.extend(results);
    }
    chain
}
