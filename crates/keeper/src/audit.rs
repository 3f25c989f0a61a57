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

    /// Returns the newest lines that begin before an offset, the newest first, and where the next ones end; `None` if these
    /// are the first there are.
    pub(crate) fn newest(&self, limit: usize, before: Option<u64>) -> Result<(Vec<AuditEntry>, Option<u64>)> {
        let fail = |error| Error::io("read", &self.path)(error);
        let mut file = File::open(&self.path).map_err(fail)?;
        let mut end = file.metadata().map_err(fail)?.len().min(before.unwrap_or(u64::MAX));
        let mut entries = Vec::new();
        while end > 0 {
            let begin = end.saturating_sub(TAIL);
            file.seek(SeekFrom::Start(begin)).map_err(fail)?;
            let mut text = vec![0; (end - begin) as usize];
            file.read_exact(&mut text).map_err(fail)?;
            // What begins before this is read with what stands there; no line is longer.
            let whole = memchr::memchr(b'\n', &text).filter(|_| begin > 0).map_or(0, |newline| newline + 1);
            let mut stop = text.len();
            while stop > whole {
                let start = memchr::memrchr(b'\n', &text[whole..stop - 1]).map_or(whole, |at| whole + at + 1);
                entries.extend(serde_json::from_slice(&text[start..stop]).ok());
                stop = start;
                if entries.len() == limit {
                    let next = begin + start as u64;
                    return Ok((entries, Some(next).filter(|next| *next > 0)));
                }
            }
            end = begin + whole as u64;
            if whole == 0 {
                break;
            }
        }
        Ok((entries, None))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pages_of_any_size_hold_every_line_once_the_newest_first() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::open(home.path()).unwrap();
        // More than is read at once.
        let filling = "x".repeat(3000);
        (0..1000).for_each(|number| audit.write(&number.to_string(), "ada", json!({ "filling": filling })));
        for limit in [1, 7, 999, 1000, 5000] {
            let (mut read, mut before) = (Vec::new(), None);
            loop {
                let (page, next) = audit.newest(limit, before).unwrap();
                assert!(page.len() <= limit);
                read.extend(page.into_iter().map(|entry| entry.what));
                before = next;
                if before.is_none() {
                    break;
                }
            }
            assert!(
                read.iter().eq((0..1000).rev().map(|number| number.to_string()).collect::<Vec<_>>().iter())
            );
        }
    }
}
