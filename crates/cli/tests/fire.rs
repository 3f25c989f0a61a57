//! The program under fire: killed, starved, frozen, lied to.

#[path = "../../store/tests/fire/effort.rs"]
pub(crate) mod effort;
