//! How much work a run does.

/// How much work a run does.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// Rounds that count; one more goes before them.
    pub(crate) rounds: usize,
    /// Rounds of what is over quickly and swings: the disk's mood changes within a second.
    pub(crate) many_rounds: usize,
    /// Entries of a durable append.
    pub(crate) durable: usize,
    /// Entries of a durable append that many make at once, in all.
    pub(crate) shared: usize,
    /// Entries of an append that is only written.
    pub(crate) written: usize,
    /// Entries of an append by the naive design.
    pub(crate) naive: usize,
    /// Entries of the long session.
    pub(crate) long: usize,
    /// Sessions of the listing.
    pub(crate) sessions: usize,
    /// Whether the bars are worth judging.
    pub(crate) judged: bool,
}

impl Scale {
    /// The sizes that the bars speak of.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 7,
            many_rounds: 25,
            durable: 200,
            shared: 6_400,
            written: 20_000,
            naive: 2_000,
            long: 100_000,
            sessions: 10_000,
            judged: true,
        }
    }

    /// Just enough to see that everything runs.
    pub(crate) fn quick() -> Self {
        Self {
            rounds: 2,
            many_rounds: 2,
            durable: 8,
            shared: 128,
            written: 300,
            naive: 20,
            long: 400,
            sessions: 20,
            judged: false,
        }
    }
}
