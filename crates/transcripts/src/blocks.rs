//! The blocks of a message, read in one pass.
//!
//! Reading them level by level looks at every long text once per level. Nearly all are what they should be; whatever is
//! odd about one is an error here, and the tolerant reader takes the message from the beginning.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::envelope::Strict;
use crate::message::Block;
use crate::text::{Text, lossy};
use rethread_plain_json::{PlainJson, once};

/// A text, or an array of blocks, all of them of a known type and whole.
pub(crate) struct Blocks<'a>(pub(crate) Vec<Block<'a>>);

impl<'de: 'a, 'a> Deserialize<'de> for Blocks<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(BlocksVisitor)
    }
}

impl<'a> Blocks<'a> {
    /// Takes the same by hand.
    pub(crate) fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        if json.first() == Some(b'"') {
            return Some(Self(vec![Block::Text(json.text()?)]));
        }
        let mut blocks = Vec::new();
        json.array(|json| {
            blocks.push(Members::of_plain(json)?.into_block()?);
            Some(())
        })?;
        Some(Self(blocks))
    }
}

struct BlocksVisitor;

impl<'de> Visitor<'de> for BlocksVisitor {
    type Value = Blocks<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or an array of blocks")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Blocks(vec![Block::Text(lossy(bytes))]))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Blocks(vec![Block::Text(Cow::Owned(lossy(bytes).into_owned()))]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let mut blocks = Vec::new();
        while let Some(Strict(members)) = elements.next_element::<Strict<Members<'de>>>()? {
            blocks.push(members.into_block().ok_or_else(|| Error::custom("an unusual block"))?);
        }
        Ok(Blocks(blocks))
    }
}

/// Everything that a block of a known type may have.
#[derive(Default, serde::Deserialize)]
struct Members<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
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

impl<'a> Members<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut members = Self::default();
        json.object(|json, name| match name {
            b"type" => once(&mut members.kind, Text::of_plain(json)?),
            b"text" => once(&mut members.text, Text(json.text()?)),
            b"thinking" => once(&mut members.thinking, Text(json.text()?)),
            b"id" => once(&mut members.id, Text::of_plain(json)?),
            b"name" => once(&mut members.name, Text::of_plain(json)?),
            b"input" => once(&mut members.input, json.raw()?),
            b"tool_use_id" => once(&mut members.tool_use_id, Text::of_plain(json)?),
            b"content" => once(&mut members.content, json.raw()?),
            b"is_error" => once(&mut members.is_error, json.flag()?),
            _ => json.skip(),
        })?;
        Some(members)
    }

    fn into_block(self) -> Option<Block<'a>> {
        let own = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        Some(match self.kind?.as_str() {
            "text" => Block::Text(own(self.text)?),
            "thinking" => Block::Thinking(own(self.thinking)?),
            "tool_use" => Block::ToolUse {
                id: own(self.id)?,
                name: own(self.name)?,
                input: Cow::Borrowed(self.input.unwrap_or(RawValue::NULL)),
            },
            "tool_result" => Block::ToolResult {
                tool_use_id: own(self.tool_use_id)?,
                content: Cow::Borrowed(self.content.unwrap_or(RawValue::NULL)),
                is_error: self.is_error == Some(true),
            },
            // An image is handed out as it stands, and so is what nobody knows.
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whichever_reader_takes_a_message_it_says_the_same() {
        let usual = r#"[{"type":"text","text":"a\n\ud83d"},{"type":"thinking","thinking":"hm","signature":"s"},
            {"type":"tool_use","id":"c1","name":"Read","input":{"x":1}},
            {"type":"tool_result","tool_use_id":"c0","content":[{"type":"text"}],"is_error":true}]"#;
        let Blocks(quick) = serde_json::from_str(usual).unwrap();
        let with_image = usual.replacen('[', r#"[{"type":"image","source":{}},"#, 1);
        assert!(serde_json::from_str::<Blocks<'_>>(&with_image).is_err());
        let content: Box<RawValue> = serde_json::from_str(&with_image).unwrap();
        let slow = Block::all_of(&content);
        assert_eq!(format!("{quick:?}"), format!("{:?}", &slow[1..]));
        let plain = usual.replace("\n            ", "").replace("\\ud83d", "\\u00fc");
        let by_hand =
            PlainJson::of(plain.as_bytes()).and_then(|mut json| Blocks::of_plain(&mut json)).unwrap();
        let Blocks(quick) = serde_json::from_str(&plain).unwrap();
        assert_eq!(format!("{quick:?}"), format!("{:?}", by_hand.0));
    }
}
