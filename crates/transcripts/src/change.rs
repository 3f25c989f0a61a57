//! What changes a session, each asked for by name: its name, its tag, whether it is put away.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::claude_folder::ClaudeFolder;
use crate::error::{Error, Result};
use crate::session::folder_of;

/// Where a session belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Put away.
    Archive,
    /// Among the others.
    List,
}

impl ClaudeFolder {
    /// Gives a session a name, as Claude Code's own `/rename` does: an entry, and a file beside the transcript.
    pub fn rename(&self, session: &str, name: &str) -> Result<()> {
        let name = name.trim();
        if name.is_empty() {
            let rule = "it must not be blank";
            return Err(Error::BadName { what: "name", text: name.into(), rule });
        }
        let path = self.find(session)?;
        // Both or neither: opened first, written to last.
        let file = open(&path)?;
        write_beside(&path, "custom-title.json", &json!({ "customTitle": name }))?;
        append(file, &path, &json!({ "type": "custom-title", "customTitle": name, "sessionId": session }))
    }

    /// Gives a session a tag, or takes it off.
    pub fn tag(&self, session: &str, tag: Option<&str>) -> Result<()> {
        let path = self.find(session)?;
        let entry = json!({ "type": "tag", "tag": tag.unwrap_or_default().trim(), "sessionId": session });
        append(open(&path)?, &path, &entry)
    }

    /// Puts a session away, or takes it out again.
    pub fn archive(&self, session: &str, shelf: Shelf) -> Result<()> {
        let path = self.find(session)?;
        let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let note = json!({ "archived": shelf == Shelf::Archive, "at": at, "by": "rethread" });
        write_beside(&path, "archived.json", &note)
    }
}

fn open(path: &Path) -> Result<File> {
    OpenOptions::new().read(true).append(true).open(path).map_err(Error::io("append to", path))
}

/// Appends one line with one call, as Claude Code does, so that it never lands within another's.
fn append(mut file: File, path: &Path, entry: &Value) -> Result<()> {
    let fail = |error| Error::io("append to", path)(error);
    let mut line = format!("{entry}\n");
    if ends_within_a_line(&file).map_err(fail)? {
        line.insert(0, '\n');
    }
    file.write_all(line.as_bytes()).map_err(fail)
}

fn ends_within_a_line(file: &File) -> std::io::Result<bool> {
    let length = file.metadata()?.len();
    let mut last = [b'\n'];
    if length > 0 {
        file.read_exact_at(&mut last, length - 1)?;
    }
    Ok(last != *b"\n")
}

/// Replaces a small file in the folder beside a transcript.
fn write_beside(transcript: &Path, name: &str, content: &Value) -> Result<()> {
    let folder = folder_of(transcript);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(Error::io("make", &folder))?;
    let path = folder.join(name);
    let aside = folder.join(format!("{name}.{}", std::process::id()));
    let fail = |error| Error::io("write", &path)(error);
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&aside).map_err(fail)?;
    file.write_all(content.to_string().as_bytes()).map_err(fail)?;
    fs::rename(&aside, &path).map_err(fail)
}
