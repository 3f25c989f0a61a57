//! The keeper: its lists and pages against the official SDK, its stream against a broadcaster on node, its way from an
//! agent to a browser against a bare relay, and what it costs when nothing happens.

pub(crate) mod agent;
mod broadcaster;
mod fan_out;
mod idle;
mod listeners;
mod reading;
mod relay;
mod served;

use crate::area::Trial;

/// Everything that is tried of the keeper.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "reading", run: reading::run },
    Trial { name: "fan-out", run: fan_out::run },
    Trial { name: "relay", run: relay::run },
    Trial { name: "idle", run: idle::run },
];
