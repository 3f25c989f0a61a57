//! The store under fire: what breaks it must break here first.

pub(crate) mod effort;
mod model;
mod simulated_disk;
