//! How a loop ended, and what the next one gets back.

use crate::chain::History;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::metadata::Metadata;

/// How a loop ended. What is `None` stays as it was, so that a loop that does not count something resets nothing.
///
/// The numbers are the session's totals: a resumed loop counts on from what [`Restored`] gave it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Finish {
    /// How many turns the agent took.
    pub turn_count: Option<u64>,
    /// How many tokens it used.
    pub total_tokens: Option<u64>,
    /// What it cost.
    pub total_cost_usd: Option<f64>,
    /// Why it stopped, in its own words.
    pub exit_reason: Option<String>,
}

impl Finish {
    /// Returns an end for this reason.
    pub fn because(exit_reason: impl Into<String>) -> Self {
        Self { exit_reason: Some(exit_reason.into()), ..Self::default() }
    }

    /// Sets how many turns the agent took.
    pub fn turns(mut self, turn_count: u64) -> Self {
        self.turn_count = Some(turn_count);
        self
    }

    /// Sets how many tokens it used.
    pub fn tokens(mut self, total_tokens: u64) -> Self {
        self.total_tokens = Some(total_tokens);
        self
    }

    /// Sets what it cost.
    pub fn cost_usd(mut self, total_cost_usd: f64) -> Self {
        self.total_cost_usd = Some(total_cost_usd);
        self
    }

    /// Refuses a cost that JSON has no number for.
    pub(super) fn check(&self) -> Result<()> {
        match self.total_cost_usd {
            Some(cost) if !cost.is_finite() => {
                Err(Error::BadName { what: "cost", text: cost.to_string(), rule: "a finite number" })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn apply(&self, metadata: &mut Metadata) {
        if let Some(turn_count) = self.turn_count {
            metadata.turn_count = turn_count;
        }
        if let Some(total_tokens) = self.total_tokens {
            metadata.total_tokens = total_tokens;
        }
        if let Some(total_cost_usd) = self.total_cost_usd.filter(|cost| cost.is_finite()) {
            metadata.total_cost_usd = total_cost_usd;
        }
        if let Some(exit_reason) = &self.exit_reason {
            metadata.exit_reason = Some(exit_reason.clone());
        }
    }
}

/// The state of a loop, as its session has it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Restored {
    /// The session's id.
    pub session_id: SessionId,
    /// The conversation up to where the recorder goes on, and what is missing in it.
    pub messages: History,
    /// How many turns the agent took; a fork counts its own.
    pub turn_count: u64,
    /// How many tokens it used.
    pub total_tokens: u64,
    /// What it cost.
    pub total_cost_usd: f64,
    /// Why it stopped last time; `None` if it never said.
    pub exit_reason: Option<String>,
}

impl Restored {
    pub(super) fn new(messages: History, metadata: Metadata) -> Self {
        Self {
            session_id: metadata.session_id,
            messages,
            turn_count: metadata.turn_count,
            total_tokens: metadata.total_tokens,
            total_cost_usd: metadata.total_cost_usd,
            exit_reason: metadata.exit_reason,
        }
    }
}
