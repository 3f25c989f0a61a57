//! One line of a transcript, as it stands there, and what it says.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::blocks::Blocks;
use crate::chain::Link;
use crate::envelope::{Envelope, Strict};
use crate::message::{Block, Role};
use crate::node::{Kind, Marks, Node, Span};
use crate::object::Object;
use crate::text::{Text, lossy};
use rethread_plain_json::{PlainJson, once};

/// One entry, byte for byte. Typed views are made when they are asked for.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    raw: &'a [u8],
    link: Link,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(raw: &'a [u8], link: Link) -> Self {
        Self { raw, link }
    }

    /// Looks at a line that a [`Watch`](crate::Watch) delivered; `None` if it is no part of a conversation.
    pub fn of(raw: &'a [u8], span: Span) -> Option<Self> {
        let node = Node::of(&Envelope::of(raw)?, span)?;
        Some(Self::new(raw, Link::from(&node)))
    }

    /// Returns the line as it stands in the file, without its newline.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns where it stands.
    pub fn span(&self) -> Span {
        self.link.span
    }

    /// Returns who speaks: whoever it is in a message, else the program.
    pub fn role(&self) -> Role {
        match self.link.kind {
            Kind::User => Role::User,
            Kind::Assistant => Role::Assistant,
            Kind::Attachment if self.link.marks.has(Marks::QUEUED) => Role::User,
            Kind::Attachment | Kind::System | Kind::Progress => Role::System,
        }
    }

    /// Returns whether a person reading the conversation would want to see it.
    pub fn is_message(&self) -> bool {
        self.link.is_message()
    }

    /// Returns whether it brings the result of a tool.
    pub fn is_tool_result(&self) -> bool {
        self.link.marks.has(Marks::RESULT)
    }

    /// Returns whether no model and no person said it: API errors, and what closes an interrupted turn.
    pub fn is_synthetic(&self) -> bool {
        self.link.marks.has(Marks::SYNTHETIC)
    }

    /// Returns whether it is the summary that stands for what was compacted.
    pub fn is_summary(&self) -> bool {
        self.link.marks.has(Marks::SUMMARY)
    }

    /// Returns whether the conversation was compacted here.
    pub fn is_boundary(&self) -> bool {
        self.link.marks.has(Marks::BOUNDARY)
    }

    /// Returns what it says. Members of unexpected types count as missing.
    pub fn view(&self) -> View<'a> {
        let usual: Result<Strict<Usual<'a>>, _> = serde_json::from_slice(self.raw);
        match usual {
            Ok(Strict(usual)) => View::of_usual(usual, self.link),
            Err(_) => View::of_odd(&lossy(self.raw), self.link).unwrap_or_default(),
        }
    }

    /// Returns what it says with its blocks, all in one pass.
    pub fn typed(&self) -> Typed<'a> {
        let is_usual = !self.link.marks.has(Marks::QUEUED);
        let line =
            is_usual.then(|| TypedLine::of_plain(self.raw).or_else(|| TypedLine::of(self.raw))).flatten();
        line.and_then(TypedLine::typed).unwrap_or_else(|| Typed::of_odd(self.view()))
    }

    /// Returns the text of any member of the entry.
    pub fn text(&self, name: &str) -> Option<String> {
        Object::of(&lossy(self.raw))?.string(name).map(Cow::into_owned)
    }
}

/// What an entry says. Its content is JSON, held as such or as the text that it stands in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct View<'a, C = Cow<'a, RawValue>> {
    /// Its id; of a prompt that came while a turn ran, the id it was sent under.
    pub uuid: Option<Cow<'a, str>>,
    /// When it was written.
    pub timestamp: Option<Cow<'a, str>>,
    /// The model that said it.
    pub model: Option<Cow<'a, str>>,
    /// What it follows.
    pub parent_uuid: Option<Cow<'a, str>>,
    /// The API message that it is a part of.
    pub message_id: Option<Cow<'a, str>>,
    /// The subagent that said it.
    pub agent_id: Option<Cow<'a, str>>,
    /// What is said, as it stands: a text, or an array of blocks.
    pub content: Option<C>,
}

impl<C> Default for View<'_, C> {
    fn default() -> Self {
        Self {
            uuid: None,
            timestamp: None,
            model: None,
            parent_uuid: None,
            message_id: None,
            agent_id: None,
            content: None,
        }
    }
}

impl<'a> View<'a> {
    /// Returns the same with its content as text.
    pub fn into_text(self) -> View<'a, Cow<'a, str>> {
        let View { uuid, timestamp, model, parent_uuid, message_id, agent_id, content } = self;
        let content = content.map(|content| match content {
            Cow::Borrowed(content) => Cow::Borrowed(content.get()),
            Cow::Owned(content) => Cow::Owned(Box::<str>::from(content).into()),
        });
        View { uuid, timestamp, model, parent_uuid, message_id, agent_id, content }
    }

    /// Returns the blocks of its content; a text is one block.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        self.content.as_deref().map(Block::all_of).unwrap_or_default()
    }
}

/// What an entry says, with its blocks.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Typed<'a> {
    /// Its id.
    pub uuid: Option<Cow<'a, str>>,
    /// When it was written.
    pub timestamp: Option<Cow<'a, str>>,
    /// The model that said it.
    pub model: Option<Cow<'a, str>>,
    /// The blocks of its content; a text is one block.
    pub blocks: Vec<Block<'a>>,
}

impl<'a> Typed<'a> {
    fn of_odd(view: View<'a>) -> Self {
        let View { uuid, timestamp, model, content, .. } = view;
        let blocks = match content {
            Some(Cow::Borrowed(content)) => Block::all_of(content),
            Some(Cow::Owned(content)) => Block::all_of(&content).into_iter().map(Block::into_owned).collect(),
            None => Vec::new(),
        };
        Self { uuid, timestamp, model, blocks }
    }
}

#[derive(Default, Deserialize)]
struct TypedLine<'a> {
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Strict<TypedBody<'a>>>,
}

#[derive(Default, Deserialize)]
struct TypedBody<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Blocks<'a>>,
}

impl<'a> TypedLine<'a> {
    fn of(raw: &'a [u8]) -> Option<Self> {
        serde_json::from_slice::<Strict<Self>>(raw).ok().map(|Strict(line)| line)
    }

    /// Returns the same, sooner, if there is nothing about the line that has to be looked at twice.
    fn of_plain(raw: &'a [u8]) -> Option<Self> {
        let (mut json, mut line) = (PlainJson::of(raw)?, Self::default());
        json.object(|json, name| match name {
            b"uuid" => once(&mut line.uuid, Text::of_plain(json)?),
            b"timestamp" => once(&mut line.timestamp, Text::of_plain(json)?),
            b"message" => once(&mut line.message, Strict(TypedBody::of_plain(json)?)),
            _ => json.skip(),
        })?;
        json.is_over().then_some(line)
    }

    fn typed(self) -> Option<Typed<'a>> {
        let text = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        let Strict(body) = self.message?;
        Some(Typed {
            uuid: text(self.uuid),
            timestamp: text(self.timestamp),
            model: text(body.model),
            blocks: body.content.map(|Blocks(it)| it).unwrap_or_default(),
        })
    }
}

impl<'a> TypedBody<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut body = Self::default();
        json.object(|json, name| match name {
            b"model" => once(&mut body.model, Text::of_plain(json)?),
            b"content" => once(&mut body.content, Blocks::of_plain(json)?),
            _ => json.skip(),
        })?;
        Some(body)
    }
}

/// An entry as nearly all are, read in one pass.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usual<'a> {
    #[serde(borrow)]
    parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Strict<UsualBody<'a>>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    attachment: Option<&'a RawValue>,
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

impl<'a> View<'a> {
    fn of_usual(usual: Usual<'a>, link: Link) -> Self {
        let text = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        let timestamp = text(usual.timestamp);
        let (parent_uuid, agent_id) = (text(usual.parent_uuid), text(usual.agent_id));
        if link.marks.has(Marks::QUEUED)
            && let Some(queued) = usual.attachment.and_then(|it| Object::of(it.get()))
        {
            let uuid = queued.string("source_uuid").or(text(usual.uuid));
            let content = queued.get("prompt").map(Cow::Borrowed);
            return Self { uuid, timestamp, parent_uuid, agent_id, content, ..Self::default() };
        }
        let (model, message_id, content) = match usual.message {
            Some(Strict(body)) => (text(body.model), text(body.id), body.content),
            None => (None, None, usual.content),
        };
        let (uuid, content) = (text(usual.uuid), content.map(Cow::Borrowed));
        Self { uuid, timestamp, model, parent_uuid, message_id, agent_id, content }
    }

    fn of_odd(json: &str, link: Link) -> Option<Self> {
        let entry = Object::of(json)?;
        let text = |it: Option<Cow<'_, str>>| it.map(|it| Cow::Owned(it.into_owned()));
        let queued = entry.object("attachment").filter(|_| link.marks.has(Marks::QUEUED));
        let (body, name) = match (&queued, entry.object("message")) {
            (Some(_), _) => (queued, "prompt"),
            (None, message) => (message, "content"),
        };
        let body = body.as_ref().unwrap_or(&entry);
        Some(Self {
            uuid: text(body.string("source_uuid").or_else(|| entry.string("uuid"))),
            timestamp: text(entry.string("timestamp")),
            model: text(body.string("model")),
            parent_uuid: text(entry.string("parentUuid")),
            message_id: text(entry.object("message").and_then(|message| message.string("id"))),
            agent_id: text(entry.string("agentId")),
            content: body.get(name).map(|content| Cow::Owned(content.to_owned())),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Checks that a line which is read by hand says what serde reads.
    pub(crate) fn is_typed_alike(raw: &[u8]) {
        let Some(plain) = TypedLine::of_plain(raw) else { return };
        let read = |line: TypedLine<'_>| format!("{:?}", line.typed());
        assert_eq!(Some(read(plain)), TypedLine::of(raw).map(read), "{}", raw.escape_ascii());
    }
}
