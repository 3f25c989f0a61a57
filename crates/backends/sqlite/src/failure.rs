//! What SQLite says, as what the caller can do about it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rethread_store::Error;
use rusqlite::{ErrorCode, ffi};

/// How long a call waits for other processes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns a function that gives an error of SQLite's its place.
pub(crate) fn at(action: &'static str, path: &Path) -> impl FnOnce(rusqlite::Error) -> Error {
    move |error| {
        let path = path.to_owned();
        // What processes share beside the file is not made larger for one reason only.
        let is_without_room =
            error.sqlite_error().is_some_and(|it| it.extended_code == ffi::SQLITE_IOERR_SHMSIZE);
        match error.sqlite_error_code() {
            _ if is_without_room => Error::NoSpace { action, path },
            Some(ErrorCode::DiskFull) => Error::NoSpace { action, path },
            Some(ErrorCode::ReadOnly) => Error::ReadOnly { action, path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Busy {
                what: path.display().to_string(),
                holder: "another process".into(),
                waited: PATIENCE,
            },
            Some(ErrorCode::NotADatabase) => Error::BadName {
                what: "store of sessions",
                text: path.display().to_string(),
                rule: "it is no SQLite database; name a file of its own",
            },
            Some(ErrorCode::DatabaseCorrupt) => {
                Error::Damaged { what: path.display().to_string(), reason: error.to_string() }
            }
            _ => Error::Backend { backend: "sqlite", action, source: Arc::new(error) },
        }
    }
}
