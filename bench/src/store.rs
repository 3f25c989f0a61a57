//! The store: appends, loads, forks and lists, against what else could do the same.

mod acceptance;
pub(crate) mod branching;
mod durable;
pub(crate) mod killed_writer;
pub(crate) mod listing;
pub(crate) mod loading;
mod long_store;
pub(crate) mod tasks;
mod written;

use crate::area::Trial;
use crate::bench::Bench;
use crate::failure::Outcome;
use crate::row::Row;

/// Everything that is tried of the store.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "one-in-flight", run: |bench| Ok(vec![durable::one_in_flight(bench)?]) },
    Trial { name: "many-tasks", run: |bench| Ok(vec![durable::many_tasks(bench)?]) },
    Trial { name: "many-sessions", run: |bench| Ok(vec![durable::many_sessions(bench)?]) },
    Trial { name: "written", run: written::run },
    Trial { name: "accept", run: |bench| Ok(vec![acceptance::run(bench)?]) },
    Trial { name: "long", run: long },
    Trial { name: "list", run: listing::run },
];

fn long(bench: &Bench) -> Outcome<Vec<Row>> {
    let long = long_store::LongStore::build(bench)?;
    let mut rows = loading::run(bench, &long)?;
    rows.extend(branching::run(bench, &long)?);
    Ok(rows)
}
