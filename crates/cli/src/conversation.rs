//! A conversation as a person reads it: who spoke, what they said, one line for each tool.

use rethread_store::view::{Block, Message};
use rethread_store::{Entry, EntryId, Record, SessionId};

use crate::text::one_line;
use crate::ui::Tone;

/// Turns entries into lines, one after the other.
#[derive(Debug)]
pub(crate) struct Conversation {
    width: usize,
    last: Option<Record>,
}

impl Conversation {
    /// Prepares to show entries, cutting what should be one line at `width`. Their ids are shown whole: what is short
    /// among the entries shown may be ambiguous in the session.
    pub(crate) fn new(width: usize) -> Self {
        Self { width, last: None }
    }

    /// Returns the session that the entries before came from, if the next one is of another.
    pub(crate) fn leaves(&self, next: &Record) -> Option<&SessionId> {
        self.last.as_ref().map(|last| &last.session).filter(|session| **session != next.session)
    }

    /// Returns the lines of the next entry.
    pub(crate) fn next(&mut self, record: &Record) -> Vec<(Tone, String)> {
        let mut lines = Vec::new();
        if self.last.is_some() {
            lines.push((Tone::Plain, String::new()));
        }
        self.entry(&record.entry, &mut lines);
        self.last = Some(record.clone());
        lines
    }

    /// Returns the lines of the next entry of any branch, with the entry it follows unless that came just before.
    pub(crate) fn next_of_any_branch(
        &mut self,
        record: &Record,
        parent: Option<&EntryId>,
        is_active: bool,
    ) -> Vec<(Tone, String)> {
        let mut marks = Vec::new();
        if self.last.as_ref().map(|last| last.entry.id()) != parent {
            marks.push(match parent {
                Some(parent) => format!("after {parent}"),
                None => "a new beginning".into(),
            });
        }
        if !is_active {
            marks.push("not on the active branch".into());
        }
        let mark = (!marks.is_empty()).then(|| (Tone::Faint, format!("-- {} --", marks.join(", "))));
        let before = usize::from(self.last.is_some());
        let mut lines = self.next(record);
        lines.splice(before..before, mark);
        lines
    }

    /// Returns the lines of a message that is in no store, with an empty one before it.
    pub(crate) fn foreign(&self, id: &str, bytes: &[u8]) -> Vec<(Tone, String)> {
        let mut lines = vec![(Tone::Plain, String::new())];
        self.message(id, bytes, &mut lines);
        lines
    }

    fn entry(&self, entry: &Entry, lines: &mut Vec<(Tone, String)>) {
        self.message(entry.id().as_str(), entry.as_bytes(), lines);
    }

    fn message(&self, id: &str, bytes: &[u8], lines: &mut Vec<(Tone, String)>) {
        let Some(message) = Message::of(bytes) else {
            lines.push((Tone::Faint, format!("[{}]  {id}", kind_of(bytes))));
            return;
        };
        lines.push((Tone::Strong, format!("{}  {id}", one_line(message.role.as_str(), 40))));
        for block in &message.blocks {
            self.block(block, lines);
        }
    }

    fn block(&self, block: &Block<'_>, lines: &mut Vec<(Tone, String)>) {
        let cut = |text: &str| one_line(text, self.width.saturating_sub(2));
        match block {
            Block::Text(text) => {
                lines.extend(text.trim_end().lines().map(|line| (Tone::Plain, format!("  {line}"))));
            }
            Block::Thinking { thinking, .. } => {
                let thought = one_line(thinking, self.width.saturating_sub(13));
                lines.push((Tone::Faint, format!("  (thinks) {thought}").trim_end().to_owned()));
            }
            Block::ToolUse(tool) => {
                lines.push((
                    Tone::Plain,
                    format!("  {}", cut(&format!("> {} {}", tool.name, tool.input.get()))),
                ));
            }
            Block::ToolResult(result) => {
                let text = result.text();
                let count = match text.lines().count() {
                    0 | 1 => String::new(),
                    count => format!("({count} lines) "),
                };
                let failed = if result.is_error { "failed: " } else { "" };
                lines.push((Tone::Faint, format!("  {}", cut(&format!("< {failed}{count}{text}")))));
            }
            Block::Image(_) => lines.push((Tone::Faint, "  [image]".into())),
            Block::Other(value) => {
                let kind = serde_json::from_str(value.get()).ok().and_then(|value| kind_in(&value));
                let kind = kind.unwrap_or_else(|| one_line(value.get(), 40));
                lines.push((Tone::Faint, format!("  [{kind}]")));
            }
            _ => {}
        }
    }
}

/// Returns what an entry that is no message says it is.
fn kind_of(bytes: &[u8]) -> String {
    let kind = serde_json::from_slice(bytes).ok().and_then(|value| kind_in(&value));
    kind.unwrap_or_else(|| "entry".into())
}

fn kind_in(value: &serde_json::Value) -> Option<String> {
    let text = |name: &str| value.get(name).and_then(|value| value.as_str()).map(|text| one_line(text, 40));
    let kind = text("type")?;
    Some(match text("subtype") {
        Some(subtype) => format!("{kind} {subtype}"),
        None => kind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(entry: &str) -> Vec<String> {
        let entry = Entry::parse(entry.to_owned()).unwrap();
        let session: SessionId = "s".parse().unwrap();
        let record = Record { entry, session, position: 1, depth: 1 };
        let mut conversation = Conversation::new(40);
        conversation.next(&record).into_iter().map(|(_, line)| line).collect()
    }

    #[test]
    fn a_message_is_its_role_its_text_and_a_line_for_each_tool() {
        let entry =
            r#"{"uuid":"u1","role":"assistant","content":[{"type":"text","text":"Let me look.\nNow."},
            {"type":"thinking","thinking":"where\nis it"},
            {"type":"tool_use","id":"c","name":"Read","input":{"path":"src/a/very/long/path.rs"}},
            {"type":"tool_result","tool_use_id":"c","content":"one\ntwo","is_error":true},
            {"type":"image","source":{}},{"type":"server_tool_use","id":7}]}"#
                .replace('\n', "");
        let expected = [
            "assistant  u1",
            "  Let me look.",
            "  Now.",
            "  (thinks) where is it",
            r#"  > Read {"path":"src/a/very/long/path.…"#,
            "  < failed: (2 lines) one two",
            "  [image]",
            "  [server_tool_use]",
        ];
        assert_eq!(lines_of(&entry), expected);
    }

    #[test]
    fn what_is_no_message_is_one_line_of_its_type() {
        assert_eq!(lines_of(r#"{"uuid":"u","type":"summary","summary":"x"}"#), ["[summary]  u"]);
        assert_eq!(lines_of(r#"{"uuid":"u","x":1}"#), ["[entry]  u"]);
        let entry = r#"{"uuid":"u","type":"system","subtype":"init"}"#;
        assert_eq!(lines_of(entry), ["[system init]  u"]);
    }
}
