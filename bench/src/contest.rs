//! The same work by several, in turn, round after round.

use std::path::Path;

use crate::bar::Bar;
use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::ui::Progress;

type Work<'a> = Box<dyn FnMut(&Path) -> Outcome<f64> + 'a>;

/// The same work by us and by our peers.
pub(crate) struct Contest<'a> {
    what: String,
    unit: Unit,
    contestants: Vec<Contestant<'a>>,
}

struct Contestant<'a> {
    name: String,
    bar: Bar,
    work: Work<'a>,
    samples: Samples,
}

impl<'a> Contest<'a> {
    /// Names the work, and what we do: given a fresh folder, it returns one figure.
    pub(crate) fn new(
        what: impl Into<String>,
        unit: Unit,
        ours: impl FnMut(&Path) -> Outcome<f64> + 'a,
    ) -> Self {
        Self { what: what.into(), unit, contestants: Vec::new() }.peer("rethread", Bar::Shown, ours)
    }

    /// Adds a peer, and what our figure must be compared with its own.
    pub(crate) fn peer(
        mut self,
        name: impl Into<String>,
        bar: Bar,
        work: impl FnMut(&Path) -> Outcome<f64> + 'a,
    ) -> Self {
        let (name, work) = (name.into(), Box::new(work));
        self.contestants.push(Contestant { name, bar, work, samples: Samples::default() });
        self
    }

    /// Runs every round, each begun by another contestant, and a first one that does not count.
    pub(crate) fn run(mut self, bench: &Bench) -> Outcome<Row> {
        let progress = Progress::begin(&self.what);
        let count = self.contestants.len();
        for round in 0..=bench.scale.rounds {
            progress.round(round, bench.scale.rounds);
            for turn in 0..count {
                let contestant = &mut self.contestants[(round + turn) % count];
                let folder = bench.fresh()?;
                bench.ground.settle()?;
                let figure = (contestant.work)(&folder)?;
                if round > 0 {
                    contestant.samples.push(figure);
                }
            }
        }
        progress.end();
        let mut contestants = self.contestants.into_iter();
        let ours = contestants.next().map(|ours| ours.samples).unwrap_or_default();
        let row = Row::new(self.what, self.unit, ours);
        Ok(contestants.fold(row, |row, peer| row.against(peer.name, &peer.samples, peer.bar)))
    }
}
