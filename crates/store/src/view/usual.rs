//! The usual shapes of a message, read in one pass.
//!
//! Reading an entry level by level looks at every long text once per level. Nearly all entries are what they should be;
//! whatever is odd about one is an error here, and the tolerant reader takes it from the beginning.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::block::{Block, ToolResult, ToolUse};
use super::json::Text;
use super::{Message, Role, speaker};

/// Returns the entry's message, or `None` if the entry is unusual in any way.
pub(super) fn message(json: &str) -> Option<Message<'_>> {
    let Strict(entry) = serde_json::from_str::<Strict<Entry<'_>>>(json).ok()?;
    let flat = entry.role.is_some();
    let (role, content, calls, model) = match entry.message {
        None if flat && entry.tool_call_id.is_none() => (entry.role, entry.content, entry.tool_calls, None),
        Some(Strict(body)) if !flat && body.tool_call_id.is_none() => {
            (body.role, body.content, body.tool_calls, body.model)
        }
        _ => return None,
    };
    let kind = entry.kind.map(Text::into_inner);
    let role = speaker(flat, kind, role.map(|role| Role::named(role.into_inner())))?;
    let mut blocks = content?.0;
    blocks.extend(calls.into_iter().flat_map(Block::all_of_calls));
    Some(Message {
        role,
        blocks,
        uuid: entry.uuid.map(Text::into_inner),
        parent_uuid: entry.parent_uuid.map(Text::into_inner),
        timestamp: entry.timestamp.map(Text::into_inner),
        model: model.or(entry.model).map(Text::into_inner),
    })
}

#[derive(serde::Deserialize)]
struct Entry<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow, rename = "parentUuid")]
    parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Strict<Body<'a>>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
}

#[derive(serde::Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    role: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_call_id: Option<&'a RawValue>,
}

/// A type that is read from an object only; a derived reader would take an array of its members too.
struct Strict<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Strict<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(StrictVisitor(PhantomData))
    }
}

struct StrictVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for StrictVisitor<T> {
    type Value = Strict<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Self::Value, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members)).map(Strict)
    }
}

/// A text, or an array of blocks.
struct Content<'a>(Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or an array of blocks")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Content(vec![Block::Text(Text::borrowed(bytes).into_inner())]))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Content(vec![Block::Text(Text::copied(bytes).into_inner())]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(Strict(element)) = elements.next_element::<Strict<Members<'de>>>()? {
            blocks.push(element.into_block().ok_or_else(|| Error::custom("an unusual block"))?);
        }
        Ok(Content(blocks))
    }
}

/// Everything that a block of a known type may have.
#[derive(serde::Deserialize)]
struct Members<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    name: Option<Text<'a>>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    is_error: Option<&'a RawValue>,
}

impl<'a> Members<'a> {
    fn into_block(self) -> Option<Block<'a>> {
        let text = |text: Option<Text<'a>>| text.map(Text::into_inner);
        Some(match &*self.kind.into_inner() {
            "text" => Block::Text(text(self.text)?),
            "thinking" => Block::Thinking { thinking: text(self.thinking)?, signature: text(self.signature) },
            "tool_use" => Block::ToolUse(ToolUse {
                id: text(self.id)?,
                name: text(self.name)?,
                input: Cow::Borrowed(self.input.unwrap_or(RawValue::NULL)),
            }),
            "tool_result" => {
                Block::ToolResult(ToolResult::new(text(self.tool_use_id)?, self.content, self.is_error))
            }
            // An image is handed out as it stands, and so is what nobody knows.
            _ => return None,
        })
    }
}
