//! What has to be known of an entry to find its place in the conversation.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::object::Object;
use crate::text::{Text, lossy};
use rethread_plain_json::{PlainJson, once};

/// An entry's outer members. Whatever else it has is skipped.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct Envelope<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) subtype: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) leaf_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) session_id: Option<Text<'a>>,
    pub(crate) is_sidechain: Option<bool>,
    pub(crate) is_meta: Option<bool>,
    pub(crate) is_api_error_message: Option<bool>,
    pub(crate) is_compact_summary: Option<bool>,
    #[serde(borrow)]
    pub(crate) message: Option<Strict<Body<'a>>>,
    #[serde(borrow)]
    pub(crate) attachment: Option<Strict<Attachment<'a>>>,
    #[serde(borrow)]
    pub(crate) compact_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) team_name: Option<Text<'a>>,
}

/// The message in an entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Body<'a> {
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) model: Option<Text<'a>>,
    pub(crate) content: Content,
}

/// The attachment in an entry.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Attachment<'a> {
    #[serde(borrow, rename = "type")]
    pub(crate) kind: Option<Text<'a>>,
}

/// What a message's content is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Content {
    /// Neither text nor blocks.
    #[default]
    Other,
    Text,
    Blocks {
        /// At least one of them is the result of a tool.
        has_result: bool,
    },
}

impl<'a> Envelope<'a> {
    /// Reads an entry; `None` if the line is no JSON object.
    pub(crate) fn of(line: &'a [u8]) -> Option<Self> {
        Self::of_plain(line).or_else(|| Self::of_any(line))
    }

    pub(crate) fn of_any(line: &'a [u8]) -> Option<Self> {
        // Strings are read as bytes, which lets control characters pass that JSON forbids; such lines are rare.
        let is_strange = line.iter().any(|byte| *byte < b' ');
        if is_strange && serde_json::from_slice::<IgnoredAny>(line).is_err() {
            return None;
        }
        let usual: Result<Strict<Self>, _> = serde_json::from_slice(line);
        usual.map(|Strict(envelope)| envelope).ok().or_else(|| Self::of_odd(&lossy(line)))
    }

    /// Returns the same, sooner, if there is nothing about the line that has to be looked at twice.
    pub(crate) fn of_plain(line: &'a [u8]) -> Option<Self> {
        let mut json = PlainJson::of(line)?;
        let (mut envelope, mut parent) = (Self::default(), None);
        json.object(|json, name| match name {
            b"type" => once(&mut envelope.kind, Text::of_plain(json)?),
            b"subtype" => once(&mut envelope.subtype, Text::of_plain(json)?),
            b"uuid" => once(&mut envelope.uuid, Text::of_plain(json)?),
            b"parentUuid" => once(&mut parent, json.string_or_null()?),
            b"leafUuid" => once(&mut envelope.leaf_uuid, Text::of_plain(json)?),
            b"sessionId" => once(&mut envelope.session_id, Text::of_plain(json)?),
            b"isSidechain" => once(&mut envelope.is_sidechain, json.flag()?),
            b"isMeta" => once(&mut envelope.is_meta, json.flag()?),
            b"isApiErrorMessage" => once(&mut envelope.is_api_error_message, json.flag()?),
            b"isCompactSummary" => once(&mut envelope.is_compact_summary, json.flag()?),
            b"message" => once(&mut envelope.message, Strict(Body::of_plain(json)?)),
            b"attachment" => once(&mut envelope.attachment, Strict(Attachment::of_plain(json)?)),
            b"compactMetadata" => once(&mut envelope.compact_metadata, json.raw()?),
            b"teamName" => once(&mut envelope.team_name, Text::of_plain(json)?),
            _ => json.skip(),
        })?;
        envelope.parent_uuid = parent.flatten().map(|parent| Text(parent.into()));
        json.is_over().then_some(envelope)
    }

    /// Reads an entry with members of unexpected types or names that occur twice: the former count as missing, of the
    /// latter the last one counts, as in JavaScript.
    fn of_odd(line: &str) -> Option<Self> {
        let object = Object::of(line)?;
        let text =
            |object: &Object<'_>, name: &str| object.string(name).map(|it| Text(it.into_owned().into()));
        let is = |name: &str| object.get(name).map(|value| value.get() == "true");
        let inner = |name: &str| object.get(name).and_then(|value| Object::of(value.get()));
        Some(Self {
            kind: text(&object, "type"),
            subtype: text(&object, "subtype"),
            uuid: text(&object, "uuid"),
            parent_uuid: text(&object, "parentUuid"),
            leaf_uuid: text(&object, "leafUuid"),
            session_id: text(&object, "sessionId"),
            is_sidechain: is("isSidechain"),
            is_meta: is("isMeta"),
            is_api_error_message: is("isApiErrorMessage"),
            is_compact_summary: is("isCompactSummary"),
            message: inner("message").map(|body| {
                let content = body.get("content").and_then(|it| serde_json::from_str(it.get()).ok());
                let (id, model) = (text(&body, "id"), text(&body, "model"));
                Strict(Body { id, model, content: content.unwrap_or_default() })
            }),
            attachment: inner("attachment").map(|it| Strict(Attachment { kind: text(&it, "type") })),
            compact_metadata: None,
            team_name: text(&object, "teamName"),
        })
    }

    /// Returns what kind of entry it is.
    pub(crate) fn kind(&self) -> &str {
        self.kind.as_ref().map_or("", Text::as_str)
    }
}

impl<'a> Body<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        let (mut body, mut content) = (Self::default(), None);
        json.object(|json, name| match name {
            b"id" => once(&mut body.id, Text::of_plain(json)?),
            b"model" => once(&mut body.model, Text::of_plain(json)?),
            b"content" => once(&mut content, Content::of_plain(json)?),
            _ => json.skip(),
        })?;
        body.content = content.unwrap_or_default();
        Some(body)
    }
}

impl<'a> Attachment<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut attachment = Self::default();
        json.object(|json, name| match name {
            b"type" => once(&mut attachment.kind, Text::of_plain(json)?),
            _ => json.skip(),
        })?;
        Some(attachment)
    }
}

impl Content {
    /// Takes a text, or an array of objects.
    fn of_plain(json: &mut PlainJson<'_>) -> Option<Self> {
        if json.first() == Some(b'"') {
            return json.skip().map(|()| Content::Text);
        }
        let mut has_result = false;
        json.array(|json| {
            let mut kind = None;
            json.object(|json, name| match name {
                b"type" => once(&mut kind, json.string()?),
                _ => json.skip(),
            })?;
            has_result |= kind == Some("tool_result");
            Some(())
        })?;
        Some(Content::Blocks { has_result })
    }
}

/// A type that is read from an object only; a derived reader would take an array of its members too.
#[derive(Debug, Default)]
pub(crate) struct Strict<T>(pub(crate) T);

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

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_bytes(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text or an array of blocks")
    }

    fn visit_bytes<E: Error>(self, _: &[u8]) -> Result<Content, E> {
        Ok(Content::Text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Content, A::Error> {
        let mut has_result = false;
        while let Some(element) = elements.next_element::<Element<'de>>()? {
            has_result |= element.kind.is_some_and(|kind| kind.as_str() == "tool_result");
        }
        Ok(Content::Blocks { has_result })
    }
}

/// One block of a content: only its type.
#[derive(Default)]
struct Element<'a> {
    kind: Option<Text<'a>>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Element<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a block")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let mut element = Element::default();
        while let Some(name) = members.next_key::<Text<'de>>()? {
            if name.as_str() == "type" {
                element.kind = Some(members.next_value()?);
            } else {
                members.next_value::<IgnoredAny>()?;
            }
        }
        Ok(element)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_of_odd_types_still_has_the_rest() {
        let line = br#"{"uuid":"a","uuid":"b","parentUuid":7,"type":"user","isMeta":"yes",
            "message":{"id":[],"content":[{"type":"tool_result"},{"type":"text"}]}}"#;
        let envelope = Envelope::of(line).unwrap();
        assert_eq!((envelope.kind(), envelope.uuid.as_ref().unwrap().as_str()), ("user", "b"));
        assert!(envelope.parent_uuid.is_none());
        assert_eq!(envelope.message.unwrap().0.content, Content::Blocks { has_result: true });
    }

    #[test]
    fn what_is_no_object_is_no_entry() {
        for line in ["", "null", "[1]", "{", "{}x", "\"user\"", "{\"type\":\"user\"", "{\"type\":\"\u{16}\"}"]
        {
            assert!(Envelope::of(line.as_bytes()).is_none(), "{line}");
        }
        assert!(Envelope::of(b"{}").is_some());
    }
}
