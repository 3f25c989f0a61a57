//! What other programs do meanwhile: a round that they disturbed says little about anybody.

use crate::failure::Outcome;

/// Up to which share of the processors others do not matter. The kernel's own threads, which write for us, are among
/// them.
const QUIET: f64 = 0.25;

/// The processors' clocks at some moment, in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    all: i64,
    idle: i64,
    own: i64,
}

impl Neighbours {
    /// Begins to watch.
    pub(crate) fn watch() -> Outcome<Self> {
        let all = numbers(std::fs::read_to_string("/proc/stat")?.lines().next().unwrap_or_default());
        let own = std::fs::read_to_string("/proc/self/stat")?;
        // The program's name, which may hold anything, ends with the last parenthesis, and one letter follows. The
        // times of this process and of its children come after ten more numbers.
        let own = numbers(own.rsplit(')').next().unwrap_or_default());
        let time = |times: &[i64], places: std::ops::Range<usize>| {
            times.get(places).unwrap_or_default().iter().sum()
        };
        Ok(Self { all: time(&all, 0..8), idle: time(&all, 3..5), own: time(&own, 10..14) })
    }

    /// Returns which share of the processors others had since then.
    pub(crate) fn share(self) -> Outcome<f64> {
        let now = Self::watch()?;
        let since = |now: i64, then: i64| (now - then) as f64;
        let busy = since(now.all, self.all) - since(now.idle, self.idle) - since(now.own, self.own);
        Ok(busy.max(0.0) / since(now.all, self.all).max(1.0))
    }
}

/// Returns whether this share lets a figure be believed.
pub(crate) fn is_quiet(share: f64) -> bool {
    share <= QUIET
}

/// Some fields are negative, and each must keep its place.
fn numbers(line: &str) -> Vec<i64> {
    line.split_whitespace().filter_map(|field| field.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_do_ourselves_is_not_held_against_others() {
        let before = Neighbours::watch().unwrap();
        let begun = std::time::Instant::now();
        while begun.elapsed().as_millis() < 200 {
            std::hint::spin_loop();
        }
        let after = Neighbours::watch().unwrap();
        assert!(after.own > before.own && after.all >= before.all, "{before:?} {after:?}");
    }
}
