//! A message as clients see it: one line of a transcript, or what the stream said before there was one.

use rethread_transcripts::{Entry, Role, Span};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// Contents larger than this are not sent in events; the message itself has them.
pub(crate) const LARGE: usize = 256 << 10;

/// One part of a conversation. Parts of one API message share their `message_id`.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct MessageItem {
    /// Its id; the same on the stream and on disk.
    pub uuid: Option<String>,
    /// What it follows.
    pub parent_uuid: Option<String>,
    /// The API message that it is a part of.
    pub message_id: Option<String>,
    /// Who speaks: `user`, `assistant`, `system`, `tool`, ….
    pub role: String,
    /// What it is: `prompt`, `reply`, `tool_result`, `summary`, `synthetic`, ….
    pub kind: String,
    /// A text, or an array of blocks, as they were written; null if it was left out for its size.
    #[schema(value_type = serde_json::Value)]
    pub content: Option<Box<RawValue>>,
    /// How many bytes of content were left out: the message itself has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub omitted: Option<u64>,
    /// When it was said.
    pub timestamp: Option<String>,
    /// The model that said it.
    pub model: Option<String>,
    /// The subagent that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// Where its line begins in the file, or its position in the log; null as long as it is on neither.
    pub offset: Option<u64>,
    /// Only the stream knows it so far.
    pub provisional: bool,
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

impl MessageItem {
    /// Reads a line of a transcript; `None` if nobody would want to see it.
    pub(crate) fn of_line(raw: &[u8], span: Span) -> Option<Self> {
        let entry = Entry::of(raw, span)?;
        entry.is_message().then(|| Self::of_entry(&entry))
    }

    /// Reads an entry of a transcript.
    pub(crate) fn of_entry(entry: &Entry<'_>) -> Self {
        let view = entry.view();
        let text = |text: Option<std::borrow::Cow<'_, str>>| text.map(std::borrow::Cow::into_owned);
        Self {
            uuid: text(view.uuid),
            parent_uuid: text(view.parent_uuid),
            message_id: text(view.message_id),
            role: entry.role().to_string(),
            kind: kind(entry).into(),
            content: view.content.map(|content| content.into_owned()),
            omitted: None,
            timestamp: text(view.timestamp),
            model: text(view.model),
            agent_id: text(view.agent_id),
            offset: Some(entry.span().offset),
            provisional: false,
        }
    }

    /// Reads an entry of a stored session; `None` if it is no message.
    pub(crate) fn of_stored(bytes: &[u8], id: &str, position: u64) -> Option<Self> {
        let message = rethread_store::view::Message::of(bytes)?;
        let links: Links = serde_json::from_slice(bytes).unwrap_or_default();
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Content<'a> {
            #[serde(borrow)]
            content: Option<&'a RawValue>,
            #[serde(borrow)]
            message: Option<&'a RawValue>,
        }
        let outer: Content<'_> = serde_json::from_slice(bytes).unwrap_or_default();
        let inner: Content<'_> =
            outer.message.and_then(|message| serde_json::from_str(message.get()).ok()).unwrap_or_default();
        let content = outer.content.or(inner.content).map(|content| content.to_owned());
        let role = message.role.as_str().to_owned();
        let kind = match (&*role, message.tool_results().next().is_some()) {
            ("tool", _) | (_, true) => "tool_result",
            ("user", _) => "prompt",
            ("assistant", _) => "reply",
            _ => "system",
        };
        Some(Self {
            uuid: Some(id.to_owned()),
            parent_uuid: links.parent_uuid,
            message_id: links.message.and_then(|message| message.id),
            kind: kind.into(),
            content,
            omitted: None,
            timestamp: message.timestamp.as_ref().map(|at| at.clone().into_owned()),
            model: message.model.as_ref().map(|model| model.clone().into_owned()),
            agent_id: None,
            offset: Some(position),
            provisional: false,
            role,
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
            message: Option<Said<'a>>,
            timestamp: Option<String>,
            parent_tool_use_id: Option<&'a RawValue>,
        }
        #[derive(Deserialize)]
        struct Said<'a> {
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
            uuid: frame.uuid,
            parent_uuid: None,
            message_id: said.id,
            role: frame.kind,
            kind: kind.into(),
            content: Some(content.to_owned()),
            omitted: None,
            timestamp: frame.timestamp,
            model: said.model,
            agent_id: None,
            offset: None,
            provisional: true,
        })
    }

    /// Leaves out content that is too large for an event.
    pub(crate) fn small(mut self) -> Self {
        if let Some(content) = self.content.take_if(|content| content.get().len() > LARGE) {
            self.omitted = Some(content.get().len() as u64);
        }
        self
    }

    /// Returns whether two say the same.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        fn content(item: &MessageItem) -> Option<&str> {
            item.content.as_deref().map(RawValue::get)
        }
        self.role == other.role && content(self) == content(other) && self.omitted == other.omitted
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
