//! The names in a folder, and what is known of each.

use std::collections::HashMap;
use std::os::fd::BorrowedFd;

use crate::known::Item;

/// Finds names among those that are known, quickest if they come in the order in which they came the last time.
pub(crate) struct Lookup<'a> {
    known: &'a [Item],
    next: usize,
    seen: Vec<bool>,
    by_name: Option<HashMap<&'a [u8], usize>>,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(known: &'a [Item]) -> Self {
        Self { known, next: 0, seen: vec![false; known.len()], by_name: None }
    }

    pub(crate) fn find(&mut self, name: &[u8]) -> Option<&'a Item> {
        let at = match self.known.get(self.next) {
            Some(item) if *item.name == *name => self.next,
            _ => {
                let index = || self.known.iter().enumerate().map(|(at, item)| (&*item.name, at)).collect();
                *self.by_name.get_or_insert_with(index).get(name)?
            }
        };
        self.next = at + 1;
        self.seen[at] = true;
        self.known.get(at)
    }

    pub(crate) fn unseen(&self) -> impl Iterator<Item = &'a Item> {
        self.known.iter().zip(&self.seen).filter(|(_, seen)| !**seen).map(|(item, _)| item)
    }
}

/// The names in a folder, one after the other in one buffer.
pub(crate) struct Names {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Names {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &self.text[start..*end])
    }
}

pub(crate) fn names_in(folder: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> std::io::Result<Names> {
    let mut names = Names { text: Vec::new(), ends: Vec::new() };
    let mut entries = rustix::fs::RawDir::new(folder, buffer.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if !matches!(name, b"." | b".." | b".git") {
            names.text.extend_from_slice(name);
            names.ends.push(names.text.len());
        }
    }
    Ok(names)
}
