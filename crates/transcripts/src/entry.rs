//! One line of a transcript, as it stands there, and what it says.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::chain::Link;
use crate::message::{Block, Role};
use crate::node::{Kind, Marks, Span};
use crate::object::Object;
use crate::text::lossy;

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

    /// Returns its members, decoded as far as they are asked for.
    pub fn view(&self) -> View<'a> {
        let json = lossy(self.raw);
        View { json, link: self.link }
    }
}

/// An entry's members.
#[derive(Clone, Debug)]
pub struct View<'a> {
    json: Cow<'a, str>,
    link: Link,
}

impl View<'_> {
    /// Returns the text of a member of the entry.
    pub fn text(&self, name: &str) -> Option<String> {
        Object::of(&self.json)?.string(name).map(Cow::into_owned)
    }

    /// Returns its id; of a prompt that came while a turn ran, the id it was sent under.
    pub fn uuid(&self) -> Option<String> {
        if self.link.marks.has(Marks::QUEUED) {
            let source = Object::of(&self.json)?.object("attachment")?.string("source_uuid");
            return source.map(Cow::into_owned).or_else(|| self.text("uuid"));
        }
        self.text("uuid")
    }

    /// Returns the blocks of its content; a text is one block.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        self.content().map(Block::all_of).unwrap_or_default()
    }

    /// Returns its content as it stands: a text, or an array of blocks.
    pub fn content(&self) -> Option<&RawValue> {
        let object = Object::of(&self.json)?;
        if self.link.marks.has(Marks::QUEUED) {
            return object.object("attachment")?.get("prompt");
        }
        match object.object("message") {
            Some(message) => message.get("content"),
            None => object.get("content"),
        }
    }
}
