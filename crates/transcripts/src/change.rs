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

/// How many characters of a name are kept, as Claude Code does.
const LONGEST_NAME: usize = 200;

/// Where a session belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shelf {
    /// Put away.
    Archive,
    /// Among the others.
    List,
}

impl ClaudeFolder {
    /// Gives a session a name, as Claude Code's own `/rename` does: entries for the session and for who works on it,
    /// and a file beside the transcript. It is one line of at most 200 characters; what is more is cut off. Returns the
    /// name that it has now.
    pub fn rename(&self, session: &str, name: &str) -> Result<String> {
        let name = title(name)?;
        let path = self.find(session)?;
        let (folder, file) = self.place(&path)?;
        // Both or neither: opened first, written to last.
        let opened = folder.append(file)?;
        name_beside(&folder, session, &name)?;
        append(opened, &path, naming(session, &name).join("\n").as_bytes())?;
        Ok(name)
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

/// Returns a name as Claude Code would write it, if anything is left of it.
pub(crate) fn title(name: &str) -> Result<String> {
    let name = titled(name);
    if name.is_empty() {
        let rule = "it must not be blank";
        return Err(Error::BadName { what: "name", text: name, rule });
    }
    Ok(name)
}

/// Returns the entries that give a session a name.
pub(crate) fn naming(session: &str, name: &str) -> [String; 2] {
    [
        json!({ "type": "custom-title", "customTitle": name, "sessionId": session }).to_string(),
        json!({ "type": "agent-name", "agentName": name, "sessionId": session }).to_string(),
    ]
}

/// Writes a name beside a transcript.
pub(crate) fn name_beside(folder: &Folder, session: &str, name: &str) -> Result<()> {
    write_beside(folder, session, "custom-title.json", &json!({ "customTitle": name }))
}

/// Returns a name as Claude Code would write it: what nobody sees is a space, and nothing goes on for ever.
pub(crate) fn titled(name: &str) -> String {
    let mut title = String::with_capacity(name.len());
    let mut was_seen = true;
    for letter in name.trim().chars() {
        let is_seen = !is_invisible(letter);
        if is_seen || was_seen {
            title.push(if is_seen { letter } else { ' ' });
        }
        was_seen = is_seen;
    }
    let title: String = title.chars().take(LONGEST_NAME).collect();
    title.trim().to_owned()
}

/// Returns whether a character only says how others are to be shown, or ends a line: those of Unicode's categories Cc, Cf,
/// Zl and Zp.
fn is_invisible(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}'
            | '\u{8e2}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}')
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
