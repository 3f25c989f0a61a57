//! Prompts that were taken lately, so that the same one twice is one.

use std::collections::VecDeque;

/// How many are remembered. Whoever asks again does so within seconds.
const MOST: usize = 1_000;

/// The ids of prompts that were taken lately.
#[derive(Debug, Default)]
pub(super) struct Taken(VecDeque<String>);

impl Taken {
    pub(super) fn has(&self, message: &str) -> bool {
        self.0.iter().any(|taken| taken == message)
    }

    pub(super) fn add(&mut self, message: &str) {
        if self.0.len() == MOST {
            self.0.pop_front();
        }
        self.0.push_back(message.to_owned());
    }

    /// Forgets one that came to nothing, so that it can be tried again.
    pub(super) fn forget(&mut self, message: &str) {
        self.0.retain(|taken| taken != message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_are_remembered_and_no_more() {
        let mut taken = Taken::default();
        for number in 0..5 * MOST {
            taken.add(&number.to_string());
            assert!(taken.has(&number.to_string()));
        }
        assert!(taken.0.len() == MOST && !taken.has("0"));
        taken.forget("4999");
        assert!(!taken.has("4999"));
    }
}
