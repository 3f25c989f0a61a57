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
    /// Rounds of what takes very long.
    pub(crate) few_rounds: usize,
    /// Files of a small tree and of a large one.
    pub(crate) small_tree: usize,
    pub(crate) large_tree: usize,
    /// Checkpoints that are weighed.
    pub(crate) checkpoints: usize,
    /// Bytes of a very large file.
    pub(crate) huge_file: u64,
    /// Frames of a conversation with the CLI.
    pub(crate) frames: usize,
    /// Bytes of a very long one.
    pub(crate) spoken: u64,
    /// Whether the bars are worth judging.
    pub(crate) judged: bool,
}

impl Scale {
    /// The sizes that the bars speak of.
    pub(crate) fn full() -> Self {
        Self {
            rounds: 7,
            many_rounds: 25,
            durable: 1_000,
            shared: 6_400,
            written: 20_000,
            naive: 2_000,
            long: 100_000,
            sessions: 10_000,
            few_rounds: 3,
            small_tree: 5_000,
            large_tree: 50_000,
            checkpoints: 1_000,
            huge_file: 2 << 30,
            frames: 100_000,
            spoken: 1_000_000_000,
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
            few_rounds: 1,
            small_tree: 40,
            large_tree: 120,
            checkpoints: 10,
            huge_file: 4 << 20,
            frames: 300,
            spoken: 2_000_000,
            judged: false,
        }
    }
}
