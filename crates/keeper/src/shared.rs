//! One store, many keepers: what each tells the others of the sessions that it drives, and what it hears from them.
//!
//! Everything goes through the sessions themselves. Whoever drives one copies its transcript into the store as it grows,
//! and says in its metadata what it does and what it asks; whoever decides something elsewhere says so there too. So
//! there is nothing to keep beside the sessions, no keeper has to reach another, and a hint that was lost is made up
//! for by the next look.

mod behind;
mod deciding;
mod driven;
mod others;
mod over;
mod parting;
mod place;
mod share;
mod silence;
mod take_over;

pub(crate) use behind::Behind;
pub(crate) use driven::Driven;
pub(crate) use others::Others;
pub(crate) use place::Place;
pub(crate) use share::Share;
pub(crate) use silence::Silences;
pub(crate) use take_over::give_way;
