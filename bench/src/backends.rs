//! Other places than files: what it costs to keep sessions in a database, against the database alone.

mod sqlite;

use crate::area::Trial;

/// Everything that is tried of backends.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "sqlite-one-in-flight", run: |bench| Ok(vec![sqlite::one_in_flight(bench)?]) },
    Trial { name: "sqlite-many-tasks", run: |bench| Ok(vec![sqlite::many_tasks(bench)?]) },
    Trial { name: "sqlite-load", run: |bench| Ok(vec![sqlite::load(bench)?]) },
];
