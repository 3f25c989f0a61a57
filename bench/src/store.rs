//! The store: appends, loads, forks and lists, against what else could do the same.

mod acceptance;
pub(crate) mod branching;
mod durable;
pub(crate) mod listing;
pub(crate) mod loading;
mod long_store;
mod tasks;
mod written;

use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::Row;

/// Measures everything about the store.
pub(crate) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let mut rows = vec![
        durable::one_in_flight(bench)?,
        durable::many_tasks(bench)?,
        durable::many_sessions(bench)?,
        written::many_in_flight(bench)?,
        written::one_in_flight(bench)?,
        acceptance::run(bench)?,
    ];
    let long = long_store::LongStore::build(bench)?;
    rows.extend(loading::run(bench, &long)?);
    rows.extend(branching::run(bench, &long)?);
    rows.extend(listing::run(bench)?);
    Ok(rows)
}
