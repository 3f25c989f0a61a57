//! The note beside a transcript that says that its session is put away. What a person asks later takes it out again, by
//! the rules of the official SDKs.

use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use jiff::{SignedDuration, Timestamp};
use memchr::memmem;
use serde::Deserialize;
use serde_json::Value;

use crate::claude_folder::Links;
use crate::side_file;
use crate::text::lossy;
use crate::text_flaw::without_lone_surrogates;
use crate::walk::Found;

/// The longest note that the official SDKs believe, in bytes.
const LONGEST: usize = 4096;
/// How much of each end of a transcript they look at.
const END: u64 = 64 << 10;
/// How far the time of a file may be behind that of what was written to it.
const COARSE: SignedDuration = SignedDuration::from_secs(2);

/// When a session was put away.
#[derive(Debug)]
pub(crate) struct ArchiveNote {
    at: Timestamp,
}

impl ArchiveNote {
    /// Reads the note in the folder beside a transcript; `None` if the session is not put away.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        #[derive(Deserialize)]
        struct Note {
            archived: bool,
            at: String,
        }
        let text = side_file::read(&folder.join("archived.json"), Links::Refuse);
        let note: Note = serde_json::from_slice(&text.filter(|text| text.len() <= LONGEST)?).ok()?;
        note.at.parse().ok().filter(|_| note.archived).map(|at| Self { at })
    }

    /// Returns whether nobody asked anything since, as far as the ends of the transcript tell. They are read only if it
    /// was written to since.
    pub(crate) fn holds(&self, found: &Found) -> bool {
        let modified = Timestamp::from_nanosecond(i128::from(found.state.modified));
        let is_untouched = modified.is_ok_and(|modified| {
            modified.checked_add(COARSE).is_ok_and(|latest_written| latest_written < self.at)
        });
        is_untouched || !self.is_outdated(found).unwrap_or(false)
    }

    fn is_outdated(&self, found: &Found) -> io::Result<bool> {
        // Not through a link: whoever lists without following any must not do so here.
        let (file, size) = (found.open(Links::Refuse)?, found.state.size);
        let mut end = vec![0; END.min(size) as usize];
        for offset in [size - end.len() as u64, 0] {
            file.read_exact_at(&mut end, offset)?;
            let mut asked = end.split(|&byte| byte == b'\n').filter_map(asked_at);
            if asked.any(|asked| asked.as_millisecond() > self.at.as_millisecond()) {
                return Ok(true);
            }
            if offset == 0 {
                break;
            }
        }
        Ok(false)
    }
}

/// Returns when a person asked what a line says; `None` if a program did, or if nothing was asked.
fn asked_at(line: &[u8]) -> Option<Timestamp> {
    let has = |word: &str| memmem::find(line, word.as_bytes()).is_some();
    // Nearly all lines end here, unread.
    if !(has("\"user\"") || has("\"queued_command\"")) || has("\"tool_result\"") {
        return None;
    }
    let line: Value = serde_json::from_slice(&without_lone_surrogates(lossy(line).as_bytes())).ok()?;
    let (content, origin) = match line["type"].as_str()? {
        "user" if is_typed(&line) => (&line["message"]["content"], line.get("origin")),
        "attachment" if is_queued(&line) => (&line["attachment"]["prompt"], line["attachment"].get("origin")),
        _ => return None,
    };
    if origin.is_some_and(|origin| origin["kind"] != "human") {
        return None;
    }
    let (texts, has_attachment) = texts_of(content)?;
    let is_said = match origin {
        Some(_) => {
            texts.iter().any(|text| !text.is_empty())
                && !texts.iter().any(|text| text.starts_with("<command-name>"))
        }
        None => texts.iter().any(|text| is_a_persons(text) || text.starts_with("<command-message>")),
    };
    (is_said || has_attachment).then(|| line["timestamp"].as_str()?.parse().ok()).flatten()
}

/// Returns whether nothing about an entry says that a program wrote it.
fn is_typed(line: &Value) -> bool {
    let marks = [
        "isCompactSummary",
        "isSidechain",
        "isVirtual",
        "isVisibleInTranscriptOnly",
        "isMeta",
        "textNotTyped",
        "handedOff",
        "queueSkipAttachments",
    ];
    let origins = ["human", "sdk", "unknown"];
    marks.iter().all(|mark| is_unset(line, mark))
        && ["persist", "wakeupSource", "scheduledTaskId"].iter().all(|mark| line.get(mark).is_none())
        && line["toolUseResult"].is_null()
        && line.get("turnOrigin").is_none_or(|origin| origins.iter().any(|known| origin == known))
}

/// Returns whether an attachment is a prompt that waited for its turn.
fn is_queued(line: &Value) -> bool {
    let attachment = &line["attachment"];
    attachment["type"] == "queued_command"
        && is_unset(line, "isSidechain")
        && is_unset(attachment, "isMeta")
        && attachment.get("commandMode").is_none_or(|mode| mode == "prompt" || mode == "bash")
}

fn is_unset(object: &Value, mark: &str) -> bool {
    object.get(mark).is_none_or(|value| value == false)
}

/// Returns the texts of a prompt, and whether something is attached to it; `None` if it is a tool's result.
fn texts_of(content: &Value) -> Option<(Vec<&str>, bool)> {
    if let Value::String(text) = content {
        return Some((vec![text.trim_start()], false));
    }
    let kinds: Option<Vec<&str>> =
        content.as_array().and_then(|blocks| blocks.iter().map(|block| block["type"].as_str()).collect());
    let (Some(kinds), Some(blocks)) = (kinds, content.as_array()) else { return Some((Vec::new(), false)) };
    if kinds.contains(&"tool_result") {
        return None;
    }
    let texts = blocks.iter().filter_map(|block| block["text"].as_str()).map(str::trim_start).collect();
    Some((texts, kinds.iter().any(|kind| matches!(*kind, "image" | "document"))))
}

/// Returns whether a text that does not say where it came from is a person's: what programs say begins with a tag.
fn is_a_persons(text: &str) -> bool {
    if text.is_empty() || (text.contains("<command-name>") && text.contains("</command-name>")) {
        return false;
    }
    if text.contains("<bash-input>") && text.contains("</bash-input>") {
        return true;
    }
    // What was pasted stands between tags of its own.
    let pasted = text.strip_prefix("<pasted_content id=\"").and_then(|rest| rest.split_once("\">\n"));
    let text = pasted.map_or(text, |(_, text)| text.trim_start());
    !begins_with_a_tag(text) && !text.starts_with("[Request interrupted by user")
}

fn begins_with_a_tag(text: &str) -> bool {
    let Some(name) =
        text.strip_prefix('<').filter(|name| name.starts_with(|it: char| it.is_ascii_lowercase()))
    else {
        return false;
    };
    let rest = name.trim_start_matches(|it: char| it.is_ascii_alphanumeric() || it == '_' || it == '-');
    rest.starts_with(|it: char| it == '>' || it.is_whitespace())
}
