//! One piece of a message: text, a thought, a tool's use or result, an image, or something unknown.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::json::{Object, elements, string};

/// One piece of a message's content.
///
/// A block that lacks a field its type calls for, or has it as another type, is
/// [`Other`](Block::Other).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Text to read.
    Text(Cow<'a, str>),
    /// What the model thought before it spoke.
    Thinking {
        /// The thought; empty when only its signature was kept.
        thinking: Cow<'a, str>,
        /// The model's proof that the thought is its own.
        signature: Option<Cow<'a, str>>,
    },
    /// The model wants a tool to run.
    ToolUse(ToolUse<'a>),
    /// A tool has run.
    ToolResult(ToolResult<'a>),
    /// An image: the whole block, whichever way it names its source.
    Image(&'a RawValue),
    /// Anything else, as it stands in the entry.
    Other(&'a RawValue),
}

/// A tool call that the model asks for.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolUse<'a> {
    /// The id that the result will name.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// The arguments, `null` when there are none.
    ///
    /// Owned when they stood in the entry as a string that holds JSON.
    pub input: Cow<'a, RawValue>,
}

/// What a tool answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ToolResult<'a> {
    /// The [`id`](ToolUse::id) of the call it answers.
    pub tool_use_id: Cow<'a, str>,
    /// The answer as it stands in the entry, `null` when there is none.
    pub content: &'a RawValue,
    /// Whether the tool says that it failed.
    pub is_error: bool,
}

impl<'a> Block<'a> {
    /// Returns the blocks of a message's or a tool result's content, which need not be an array.
    pub(super) fn all_of(content: &'a RawValue) -> Vec<Self> {
        match elements(content) {
            Some(blocks) => blocks.into_iter().map(Self::of).collect(),
            None => vec![Self::of(content)],
        }
    }

    /// Returns the blocks of a flat message's `tool_calls`.
    pub(super) fn all_of_calls(tool_calls: &'a RawValue) -> impl Iterator<Item = Self> {
        elements(tool_calls)
            .unwrap_or_else(|| vec![tool_calls])
            .into_iter()
            .map(|call| ToolUse::of_call(call).map_or(Self::Other(call), Self::ToolUse))
    }

    fn of(block: &'a RawValue) -> Self {
        if let Some(text) = string(block) {
            return Self::Text(text);
        }
        Self::of_known_type(block).unwrap_or(Self::Other(block))
    }

    fn of_known_type(block: &'a RawValue) -> Option<Self> {
        let object = Object::of(block.get())?;
        Some(match &*object.string("type")? {
            "text" => Self::Text(object.string("text")?),
            "thinking" => {
                Self::Thinking { thinking: object.string("thinking")?, signature: object.string("signature") }
            }
            "tool_use" => Self::ToolUse(ToolUse {
                id: object.string("id")?,
                name: object.string("name")?,
                input: Cow::Borrowed(object.get("input").unwrap_or(RawValue::NULL)),
            }),
            "tool_result" => Self::ToolResult(ToolResult::new(
                object.string("tool_use_id")?,
                object.get("content"),
                object.get("is_error"),
            )),
            "image" | "image_url" => Self::Image(block),
            _ => return None,
        })
    }
}

impl<'a> ToolUse<'a> {
    /// Reads one of `tool_calls`: `{id, function: {name, arguments}}` or `{id, name, input}`.
    fn of_call(call: &'a RawValue) -> Option<Self> {
        let call = Object::of(call.get())?;
        let function = call.get("function").and_then(|it| Object::of(it.get()));
        let function = function.as_ref().unwrap_or(&call);
        Some(Self {
            id: call.string("id")?,
            name: function.string("name")?,
            input: match call.get("input") {
                Some(input) => Cow::Borrowed(input),
                None => json_within(function.get("arguments").unwrap_or(RawValue::NULL)),
            },
        })
    }
}

impl<'a> ToolResult<'a> {
    pub(super) fn new(
        tool_use_id: Cow<'a, str>,
        content: Option<&'a RawValue>,
        is_error: Option<&'a RawValue>,
    ) -> Self {
        Self {
            tool_use_id,
            content: content.unwrap_or(RawValue::NULL),
            is_error: is_error.is_some_and(|value| value.get() == "true"),
        }
    }

    /// Returns the answer's blocks: text, images, whatever the tool gave.
    pub fn blocks(&self) -> Vec<Block<'a>> {
        if self.content.get() == "null" {
            return Vec::new();
        }
        Block::all_of(self.content)
    }

    /// Returns what a person would read of the answer: its text blocks, joined by blank lines.
    ///
    /// An answer that is neither text nor blocks, say a number or an object of the tool's own, is
    /// given as its JSON.
    pub fn text(&self) -> Cow<'a, str> {
        let blocks = self.blocks();
        if let [Block::Other(value)] = blocks[..]
            && !self.content.get().starts_with('[')
        {
            return Cow::Borrowed(value.get());
        }
        joined(blocks.into_iter().filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        }))
    }
}

/// Joins texts by blank lines, leaving out the empty ones.
pub(super) fn joined<'t>(texts: impl Iterator<Item = Cow<'t, str>>) -> Cow<'t, str> {
    let mut texts = texts.filter(|text| !text.is_empty());
    let mut all = texts.next().unwrap_or_default();
    for text in texts {
        let all = all.to_mut();
        all.push_str("\n\n");
        all.push_str(&text);
    }
    all
}

/// Returns the JSON that a string holds, or the value itself if it holds none.
fn json_within(value: &RawValue) -> Cow<'_, RawValue> {
    string(value)
        .and_then(|text| RawValue::from_string(text.into_owned()).ok())
        .map_or(Cow::Borrowed(value), Cow::Owned)
}
