//! How often a fault test tries: a stated number in `make test`, as often as there is time in `make torture`.
//!
//! `RETHREAD_SEED` and `RETHREAD_ROUND` repeat one round of a failed run, `RETHREAD_TORTURE_SECONDS` at the size that it
//! had in torture; the failure prints what is needed.

use std::io::Write as _;
use std::time::{Duration, Instant};

/// The rounds of one row of the table.
#[derive(Debug)]
pub(crate) struct Effort {
    what: &'static str,
    rounds: u64,
    seconds: Option<u64>,
    seed: u64,
    only: Option<u64>,
    begun: Instant,
    tried: u64,
    /// The round that failed, where it need not be the last that was begun.
    failed: Option<u64>,
}

/// One try, with a seed that is a function of the run's seed and its own number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) number: u64,
    pub(crate) seed: u64,
    /// Where rows that go through a list begin.
    start: u64,
}

impl Round {
    /// Returns this round's source of random numbers.
    pub(crate) fn rng(self) -> fastrand::Rng {
        fastrand::Rng::with_seed(self.seed)
    }

    /// Returns which of so many things it is this round's turn to try. As many rounds try each of them once, and fewer
    /// of them try others with every seed.
    pub(crate) fn turn(self, count: u64) -> u64 {
        (self.start % count + self.number % count) % count
    }
}

impl Effort {
    /// Begins a row: what is tried, and how often in `make test`.
    #[expect(
        clippy::print_stderr,
        reason = "a round that is cut off from outside cannot say its seed any more"
    )]
    pub(crate) fn new(what: &'static str, rounds: u64) -> Self {
        let seconds = number("RETHREAD_TORTURE_SECONDS");
        // The same rounds in every `make test`, others in every `make torture`.
        let seed = number("RETHREAD_SEED").unwrap_or_else(|| seconds.map_or(1, |_| fastrand::u64(..1 << 48)));
        let only = number("RETHREAD_ROUND");
        if seconds.is_some() {
            eprintln!("{what}: seed {seed}");
        }
        Self { what, rounds, seconds, seed, only, begun: Instant::now(), tried: 0, failed: None }
    }

    /// Says which round failed, where several run at once.
    pub(crate) fn blame(&mut self, round: u64) {
        self.failed.get_or_insert(round);
    }
}

/// Returns whether this is `make torture`.
pub(crate) fn torture() -> bool {
    torture_seconds().is_some()
}

/// Returns for how long it is, if this is `make torture`.
pub(crate) fn torture_seconds() -> Option<u64> {
    number("RETHREAD_TORTURE_SECONDS")
}

impl Iterator for Effort {
    type Item = Round;

    fn next(&mut self) -> Option<Round> {
        let goes_on = match (self.only, self.seconds) {
            (Some(_), _) => self.tried == 0,
            // Never less than `make test`, however little time there is.
            (None, Some(seconds)) => {
                self.tried < self.rounds || self.begun.elapsed() < Duration::from_secs(seconds)
            }
            (None, None) => self.tried < self.rounds,
        };
        let number = self.only.unwrap_or(self.tried);
        self.tried += u64::from(goes_on);
        let seed = fastrand::Rng::with_seed(self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15)).u64(..);
        let start = fastrand::Rng::with_seed(self.seed).u64(..);
        goes_on.then_some(Round { number, seed, start })
    }
}

impl Drop for Effort {
    #[expect(clippy::print_stderr, reason = "how to repeat it belongs beside the failure")]
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        let (last, seed) = (self.only.unwrap_or(self.tried.saturating_sub(1)), self.seed);
        let round = self.failed.unwrap_or(last);
        // What a round does is more in torture, and may depend on the time there is.
        let size =
            self.seconds.map(|seconds| format!("RETHREAD_TORTURE_SECONDS={seconds} ")).unwrap_or_default();
        if failed {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            eprintln!(
                "{}: round {round} of seed {seed} failed; to repeat it:\n  \
                 RETHREAD_SEED={seed} RETHREAD_ROUND={round} {size}cargo test -p {} --test main {test} -- --exact --nocapture",
                self.what,
                env!("CARGO_PKG_NAME")
            );
        }
        let Ok(table) = std::env::var("RETHREAD_TABLE") else { return };
        let result = if failed { "FAILED" } else { "held" };
        let row =
            format!("{}\t{}\t{}\t{seed}\t{result}\n", self.what, self.tried, self.begun.elapsed().as_secs());
        let file = std::fs::OpenOptions::new().append(true).create(true).open(table);
        file.and_then(|mut file| file.write_all(row.as_bytes())).expect("the table can be written");
    }
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is no number")))
}
