//! What our figure must be, measured by a peer's.

use serde::Serialize;

/// What our figure must be: a multiple of a peer's.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Bar {
    /// For rates: ours reaches this many times the peer's.
    AtLeast(f64),
    /// For times, sizes and counts: ours stays within this many times the peer's.
    AtMost(f64),
    /// The peer is there to be seen; nothing is asked.
    Shown,
}

impl Bar {
    /// Returns whether a ratio of ours to the peer's is good enough.
    pub(crate) fn holds(self, ratio: f64) -> bool {
        match self {
            Bar::AtLeast(wanted) => ratio >= wanted,
            Bar::AtMost(wanted) => ratio <= wanted,
            Bar::Shown => true,
        }
    }

    /// Returns whether nothing is asked.
    pub(crate) fn is_shown(self) -> bool {
        matches!(self, Bar::Shown)
    }

    /// Returns the bar in words; nothing where nothing is asked.
    pub(crate) fn words(self) -> String {
        match self {
            Bar::AtLeast(wanted) => format!("at least {wanted}"),
            Bar::AtMost(wanted) => format!("at most {wanted}"),
            Bar::Shown => String::new(),
        }
    }
}
