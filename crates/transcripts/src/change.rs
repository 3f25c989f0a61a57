//! What changes a session, each asked for by name: its name, its tag, whether it is put away.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::claude_folder::ClaudeFolder;
use crate::error::{Error, Result};
use crate::folder::Folder;

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
        let (folder, file) = self.place(&path)?;
        // Both or neither: opened first, written to last.
        let opened = folder.append(file)?;
        write_beside(&folder, session, "custom-title.json", &json!({ "customTitle": name }))?;
        let entry = json!({ "type": "custom-title", "customTitle": name, "sessionId": session });
        append(opened, &path, entry.to_string().as_bytes())
    }

    /// Gives a session a tag, or takes it off.
    pub fn tag(&self, session: &str, tag: Option<&str>) -> Result<()> {
        let path = self.find(session)?;
        let (folder, file) = self.place(&path)?;
        let tag = tag.unwrap_or_default().trim();
        let entry = json!({ "type": "tag", "tag": tag, "sessionId": session });
        append(folder.append(file)?, &path, entry.to_string().as_bytes())
    }

    /// Puts a session away, or takes it out again.
    pub fn archive(&self, session: &str, shelf: Shelf) -> Result<()> {
        let path = self.find(session)?;
        let at = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string();
        let note = json!({ "archived": shelf == Shelf::Archive, "at": at, "by": "rethread" });
        write_beside(&self.place(&path)?.0, session, "archived.json", &note)
    }
}

/// Appends lines with one call, as Claude Code does, so that they never land within another's.
pub(crate) fn append(mut file: File, path: &Path, lines: &[u8]) -> Result<()> {
    let fail = |error| Error::io("append to", path)(error);
    let begins = if ends_within_a_line(&file).map_err(fail)? { &b"\n"[..] } else { b"" };
    file.write_all(&[begins, lines, b"\n"].concat()).map_err(fail)
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
fn write_beside(folder: &Folder, session: &str, name: &str, content: &Value) -> Result<()> {
    folder.made_folder(session)?.replace(name, content.to_string().as_bytes())
}
