//! An entry as a typed struct, read by serde_json alone: what the bare loop makes of a line.
//!
//! It has the members of the store's own view, borrows what it can, and reads each byte once.

use std::borrow::Cow;
use std::fmt;

use rethread_store::view::{Block, Message};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;

#[derive(Deserialize)]
pub(crate) struct TypedEntry<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow, rename = "parentUuid")]
    parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<TypedMessage<'a>>,
    /// Only what the program itself says stands here.
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

#[derive(Deserialize)]
struct TypedMessage<'a> {
    #[serde(borrow)]
    role: Text<'a>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Content<'a>,
}

#[derive(Deserialize)]
struct TypedBlock<'a> {
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
    is_error: Option<bool>,
}

/// An optional `Cow` would never borrow.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

enum Content<'a> {
    Text(Cow<'a, str>),
    Blocks(Vec<TypedBlock<'a>>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("text or blocks")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut elements: S) -> Result<Self::Value, S::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = elements.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}

/// How much an entry says: the same whoever read it, if they read the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Weight(pub(crate) u64);

impl Weight {
    fn add(&mut self, part: &str) {
        self.0 += part.len() as u64;
    }

    fn add_text(&mut self, part: Option<&Text<'_>>) {
        self.add(part.map_or("", |Text(text)| text));
    }

    /// Adds what the store's view shows of an entry.
    pub(crate) fn add_view(&mut self, message: &Message<'_>) {
        for name in
            [&message.uuid, &message.parent_uuid, &message.timestamp, &message.model].into_iter().flatten()
        {
            self.add(name);
        }
        self.add(message.role.as_str());
        for block in &message.blocks {
            match block {
                Block::Text(text) => self.add(text),
                Block::Thinking { thinking, signature } => {
                    self.add(thinking);
                    self.add(signature.as_deref().unwrap_or_default());
                }
                Block::ToolUse(tool) => {
                    [&*tool.id, &*tool.name, tool.input.get()].into_iter().for_each(|part| self.add(part));
                }
                Block::ToolResult(result) => {
                    self.add(&result.tool_use_id);
                    self.add(result.content.get());
                    self.0 += u64::from(result.is_error);
                }
                _ => {}
            }
        }
    }

    /// Adds what a typed entry shows.
    pub(crate) fn add_typed(&mut self, entry: &TypedEntry<'_>) {
        let Some(content) = entry.message.as_ref().map(|message| &message.content).or(entry.content.as_ref())
        else {
            return;
        };
        for name in [&entry.uuid, &entry.parent_uuid, &entry.timestamp] {
            self.add_text(name.as_ref());
        }
        self.add_text(entry.message.as_ref().map_or(entry.kind.as_ref(), |message| Some(&message.role)));
        self.add_text(entry.message.as_ref().and_then(|message| message.model.as_ref()));
        match content {
            Content::Text(text) => self.add(text),
            Content::Blocks(blocks) => blocks.iter().for_each(|block| self.add_block(block)),
        }
    }

    fn add_block(&mut self, block: &TypedBlock<'_>) {
        debug_assert!(!block.kind.0.is_empty());
        for text in
            [&block.text, &block.thinking, &block.signature, &block.id, &block.name, &block.tool_use_id]
        {
            self.add_text(text.as_ref());
        }
        for raw in [block.input, block.content].into_iter().flatten() {
            self.add(raw.get());
        }
        self.0 += u64::from(block.is_error == Some(true));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::Corpus;

    #[test]
    fn the_typed_entry_and_the_view_see_the_same() {
        for line in Corpus::new(3).lines(0..500) {
            let (mut typed, mut view) = (Weight::default(), Weight::default());
            typed.add_typed(&serde_json::from_slice(&line).unwrap());
            Message::of(&line).iter().for_each(|message| view.add_view(message));
            assert_eq!(typed, view, "{}", String::from_utf8_lossy(&line));
        }
    }
}
