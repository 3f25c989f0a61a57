//! Other places than files: what it costs to keep sessions in a database, against the database alone.

mod cost;
mod encrypted;
mod postgres;
mod python;
mod s3;
mod sqlite;

use crate::area::Trial;
use crate::failure::Outcome;
use crate::row::Row;
use crate::stopwatch::seconds;

/// Everything that is tried of backends.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "sqlite-one-in-flight", run: |bench| rows(sqlite::one_in_flight(bench)) },
    Trial { name: "sqlite-many-tasks", run: |bench| rows(sqlite::many_tasks(bench)) },
    Trial { name: "sqlite-load", run: |bench| rows(sqlite::load(bench)) },
    Trial { name: "postgres-one-in-flight", run: |bench| rows(postgres::one_in_flight(bench)) },
    Trial { name: "postgres-many-tasks", run: |bench| rows(postgres::many_tasks(bench)) },
    Trial { name: "encrypted-append", run: |bench| rows(encrypted::append(bench)) },
    Trial { name: "encrypted-load", run: |bench| rows(encrypted::load(bench)) },
    Trial { name: "frameworks-append", run: |bench| rows(python::append(bench)) },
    Trial { name: "frameworks-load", run: python::load },
    Trial { name: "postgres-load", run: |bench| rows(postgres::load(bench)) },
    Trial { name: "s3-append", run: |bench| rows(s3::append(bench)) },
    Trial { name: "s3-open", run: |bench| rows(s3::open(bench)) },
    Trial { name: "cost", run: cost::stored },
];

fn rows(row: Outcome<Row>) -> Outcome<Vec<Row>> {
    Ok(vec![row?])
}

fn milliseconds(work: impl FnOnce() -> Outcome<()>) -> Outcome<f64> {
    Ok(seconds(work)?.0 * 1e3)
}
