//! A message as clients see it: one line of a transcript, or what the stream said before there was one.

use std::borrow::Cow;

use rethread_transcripts::{Entry, Line, Role, Said, Span};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Contents larger than this are not sent in events; the message itself has them.
pub(crate) const LARGE: usize = 256 << 10;

/// One part of a conversation. Parts of one API message share their `message_id`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageItem<'a> {
    /// Its id; the same on the stream and on disk.
    pub uuid: Option<Cow<'a, str>>,
    /// What it follows.
    pub parent_uuid: Option<Cow<'a, str>>,
    /// The API message that it is a part of.
    pub message_id: Option<Cow<'a, str>>,
    /// Who speaks: `user`, `assistant`, `system`, `tool`, ….
    pub role: Cow<'a, str>,
    /// What it is: `prompt`, `reply`, `tool_result`, `summary`, `synthetic`, ….
    pub kind: Cow<'a, str>,
    /// A text, or an array of blocks, as they were written; null if it was left out for its size.
    #[schema(value_type = serde_json::Value)]
    pub content: Option<Content<'a>>,
    /// How many bytes of content were left out: the message itself has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u64>,
    /// When it was said.
    pub timestamp: Option<Cow<'a, str>>,
    /// The model that said it.
    pub model: Option<Cow<'a, str>>,
    /// The subagent that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    /// Where its line begins in the file, or its position in the log; null as long as it is on neither.
    pub offset: Option<u64>,
    /// Only the stream knows it so far.
    pub provisional: bool,
}

/// What a message says, as it was written: JSON, and known to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content<'a>(Cow<'a, str>);

impl<'a> Content<'a> {
    /// Takes it as it stands.
    pub(crate) fn of(raw: &'a RawValue) -> Self {
        Self(Cow::Borrowed(raw.get()))
    }

    /// Returns it.
    pub fn get(&self) -> &str {
        &self.0
    }

    fn into_owned(self) -> Content<'static> {
        Content(Cow::Owned(self.0.into_owned()))
    }
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Content<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Self(Cow::Owned(Box::<str>::from(raw).into())))
    }
}

/// The members that the typed view leaves out.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Links {
    parent_uuid: Option<String>,
    message: Option<Body>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    id: Option<String>,
}

impl<'a> MessageItem<'a> {
    /// Reads a line of a transcript; `None` if nobody would want to see it.
    pub(crate) fn of_line(raw: &'a [u8], span: Span) -> Option<Self> {
        Self::of_said(Line::of(raw, span)?)
    }

    /// Takes what a line says; `None` if nobody would want to see it.
    pub(crate) fn of_said(line: Line<'a>) -> Option<Self> {
        let (entry, said) = line.said()?;
        entry.is_message().then(|| Self::of_parts(&entry, said))
    }

    /// Reads an entry of a transcript.
    pub(crate) fn of_entry(entry: &Entry<'a>) -> Self {
        Self::of_parts(entry, entry.view().into_text())
    }

    fn of_parts(entry: &Entry<'a>, said: Said<'a>) -> Self {
        Self {
            uuid: said.uuid,
            parent_uuid: said.parent_uuid,
            message_id: said.message_id,
            role: match entry.role() {
                Role::User => "user".into(),
                Role::Assistant => "assistant".into(),
                role => role.to_string().into(),
            },
            kind: kind(entry).into(),
            content: said.content.map(Content),
            omitted: None,
            timestamp: said.timestamp,
            model: said.model,
            agent_id: said.agent_id,
            offset: Some(entry.span().offset),
            provisional: false,
        }
    }

    /// Returns it with everything it is made of, so that it can be kept.
    pub(crate) fn into_owned(self) -> MessageItem<'static> {
        let own = |text: Option<Cow<'a, str>>| text.map(|text| Cow::Owned(text.into_owned()));
        MessageItem {
            uuid: own(self.uuid),
            parent_uuid: own(self.parent_uuid),
            message_id: own(self.message_id),
            role: Cow::Owned(self.role.into_owned()),
            kind: Cow::Owned(self.kind.into_owned()),
            content: self.content.map(Content::into_owned),
            omitted: self.omitted,
            timestamp: own(self.timestamp),
            model: own(self.model),
            agent_id: own(self.agent_id),
            offset: self.offset,
            provisional: self.provisional,
        }
    }

    /// Leaves out content that is too large for an event.
    pub(crate) fn small(mut self) -> Self {
        if let Some(content) = self.content.take_if(|content| content.get().len() > LARGE) {
            self.omitted = Some(content.get().len() as u64);
        }
        self
    }

    /// Writes it as JSON, just as [`Serialize`] does: every line that anybody follows comes this way.
    pub(crate) fn write_to(&self, out: &mut Vec<u8>) {
        write_text(out, "{\"uuid\":", self.uuid.as_deref());
        write_text(out, ",\"parent_uuid\":", self.parent_uuid.as_deref());
        write_text(out, ",\"message_id\":", self.message_id.as_deref());
        write_text(out, ",\"role\":", Some(&self.role));
        write_text(out, ",\"kind\":", Some(&self.kind));
        out.extend_from_slice(b",\"content\":");
        out.extend_from_slice(self.content.as_ref().map_or("null", Content::get).as_bytes());
        if self.omitted.is_some() {
            write_number(out, ",\"omitted\":", self.omitted);
        }
        write_text(out, ",\"timestamp\":", self.timestamp.as_deref());
        write_text(out, ",\"model\":", self.model.as_deref());
        if self.agent_id.is_some() {
            write_text(out, ",\"agent_id\":", self.agent_id.as_deref());
        }
        write_number(out, ",\"offset\":", self.offset);
        let provisional: &[u8] =
            if self.provisional { b",\"provisional\":true}" } else { b",\"provisional\":false}" };
        out.extend_from_slice(provisional);
    }

    /// Returns whether two say the same.
    pub(crate) fn says_the_same(&self, other: &MessageItem<'_>) -> bool {
        self.role == other.role && self.content == other.content && self.omitted == other.omitted
    }
}

impl MessageItem<'static> {
    /// Reads an entry of a stored session; `None` if it is no message.
    pub(crate) fn of_stored(bytes: &[u8], id: &str, position: u64) -> Option<Self> {
        let message = rethread_store::view::Message::of(bytes)?;
        let links: Links = serde_json::from_slice(bytes).unwrap_or_default();
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Parts<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            #[serde(borrow)]
            message: Option<&'a RawValue>,
        }
        let outer: Parts<'_> = serde_json::from_slice(bytes).unwrap_or_default();
        let inner: Parts<'_> =
            outer.message.and_then(|message| serde_json::from_str(message.get()).ok()).unwrap_or_default();
        let content = outer.content.or(inner.content).map(|content| Content::of(content).into_owned());
        let role = message.role.as_str().to_owned();
        let kind = match (&*role, message.tool_results().next().is_some()) {
            ("tool", _) | (_, true) => "tool_result",
            ("user", _) => "prompt",
            ("assistant", _) => "reply",
            _ => "system",
        };
        Some(Self {
            uuid: Some(id.to_owned().into()),
            parent_uuid: links.parent_uuid.map(Cow::Owned),
            message_id: links.message.and_then(|message| message.id).map(Cow::Owned),
            kind: kind.into(),
            content,
            omitted: None,
            timestamp: message.timestamp.as_ref().map(|at| at.clone().into_owned().into()),
            model: message.model.as_ref().map(|model| model.clone().into_owned().into()),
            agent_id: None,
            offset: Some(position),
            provisional: false,
            role: role.into(),
        })
    }

    /// Reads a frame that the agent sent before it wrote it down; `None` if it is no message.
    pub(crate) fn of_frame(frame: &[u8]) -> Option<Self> {
        #[derive(Deserialize)]
        struct Frame<'a> {
            #[serde(rename = "type")]
            kind: String,
            uuid: Option<String>,
            #[serde(borrow)]
            message: Option<Body<'a>>,
            timestamp: Option<String>,
            parent_tool_use_id: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Body<'a> {
            id: Option<String>,
            model: Option<String>,
            #[serde(borrow)]
            content: Option<&'a RawValue>,
        }
        let frame: Frame<'_> = serde_json::from_slice(frame).ok()?;
        // What a subagent says is told by its own transcript, under that subagent's id.
        let is_own = frame.parent_tool_use_id.is_none_or(|id| id.get() == "null");
        if !is_own || !matches!(&*frame.kind, "user" | "assistant") {
            return None;
        }
        let said = frame.message?;
        let content = said.content?;
        let is_result = content.get().contains("\"tool_result\"") && content.get().starts_with('[');
        let kind = match (&*frame.kind, is_result) {
            ("user", true) => "tool_result",
            ("user", false) => "prompt",
            _ => "reply",
        };
        Some(Self {
            uuid: frame.uuid.map(Cow::Owned),
            parent_uuid: None,
            message_id: said.id.map(Cow::Owned),
            role: frame.kind.into(),
            kind: kind.into(),
            content: Some(Content::of(content).into_owned()),
            omitted: None,
            timestamp: frame.timestamp.map(Cow::Owned),
            model: said.model.map(Cow::Owned),
            agent_id: None,
            offset: None,
            provisional: true,
        })
    }
}

fn kind(entry: &Entry<'_>) -> &'static str {
    match entry.role() {
        _ if entry.is_summary() => "summary",
        _ if entry.is_tool_result() => "tool_result",
        _ if entry.is_synthetic() => "synthetic",
        Role::User => "prompt",
        Role::Assistant => "reply",
        Role::System => "system",
    }
}

fn write_text(out: &mut Vec<u8>, name: &str, text: Option<&str>) {
    out.extend_from_slice(name.as_bytes());
    let Some(text) = text else { return out.extend_from_slice(b"null") };
    // Nearly all are ids and times. Looking at all bytes is quicker than stopping at the first that matters.
    let is_plain = |plain: bool, byte: &u8| plain & (*byte >= b' ') & (*byte != b'"') & (*byte != b'\\');
    if text.as_bytes().iter().fold(true, is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        return out.push(b'"');
    }
    if serde_json::to_writer(&mut *out, text).is_err() {
        unreachable!("a text can be written to memory");
    }
}

fn write_number(out: &mut Vec<u8>, name: &str, number: Option<u64>) {
    out.extend_from_slice(name.as_bytes());
    match number {
        Some(number) => out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes()),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ways to write one object must not part.
    #[test]
    fn what_is_written_at_once_is_what_serde_writes() {
        let texts = [None, Some(""), Some("id"), Some("\"quoted\\\n\u{1}\u{7f}"), Some("ü 🧵 \u{2028}")];
        for (at, text) in texts.iter().enumerate() {
            for is_small in [false, true] {
                let text = text.map(Cow::Borrowed);
                let content = r#"[{"type":"text","text":"a \u0000 \" b"}]"#.to_owned();
                let item = MessageItem {
                    uuid: text.clone(),
                    parent_uuid: texts[(at + 1) % texts.len()].map(Cow::Borrowed),
                    message_id: text.clone(),
                    role: text.clone().unwrap_or_default(),
                    kind: "reply".into(),
                    content: is_small.then_some(Content(Cow::Owned(content))),
                    omitted: (!is_small).then_some(u64::MAX),
                    timestamp: text.clone(),
                    model: text.clone(),
                    agent_id: text.filter(|_| is_small),
                    offset: is_small.then_some(0),
                    provisional: is_small,
                };
                let mut written = Vec::new();
                item.write_to(&mut written);
                assert_eq!(String::from_utf8(written).unwrap(), serde_json::to_string(&item).unwrap());
            }
        }
    }
}
