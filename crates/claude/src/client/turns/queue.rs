//! Messages that wait to be read, and how much they take.

use std::collections::VecDeque;

use crate::error::Result;
use crate::frame::Frame;

/// What comes out of a stream.
pub(crate) type Item = Result<Frame>;

/// What a frame takes besides its bytes, roughly.
const OVERHEAD: usize = 128;

/// Messages in the order they came.
#[derive(Debug, Default)]
pub(super) struct Queue {
    items: VecDeque<Item>,
    bytes: usize,
}

impl Queue {
    /// Returns how much they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, item: Item) {
        self.bytes += size(&item);
        self.items.push_back(item);
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let item = self.items.pop_front()?;
        self.bytes -= size(&item);
        Some(item)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Item> {
        self.items.iter()
    }
}

fn size(item: &Item) -> usize {
    OVERHEAD + item.as_ref().map_or(0, |frame| frame.raw().len())
}
