//! A line of a transcript, read once for everything that has to be known of it.

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::entry::{Entry, View};
use crate::envelope::{Body, Content, Envelope, Strict};
use crate::node::{Node, Span};
use crate::text::Text;

/// A line that can be read as an entry, and what it says if it is part of a conversation.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    raw: &'a [u8],
    span: Span,
    said: Option<(Entry<'a>, View<'a>)>,
}

impl<'a> Line<'a> {
    /// Reads a line; `None` if it cannot be read as an entry.
    pub fn of(raw: &'a [u8], span: Span) -> Option<Self> {
        // Strings are read as bytes, which lets control characters pass that JSON forbids; such lines are rare.
        let is_plain = !raw.iter().any(|byte| *byte < b' ');
        let usual = is_plain.then(|| serde_json::from_slice::<Strict<Usual<'a>>>(raw).ok()).flatten();
        let said = match usual {
            Some(Strict(usual)) => usual.said(raw, span),
            None => {
                let node = Node::of(&Envelope::of(raw)?, span);
                node.map(|node| Entry::new(raw, (&node).into())).map(|entry| (entry, entry.view()))
            }
        };
        Some(Self { raw, span, said })
    }

    /// Returns the line as it stands in the file, without its newline.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns where it stands.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the entry and what it says, if it is part of a conversation.
    pub fn said(self) -> Option<(Entry<'a>, View<'a>)> {
        self.said
    }
}

/// An entry as nearly all are: what places it in a conversation, and what it says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usual<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_api_error_message: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<Strict<UsualBody<'a>>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
    #[serde(borrow)]
    team_name: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct UsualBody<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

impl<'a> Usual<'a> {
    fn said(self, raw: &'a [u8], span: Span) -> Option<(Entry<'a>, View<'a>)> {
        // What an attachment says is seldom, and somewhere else.
        if self.attachment.is_some() {
            let entry = Entry::of(raw, span)?;
            return Some((entry, entry.view()));
        }
        let body = self.message.as_ref().map(|Strict(body)| Body {
            id: body.id.clone(),
            model: body.model.clone(),
            content: body.content.map(content_of).unwrap_or_default(),
        });
        let envelope = Envelope {
            kind: self.kind,
            subtype: self.subtype,
            uuid: self.uuid.clone(),
            parent_uuid: self.parent_uuid.clone(),
            is_sidechain: self.is_sidechain,
            is_meta: self.is_meta,
            is_api_error_message: self.is_api_error_message,
            is_compact_summary: self.is_compact_summary,
            message: body.map(Strict),
            team_name: self.team_name,
            ..Envelope::default()
        };
        let node = Node::of(&envelope, span)?;
        let text = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        let (model, message_id, content) = match self.message {
            Some(Strict(body)) => (text(body.model), text(body.id), body.content),
            None => (None, None, self.content),
        };
        let view = View {
            uuid: text(self.uuid),
            timestamp: text(self.timestamp),
            model,
            parent_uuid: text(self.parent_uuid),
            message_id,
            agent_id: text(self.agent_id),
            content: content.map(Cow::Borrowed),
        };
        Some((Entry::new(raw, (&node).into()), view))
    }
}

/// Returns what a content is made of. Blocks are only read where the word that matters stands among them.
fn content_of(content: &RawValue) -> Content {
    let json = content.get();
    match json.as_bytes().first() {
        Some(b'"') => Content::Text,
        Some(b'[') if memmem::find(json.as_bytes(), b"tool_result").is_none() => {
            Content::Blocks { has_result: false }
        }
        _ => serde_json::from_str(json).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading once must find what reading for each question finds.
    #[test]
    fn a_line_says_what_its_entry_says_whatever_it_is_made_of() {
        let contents = [
            r#""text""#,
            r#"[{"type":"text","text":"x"}]"#,
            r#"[{"type":"tool_result","content":"x"}]"#,
            r#"[{"type":"text","text":"tool_result"}]"#,
            "[]",
            "[1]",
            "7",
            "null",
            r#"{"type":"text"}"#,
        ];
        let lines = contents.iter().flat_map(|content| {
            ["user", "assistant", "system", "progress", "summary"].into_iter().flat_map(move |kind| {
                [
                    format!(r#"{{"type":"{kind}","uuid":"u","parentUuid":"p","timestamp":"t","message":{{"id":"m","model":"<synthetic>","content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":"u","isMeta":true,"isSidechain":false,"agentId":"a","content":{content}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":7,"message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":"u","uuid":"v","message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","subtype":"compact_boundary","uuid":"\ud83d","timestamp":7,"message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","message":[{content}],"uuid":"u"}}"#),
                    format!(r#"{{"type":"attachment","uuid":"u","attachment":{{"type":"queued_command","source_uuid":"s","prompt":{content}}}}}"#),
                    format!(r#"{{"type":"attachment","uuid":"u","attachment":{content}}}"#),
                    format!("{{\"type\":\"{kind}\",\"uuid\":\"u\u{1}\",\"message\":{{\"content\":{content}}}}}"),
                    format!(r#"{{"type":"{kind}","uuid":"u","message":{{"content":{content}}}"#),
                ]
            })
        });
        let span = Span { offset: 3, length: 9 };
        for line in lines {
            let raw = line.as_bytes();
            let known = Entry::of(raw, span).map(|entry| format!("{:?} {:?}", entry, entry.view()));
            let read = Line::of(raw, span);
            assert_eq!(read.is_some(), Envelope::of(raw).is_some(), "{line}");
            let said = read.and_then(Line::said).map(|(entry, view)| format!("{entry:?} {view:?}"));
            assert_eq!(said, known, "{line}");
        }
    }
}
