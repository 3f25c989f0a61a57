//! The figures of several rounds, and what they come to.

use serde::Serialize;

/// One figure a round, in the order of the rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Samples(Vec<f64>);

impl Samples {
    /// Takes the next round's figure.
    pub(crate) fn push(&mut self, figure: f64) {
        self.0.push(figure);
    }

    /// Takes a figure, if there is one.
    pub(crate) fn extend(&mut self, figure: Option<f64>) {
        self.0.extend(figure);
    }

    /// Returns how many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the figure in the middle.
    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// Returns the figure that a share of the others does not exceed.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1) as f64;
        let at = last * share;
        let figure = |index: f64| sorted.get(index as usize).copied().unwrap_or(f64::NAN);
        let (below, above) = (figure(at.floor()), figure(at.ceil()));
        below + (above - below) * at.fract()
    }

    /// Returns the median of the rounds' own ratios: what slows a whole round down cancels out.
    pub(crate) fn ratio_to(&self, peer: &Samples) -> f64 {
        let ratio = |(ours, theirs): (&f64, &f64)| match (*ours, *theirs) {
            (0.0, 0.0) => 0.0,
            (ours, theirs) => ours / theirs,
        };
        self.0.iter().zip(&peer.0).map(ratio).collect::<Samples>().median()
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(figures: I) -> Self {
        Self(figures.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        let samples: Samples = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!(samples.median(), 2.5);
    }

    #[test]
    fn a_round_that_was_slow_for_both_changes_no_ratio() {
        let ours: Samples = [10.0, 1.0, 10.0].into_iter().collect();
        let theirs: Samples = [5.0, 0.5, 5.0].into_iter().collect();
        assert_eq!(ours.ratio_to(&theirs), 2.0);
    }
}
