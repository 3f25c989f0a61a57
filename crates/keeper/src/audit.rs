//! What was done by whom, one line each, only ever appended to.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::error::{Error, Result};
use crate::private_file;

/// How much of its end is read to show the newest lines.
const TAIL: u64 = 1 << 20;

/// The audit log.
#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    file: Mutex<File>,
}

/// Something that was done, or refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What: `login`, `refused`, `decision`, `rewind`, `delete`, ….
    pub what: String,
    /// By whom.
    pub who: String,
    /// What else there is to know.
    #[schema(value_type = Object)]
    pub about: Map<String, Value>,
}

impl Audit {
    pub(crate) fn open(home: &Path) -> Result<Self> {
        let path = home.join("audit.jsonl");
        let file = private_file::append(&path).map_err(Error::io("open", &path))?;
        Ok(Self { path, file: Mutex::new(file) })
    }

    /// Writes a line with one call. What cannot be written is said in the log of the program.
    pub(crate) fn write(&self, what: &str, who: &str, about: Value) {
        let Value::Object(about) = about else { unreachable!("what is known has names") };
        let entry = AuditEntry { at: Timestamp::now(), what: what.into(), who: who.into(), about };
        let mut line = serde_json::to_vec(&entry).unwrap_or_default();
        line.push(b'\n');
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = file.write_all(&line) {
            tracing::error!(%error, what, who, "the audit log cannot be written");
        }
    }

    /// Returns the newest lines, the newest first.
    pub(crate) fn newest(&self, limit: usize) -> Result<Vec<AuditEntry>> {
        let fail = |error| Error::io("read", &self.path)(error);
        let mut file = File::open(&self.path).map_err(fail)?;
        let length = file.metadata().map_err(fail)?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).map_err(fail)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(fail)?;
        let lines = text.split(|byte| *byte == b'\n').rev();
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).take(limit).collect())
    }
}
