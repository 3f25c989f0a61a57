//! The usual shapes of a message, read in one pass.
//!
//! Reading an entry level by level looks at every long text once per level. Nearly all entries are what they should be;
//! whatever is odd about one is `None` here, and the tolerant reader takes it from the beginning.

use std::borrow::Cow;

use rethread_plain_json::{PlainJson, once};
use serde_json::value::RawValue;

use super::block::{Block, ToolResult, ToolUse};
use super::{Message, Role, speaker};

/// What a member is: nothing if it is not there, or `null`.
type Member<T> = Option<Option<T>>;

/// Returns the entry's message, or `None` if the entry is unusual in any way.
pub(super) fn message(entry: &[u8]) -> Option<Message<'_>> {
    let mut json = PlainJson::of(entry)?;
    let entry = Entry::of(&mut json).filter(|_| json.is_over())?;
    let flat = entry.body.role.flatten();
    let (flat, role, Body { content, tool_calls, tool_call_id, model, .. }) = match entry.message.flatten() {
        None => (true, Some(flat?), Body { role: None, model: None, ..entry.body }),
        Some(body) if flat.is_none() => (false, body.role.clone().flatten(), body),
        Some(_) => return None,
    };
    if tool_call_id.flatten().is_some() {
        return None;
    }
    let role = speaker(flat, entry.kind.flatten(), role.map(Role::named))?;
    let mut blocks = content.flatten()?;
    blocks.extend(tool_calls.flatten().into_iter().flat_map(Block::all_of_calls));
    Some(Message {
        role,
        blocks,
        uuid: entry.uuid.flatten(),
        parent_uuid: entry.parent_uuid.flatten(),
        timestamp: entry.timestamp.flatten(),
        model: model.flatten().or(entry.model.flatten()),
    })
}

/// What stands in an entry itself.
#[derive(Default)]
struct Entry<'a> {
    kind: Member<Cow<'a, str>>,
    uuid: Member<Cow<'a, str>>,
    parent_uuid: Member<Cow<'a, str>>,
    timestamp: Member<Cow<'a, str>>,
    model: Member<Cow<'a, str>>,
    message: Member<Body<'a>>,
    /// Of the flat shape.
    body: Body<'a>,
}

/// What stands in a message, be it the entry itself or within it.
#[derive(Default)]
struct Body<'a> {
    role: Member<Cow<'a, str>>,
    model: Member<Cow<'a, str>>,
    content: Member<Vec<Block<'a>>>,
    tool_calls: Member<&'a RawValue>,
    tool_call_id: Member<&'a RawValue>,
}

impl<'a> Entry<'a> {
    fn of(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut entry = Self::default();
        json.object(|json, name| match name {
            b"type" => once(&mut entry.kind, text(json)?),
            b"uuid" => once(&mut entry.uuid, text(json)?),
            b"parentUuid" => once(&mut entry.parent_uuid, text(json)?),
            b"timestamp" => once(&mut entry.timestamp, text(json)?),
            b"model" => once(&mut entry.model, text(json)?),
            b"message" => once(&mut entry.message, or_null(json, Body::of)?),
            _ => entry.body.take(json, name),
        })?;
        Some(entry)
    }
}

impl<'a> Body<'a> {
    fn of(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut body = Self::default();
        json.object(|json, name| match name {
            b"model" => once(&mut body.model, text(json)?),
            _ => body.take(json, name),
        })?;
        Some(body)
    }

    /// Takes a member that a message has wherever it stands.
    fn take(&mut self, json: &mut PlainJson<'a>, name: &[u8]) -> Option<()> {
        match name {
            b"role" => once(&mut self.role, text(json)?),
            b"content" => once(&mut self.content, or_null(json, content)?),
            b"tool_calls" => once(&mut self.tool_calls, raw(json)?),
            b"tool_call_id" => once(&mut self.tool_call_id, raw(json)?),
            _ => json.skip(),
        }
    }
}

/// Everything that a block of a known type may have.
#[derive(Default)]
struct Members<'a> {
    kind: Member<Cow<'a, str>>,
    text: Member<Cow<'a, str>>,
    thinking: Member<Cow<'a, str>>,
    signature: Member<Cow<'a, str>>,
    id: Member<Cow<'a, str>>,
    name: Member<Cow<'a, str>>,
    input: Member<&'a RawValue>,
    tool_use_id: Member<Cow<'a, str>>,
    content: Member<&'a RawValue>,
    is_error: Member<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn of(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut block = Self::default();
        json.object(|json, name| match name {
            b"type" => once(&mut block.kind, text(json)?),
            b"text" => once(&mut block.text, text(json)?),
            b"thinking" => once(&mut block.thinking, text(json)?),
            b"signature" => once(&mut block.signature, text(json)?),
            b"id" => once(&mut block.id, text(json)?),
            b"name" => once(&mut block.name, text(json)?),
            b"input" => once(&mut block.input, raw(json)?),
            b"tool_use_id" => once(&mut block.tool_use_id, text(json)?),
            b"content" => once(&mut block.content, raw(json)?),
            b"is_error" => once(&mut block.is_error, raw(json)?),
            _ => json.skip(),
        })?;
        Some(block)
    }

    fn into_block(self) -> Option<Block<'a>> {
        Some(match &*self.kind.flatten()? {
            "text" => Block::Text(self.text.flatten()?),
            "thinking" => {
                Block::Thinking { thinking: self.thinking.flatten()?, signature: self.signature.flatten() }
            }
            "tool_use" => Block::ToolUse(ToolUse {
                id: self.id.flatten()?,
                name: self.name.flatten()?,
                input: Cow::Borrowed(self.input.flatten().unwrap_or(RawValue::NULL)),
            }),
            "tool_result" => Block::ToolResult(ToolResult::new(
                self.tool_use_id.flatten()?,
                self.content.flatten(),
                self.is_error.flatten(),
            )),
            // An image is handed out as it stands, and so is what nobody knows.
            _ => return None,
        })
    }
}

/// Takes a text, or an array of blocks.
fn content<'a>(json: &mut PlainJson<'a>) -> Option<Vec<Block<'a>>> {
    if json.first()? == b'"' {
        return Some(vec![Block::Text(json.text()?)]);
    }
    let mut blocks = Vec::new();
    json.array(|json| {
        blocks.push(Members::of(json)?.into_block()?);
        Some(())
    })?;
    Some(blocks)
}

fn text<'a>(json: &mut PlainJson<'a>) -> Option<Option<Cow<'a, str>>> {
    or_null(json, PlainJson::text)
}

fn raw<'a>(json: &mut PlainJson<'a>) -> Option<Option<&'a RawValue>> {
    or_null(json, PlainJson::raw)
}

fn or_null<'a, T>(
    json: &mut PlainJson<'a>,
    take: impl FnOnce(&mut PlainJson<'a>) -> Option<T>,
) -> Option<Option<T>> {
    match json.null() {
        Some(()) => Some(None),
        None => take(json).map(Some),
    }
}
