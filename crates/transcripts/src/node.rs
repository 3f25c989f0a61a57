//! One entry of the conversation, as the chain builder knows it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use serde::{Deserialize, Serialize};

use crate::chain::Link;
use crate::envelope::{Content, Envelope};
use crate::key::Key;
use crate::text::Text;

/// Where an entry's bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins in the file.
    pub offset: u64,
    /// How many bytes it has, without its newline.
    pub length: u32,
}

/// What takes part in a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    User,
    Assistant,
    System,
    Attachment,
    /// Only passes on what it follows: old versions put their progress into the chain.
    Progress,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "user" => Kind::User,
            "assistant" => Kind::Assistant,
            "system" => Kind::System,
            "attachment" => Kind::Attachment,
            "progress" => Kind::Progress,
            _ => return None,
        })
    }

    pub(crate) fn numbered(number: u8) -> Option<Self> {
        let kinds = [Kind::User, Kind::Assistant, Kind::System, Kind::Attachment, Kind::Progress];
        kinds.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// What is special about an entry; a set of bits, so that an index can keep it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks(pub(crate) u16);

impl Marks {
    /// Belongs to a subagent.
    pub(crate) const SIDECHAIN: Marks = Marks(1);
    /// Said by the program in the person's place.
    pub(crate) const META: Marks = Marks(2);
    /// Brings the result of a tool.
    pub(crate) const RESULT: Marks = Marks(4);
    /// An answer that no model gave, such as an API error.
    pub(crate) const SYNTHETIC: Marks = Marks(8);
    /// A prompt that came while a turn ran.
    pub(crate) const QUEUED: Marks = Marks(16);
    /// Where a conversation was compacted.
    pub(crate) const BOUNDARY: Marks = Marks(32);
    /// The summary that stands for what was compacted.
    pub(crate) const SUMMARY: Marks = Marks(64);
    /// Said by a teammate.
    pub(crate) const TEAM: Marks = Marks(128);

    pub(crate) fn has(self, mark: Marks) -> bool {
        self.0 & mark.0 != 0
    }

    fn with(self, mark: Marks, is: bool) -> Self {
        if is { Marks(self.0 | mark.0) } else { self }
    }
}

/// One entry of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) key: Key,
    pub(crate) parent: Option<Key>,
    /// The API message that it is a part of, by its hash; 0 for none.
    pub(crate) group: u64,
    pub(crate) kind: Kind,
    pub(crate) marks: Marks,
}

impl Node {
    /// Returns an entry's node, if it takes part in a conversation.
    pub(crate) fn of(envelope: &Envelope<'_>, span: Span) -> Option<Self> {
        let Link { span, group, kind, marks } = Link::of(envelope, span)?;
        let key = Key::of(envelope.uuid.as_ref()?.as_str());
        let parent = envelope.parent_uuid.as_ref().map(|parent| Key::of(parent.as_str()));
        Some(Self { span, key, parent, group, kind, marks })
    }
}

impl Link {
    /// Returns what an entry is among others, if it takes part in a conversation.
    pub(crate) fn of(envelope: &Envelope<'_>, span: Span) -> Option<Self> {
        let kind = Kind::named(envelope.kind())?;
        envelope.uuid.as_ref()?;
        let body = envelope.message.as_ref().map(|message| &message.0);
        let says = |text: Option<&Text<'_>>, word: &str| text.is_some_and(|text| text.as_str() == word);
        let attachment = envelope.attachment.as_ref().and_then(|it| it.0.kind.as_ref());
        let group = body.and_then(|body| body.id.as_ref()).filter(|_| kind == Kind::Assistant);
        let is_result =
            kind == Kind::User && body.is_some_and(|it| it.content == Content::Blocks { has_result: true });
        let is_synthetic = envelope.is_api_error_message == Some(true)
            || says(body.and_then(|body| body.model.as_ref()), "<synthetic>");
        let is_boundary = kind == Kind::System && says(envelope.subtype.as_ref(), "compact_boundary");
        let marks = Marks::default()
            .with(Marks::SIDECHAIN, envelope.is_sidechain == Some(true))
            .with(Marks::META, envelope.is_meta == Some(true))
            .with(Marks::RESULT, is_result)
            .with(Marks::SYNTHETIC, is_synthetic)
            .with(Marks::QUEUED, kind == Kind::Attachment && says(attachment, "queued_command"))
            .with(Marks::BOUNDARY, is_boundary)
            .with(Marks::SUMMARY, envelope.is_compact_summary == Some(true))
            .with(Marks::TEAM, envelope.team_name.is_some());
        Some(Self { span, group: group.map_or(0, |id| hash(id.as_str())), kind, marks })
    }
}

fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish().max(1)
}

/// What a compaction kept word for word, although it stands before the boundary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Compaction {
    pub(crate) boundary: Key,
    /// What the kept entries follow.
    pub(crate) anchor: Key,
    pub(crate) kept: Kept,
}

/// Which entries were kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kept {
    /// These, one after the other.
    Listed(Vec<Key>),
    /// Those from the first to the last, as they follow each other.
    Segment { head: Key, tail: Key },
}

impl Compaction {
    /// Returns what a boundary says it kept, if anything.
    pub(crate) fn of(envelope: &Envelope<'_>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metadata {
            preserved_segment: Option<Segment>,
            preserved_messages: Option<Messages>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Segment {
            head_uuid: String,
            anchor_uuid: String,
            tail_uuid: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Messages {
            anchor_uuid: String,
            uuids: Vec<String>,
        }
        let boundary = Key::of(envelope.uuid.as_ref()?.as_str());
        let metadata: Metadata = serde_json::from_str(envelope.compact_metadata?.get()).ok()?;
        if let Some(messages) = metadata.preserved_messages.filter(|messages| !messages.uuids.is_empty()) {
            let kept = Kept::Listed(messages.uuids.iter().map(|uuid| Key::of(uuid)).collect());
            return Some(Self { boundary, anchor: Key::of(&messages.anchor_uuid), kept });
        }
        let segment = metadata.preserved_segment?;
        let kept = Kept::Segment { head: Key::of(&segment.head_uuid), tail: Key::of(&segment.tail_uuid) };
        Some(Self { boundary, anchor: Key::of(&segment.anchor_uuid), kept })
    }
}
