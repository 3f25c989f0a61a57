//! The program under fire: killed, starved, frozen, lied to.

#[expect(clippy::expect_used, reason = "a table that cannot be written is a failure")]
#[path = "../../store/tests/fire/effort.rs"]
pub(crate) mod effort;
#[path = "../../store/tests/fire/side_by_side.rs"]
mod side_by_side;

pub(crate) mod appender;
mod clock;
mod crowd;
mod frozen;
mod full_disk;
mod kept;
mod kill;
mod late_data;
pub(crate) mod ledger;
mod looks;
mod lying_sync;
mod mounted;
mod power;
mod refusals;
mod rewind_full_disk;
mod rewind_power;
mod rewinds;
mod stopped;
mod strace;
mod syscalls;
mod template;
mod torn_write;
mod world;
