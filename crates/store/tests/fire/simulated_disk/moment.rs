//! A machine at one moment of a run, and what may come of it.

use fastrand::Rng;

use super::SimulatedDisk;
use super::machine::Machine;

/// The machine right before a call, or in the middle of it.
#[derive(Clone)]
pub(crate) struct Moment {
    pub(crate) story: String,
    pub(super) machine: Machine,
}

impl Moment {
    /// Returns the machine as it goes on when its processes are killed here.
    pub(crate) fn after_death(&self) -> SimulatedDisk {
        SimulatedDisk::of(self.machine.clone())
    }

    /// Returns the machine as it may come up again when its power fails here.
    pub(crate) fn after_crash(&self, rng: &mut Rng) -> SimulatedDisk {
        SimulatedDisk::of(self.machine.after_crash(rng))
    }
}
