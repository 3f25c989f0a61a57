//! The simple view of a conversation: who said what, when.

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;
use serde::ser::Serializer;
use serde_json::value::RawValue;

use crate::blocks::Blocks;
use crate::object::Object;
use crate::text::Text;

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A person, or a program in their place; also the tools.
    User,
    /// The model.
    Assistant,
    /// The program around the model.
    System,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::System => "system",
        })
    }
}

/// One message, however many lines it was written on.
#[derive(Clone, Debug, Serialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// A text, or an array of blocks, as they were written.
    pub content: Box<RawValue>,
    /// When it was said.
    #[serde(serialize_with = "or_null")]
    pub timestamp: Option<String>,
    /// The id of its last line: to go on from here means after the whole message.
    #[serde(serialize_with = "or_null")]
    pub uuid: Option<String>,
}

fn or_null<S: Serializer>(text: &Option<String>, serializer: S) -> Result<S::Ok, S::Error> {
    text.serialize(serializer)
}

impl Message {
    /// Returns what it says, without tools and thoughts.
    pub fn text(&self) -> String {
        let texts = self.blocks().into_iter().filter_map(|block| match block {
            Block::Text(text) => Some(text.into_owned()),
            _ => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns its blocks; a text is one block.
    pub fn blocks(&self) -> Vec<Block<'_>> {
        Block::all_of(&self.content)
    }

    /// Adds the blocks of another line of the same message.
    pub(crate) fn extend(&mut self, content: &RawValue, uuid: Option<String>) {
        let inner =
            |json: &str| json.trim().strip_prefix('[').and_then(|it| it.strip_suffix(']')).map(str::to_owned);
        if let (Some(mut one), Some(other)) = (inner(self.content.get()), inner(content.get())) {
            if !one.trim().is_empty() && !other.trim().is_empty() {
                one.push(',');
            }
            if let Ok(content) = RawValue::from_string(format!("[{one}{other}]")) {
                self.content = content;
            }
        }
        self.uuid = uuid.or_else(|| self.uuid.take());
    }
}

/// One part of a message.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Block<'a> {
    /// Something said.
    Text(Cow<'a, str>),
    /// Something thought.
    Thinking(Cow<'a, str>),
    /// A tool that is called.
    ToolUse {
        /// The call's id.
        id: Cow<'a, str>,
        /// The tool's name.
        name: Cow<'a, str>,
        /// What it is called with.
        input: Cow<'a, RawValue>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call's id.
        tool_use_id: Cow<'a, str>,
        /// A text, or an array of blocks.
        content: Cow<'a, RawValue>,
        /// It failed, or was denied.
        is_error: bool,
    },
    /// Anything else, as it stands: images, documents, and what is new.
    Other(Cow<'a, RawValue>),
}

impl<'a> Block<'a> {
    /// Returns the blocks of a content.
    pub fn all_of(content: &'a RawValue) -> Vec<Self> {
        let json = content.get();
        if let Ok(Blocks(blocks)) = serde_json::from_str(json) {
            return blocks;
        }
        // Something is odd about one of them; the others are read all the same.
        match json.as_bytes().first() {
            Some(b'"') => serde_json::from_str::<Text<'a>>(json)
                .map(|Text(it)| vec![Block::Text(it)])
                .unwrap_or_default(),
            Some(b'[') => {
                let elements: Vec<&RawValue> = serde_json::from_str(json).unwrap_or_default();
                elements.into_iter().map(Self::of).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the same block, borrowing nothing.
    pub fn into_owned(self) -> Block<'static> {
        let text = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        let raw = |raw: Cow<'_, RawValue>| Cow::Owned(raw.into_owned());
        match self {
            Block::Text(it) => Block::Text(text(it)),
            Block::Thinking(it) => Block::Thinking(text(it)),
            Block::ToolUse { id, name, input } => {
                Block::ToolUse { id: text(id), name: text(name), input: raw(input) }
            }
            Block::ToolResult { tool_use_id, content, is_error } => {
                Block::ToolResult { tool_use_id: text(tool_use_id), content: raw(content), is_error }
            }
            Block::Other(it) => Block::Other(raw(it)),
        }
    }

    fn of(value: &'a RawValue) -> Self {
        Self::known(value).unwrap_or(Block::Other(Cow::Borrowed(value)))
    }

    fn known(value: &'a RawValue) -> Option<Self> {
        let object = Object::of(value.get())?;
        Some(match &*object.string("type")? {
            "text" => Block::Text(object.string("text")?),
            "thinking" => Block::Thinking(object.string("thinking")?),
            "tool_use" => Block::ToolUse {
                id: object.string("id")?,
                name: object.string("name")?,
                input: Cow::Borrowed(object.get("input").unwrap_or(RawValue::NULL)),
            },
            "tool_result" => Block::ToolResult {
                tool_use_id: object.string("tool_use_id")?,
                content: Cow::Borrowed(object.get("content").unwrap_or(RawValue::NULL)),
                is_error: object.get("is_error").is_some_and(|it| it.get() == "true"),
            },
            _ => return None,
        })
    }
}
