//! The store under fire: what breaks it must break here first.

mod aftermath;
mod barriers;
mod batches;
mod crash;
mod crash_states;
mod disk_errors;
pub(crate) mod effort;
mod failed_syncs;
mod found;
mod ledger;
mod model;
mod repeats;
pub(crate) mod replay;
mod run;
mod side_by_side;
mod simulated_disk;
mod torn_megabyte;
mod traps;
mod two_processes;
