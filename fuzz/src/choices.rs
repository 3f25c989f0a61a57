//! The input of a structured target: each byte is a decision, and when there are none left, all are zero.

/// Decisions, taken from the front of an input.
#[derive(Clone, Debug)]
pub struct Choices<'a>(&'a [u8]);

impl<'a> Choices<'a> {
    /// Takes decisions from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether there are none left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes one byte.
    pub fn byte(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    /// Takes a yes or no.
    pub fn coin(&mut self) -> bool {
        self.byte() & 1 == 0
    }

    /// Takes a number below a limit; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        let number = usize::from(self.byte()) << 8 | usize::from(self.byte());
        number.checked_rem(limit).unwrap_or(0)
    }

    /// Takes a number of any size; small ones, and those at the edges of what fits, come up often.
    pub fn number(&mut self) -> u64 {
        let shift = u32::from(self.byte());
        let small = u64::from(self.byte());
        match shift {
            0..=127 => small,
            128..=159 => u64::MAX - small,
            160..=191 => (i64::MAX as u64).wrapping_add(small).wrapping_sub(2),
            _ => small.checked_shl(shift - 192).unwrap_or(small),
        }
    }

    /// Takes so many bytes, or what is left.
    pub fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// Takes all that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}
