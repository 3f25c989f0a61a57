//! The same work by several, in turn, round after round.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::bar::Bar;
use crate::bench::Bench;
use crate::failure::Outcome;
use crate::ground::{let_go, warm};
use crate::neighbours::{Neighbours, is_quiet};
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::ui::Progress;

/// How many rounds make a median.
const ENOUGH: usize = 7;
/// When a contest ends with as many.
const PATIENCE: Duration = Duration::from_secs(30);
/// How much memory is there for each turn, in mebibytes: more than most need.
const MEMORY: usize = 128;

type Work<'a> = Box<dyn FnMut(&Path) -> Outcome<f64> + 'a>;

/// The same work by us and by our peers.
pub(crate) struct Contest<'a> {
    what: String,
    unit: Unit,
    memory: usize,
    contestants: Vec<Contestant<'a>>,
}

struct Contestant<'a> {
    name: String,
    bar: Bar,
    work: Work<'a>,
}

/// Each contestant's figure, and which share of the processors others had meanwhile.
struct Round {
    figures: Vec<f64>,
    others: f64,
}

impl<'a> Contest<'a> {
    /// Names the work, and what we do: given a fresh folder, it returns one figure.
    pub(crate) fn new(
        what: impl Into<String>,
        unit: Unit,
        ours: impl FnMut(&Path) -> Outcome<f64> + 'a,
    ) -> Self {
        Self { what: what.into(), unit, memory: MEMORY, contestants: Vec::new() }.peer(
            "rethread",
            Bar::Shown,
            ours,
        )
    }

    /// Says that a turn needs more memory than usual, in mebibytes.
    pub(crate) fn with_memory(mut self, memory: usize) -> Self {
        self.memory = memory;
        self
    }

    /// Adds a peer, and what our figure must be compared with its own.
    pub(crate) fn peer(
        mut self,
        name: impl Into<String>,
        bar: Bar,
        work: impl FnMut(&Path) -> Outcome<f64> + 'a,
    ) -> Self {
        let (name, work) = (name.into(), Box::new(work));
        self.contestants.push(Contestant { name, bar, work });
        self
    }

    /// Runs the usual number of rounds.
    pub(crate) fn run(self, bench: &Bench) -> Outcome<Row> {
        self.run_rounds(bench.scale.rounds, bench)
    }

    /// Runs some rounds, each begun by another contestant, and a first one that does not count.
    ///
    /// Where other programs disturb them there are up to twice as many, and if enough were quiet, only those count.
    /// Nobody waits for a quiet machine for ever.
    pub(crate) fn run_rounds(mut self, wanted: usize, bench: &Bench) -> Outcome<Row> {
        let progress = Progress::begin(self.what.clone());
        self.round(0, bench)?;
        let (mut quiet, mut all, begun) = (0, Vec::new(), Instant::now());
        let is_late = |rounds: usize| rounds >= ENOUGH && begun.elapsed() > PATIENCE;
        while quiet < wanted && all.len() < 2 * wanted && !is_late(all.len()) {
            progress.round(quiet, wanted);
            let round = self.round(all.len() + 1, bench)?;
            quiet += usize::from(is_quiet(round.others));
            all.push(round);
        }
        progress.end();
        if quiet >= wanted.min(ENOUGH) {
            all.retain(|round| is_quiet(round.others));
        }
        Ok(self.row(&all))
    }

    fn round(&mut self, number: usize, bench: &Bench) -> Outcome<Round> {
        let (neighbours, count) = (Neighbours::watch()?, self.contestants.len());
        let mut figures = vec![f64::NAN; count];
        for turn in 0..count {
            let at = (number + turn) % count;
            let folder = bench.fresh()?;
            bench.ground.settle()?;
            // Figures that are no times are the same in any memory.
            if self.unit.is_of_time() {
                warm(self.memory);
            }
            figures[at] = (self.contestants[at].work)(&folder)?;
            bench.ground.settle()?;
            let_go(&folder)?;
        }
        let others = if self.unit.is_of_time() { neighbours.share()? } else { 0.0 };
        Ok(Round { figures, others })
    }

    fn row(self, rounds: &[Round]) -> Row {
        let figures = |at: usize| -> Samples { rounds.iter().map(|round| round.figures[at]).collect() };
        let others: Samples = rounds.iter().map(|round| round.others).collect();
        let row = Row::new(self.what, self.unit, figures(0)).disturbed(others.median());
        let peers = self.contestants.into_iter().enumerate().skip(1);
        peers.fold(row, |row, (at, peer)| row.against(peer.name, &figures(at), peer.bar))
    }
}
