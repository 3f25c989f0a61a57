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
    Trial { name: "burst-1", run: fan_out::one },
    Trial { name: "burst-100", run: fan_out::hundred },
    Trial { name: "burst-1000", run: fan_out::thousand },
    Trial { name: "paced", run: fan_out::slowly },
    Trial { name: "relay", run: relay::run },
    Trial { name: "idle", run: idle::run },
];
