//! One line of the table: what was measured, our figure, and each peer's.

use serde::Serialize;

use crate::bar::Bar;
use crate::samples::Samples;

/// What was measured, and what came out.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) what: String,
    pub(crate) unit: Unit,
    /// Our median.
    pub(crate) ours: f64,
    pub(crate) peers: Vec<Peer>,
    /// Our figure of each round.
    rounds: Samples,
    /// Which share of the processors other programs had meanwhile.
    pub(crate) others: f64,
}

/// Somebody, or something, that our figure is held against.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    /// Its median.
    pub(crate) figure: f64,
    /// Ours by theirs: the median of the rounds' ratios.
    pub(crate) ratio: f64,
    pub(crate) bar: Bar,
    pub(crate) holds: bool,
    /// Its figure of each round.
    rounds: Samples,
}

/// What the figures of a row count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) enum Unit {
    #[serde(rename = "entries/s")]
    EntriesPerSecond,
    #[serde(rename = "µs")]
    Microseconds,
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "MiB")]
    Mebibytes,
    #[serde(rename = "KiB")]
    Kibibytes,
    #[serde(rename = "%")]
    Percent,
    #[serde(rename = "requests")]
    Requests,
}

impl Row {
    /// Begins a row with our own figures, one a round.
    pub(crate) fn new(what: impl Into<String>, unit: Unit, ours: Samples) -> Self {
        Self { what: what.into(), unit, ours: ours.median(), peers: Vec::new(), rounds: ours, others: 0.0 }
    }

    /// Says how much other programs did meanwhile.
    pub(crate) fn disturbed(self, others: f64) -> Self {
        Self { others, ..self }
    }

    /// Adds a peer, with its figures of the same rounds.
    pub(crate) fn against(mut self, name: impl Into<String>, theirs: &Samples, bar: Bar) -> Self {
        let ratio = self.rounds.ratio_to(theirs);
        let (name, figure, holds) = (name.into(), theirs.median(), bar.holds(ratio));
        self.peers.push(Peer { name, figure, ratio, bar, holds, rounds: theirs.clone() });
        self
    }

    /// Returns whether it was looked at once: what is counted is the same each time.
    pub(crate) fn is_of_one_round(&self) -> bool {
        self.rounds.count() == 1
    }

    /// Returns whether every bar of the row holds.
    pub(crate) fn holds(&self) -> bool {
        self.peers.iter().all(|peer| peer.holds)
    }
}

impl Unit {
    /// Returns whether other programs can change the figure: sizes and counts are what they are.
    pub(crate) fn is_of_time(self) -> bool {
        matches!(self, Unit::EntriesPerSecond | Unit::Microseconds | Unit::Milliseconds)
    }

    /// Returns the unit's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Unit::EntriesPerSecond => "entries/s",
            Unit::Microseconds => "µs",
            Unit::Milliseconds => "ms",
            Unit::Mebibytes => "MiB",
            Unit::Kibibytes => "KiB",
            Unit::Percent => "%",
            Unit::Requests => "requests",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(figures: &[f64]) -> Samples {
        figures.iter().copied().collect()
    }

    #[test]
    fn a_row_holds_only_if_each_of_its_bars_does() {
        let row = Row::new("append", Unit::EntriesPerSecond, samples(&[90.0, 100.0, 110.0]));
        let met = row.against("bare", &samples(&[100.0, 100.0, 100.0]), Bar::AtLeast(0.8));
        assert!(met.holds());
        assert!(!met.against("SQLite", &samples(&[95.0, 95.0, 95.0]), Bar::AtLeast(1.1)).holds());
    }

    #[test]
    fn nothing_is_within_any_multiple_of_nothing_but_something_is_not() {
        let row = |figure| Row::new("log read", Unit::Kibibytes, samples(&[figure; 3]));
        assert!(row(0.0).against("nothing", &samples(&[0.0; 3]), Bar::AtMost(1.0)).holds());
        assert!(!row(0.1).against("nothing", &samples(&[0.0; 3]), Bar::AtMost(1.0)).holds());
    }
}
