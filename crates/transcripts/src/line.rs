//! A line of a transcript, read once for everything that has to be known of it.

use std::borrow::Cow;
use std::sync::LazyLock;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::chain::Link;
use crate::entry::{Entry, View};
use crate::envelope::{Body, Content, Envelope, Strict};
use crate::node::Span;
use crate::text::Text;
use rethread_plain_json::{PlainJson, once};

/// A line that can be read as an entry, and what it says if it is part of a conversation.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    raw: &'a [u8],
    span: Span,
    said: Option<(Entry<'a>, Said<'a>)>,
}

/// What a line says, as far as that was read: its content stands as it is, and is known to be JSON.
pub type Said<'a> = View<'a, Cow<'a, str>>;

impl<'a> Line<'a> {
    /// Reads a line; `None` if it cannot be read as an entry.
    pub fn of(raw: &'a [u8], span: Span) -> Option<Self> {
        let said = match Usual::of_plain(raw).or_else(|| Usual::of(raw)) {
            Some(usual) => usual.said(raw, span),
            None => {
                let link = Link::of(&Envelope::of(raw)?, span);
                link.map(|link| Entry::new(raw, link)).map(|entry| (entry, entry.view().into_text()))
            }
        };
        Some(Self { raw, span, said })
    }

    /// Returns the line as it stands in the file, without its newline.
    pub fn raw(&self) -> &'a [u8] {
        self.raw
    }

    /// Returns where it stands.
    pub fn span(&self) -> Span {
        self.span
    }

    /// Returns the entry and what it says, if it is part of a conversation.
    pub fn said(self) -> Option<(Entry<'a>, Said<'a>)> {
        self.said
    }
}

/// An entry as nearly all are: what places it in a conversation, and what it says.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usual<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    subtype: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    parent_uuid: Option<Text<'a>>,
    #[serde(borrow)]
    agent_id: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    is_sidechain: Option<bool>,
    is_meta: Option<bool>,
    is_api_error_message: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<Strict<UsualBody<'a>>>,
    #[serde(borrow)]
    content: Option<Json<'a>>,
    #[serde(borrow)]
    attachment: Option<Json<'a>>,
    #[serde(borrow)]
    team_name: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
struct UsualBody<'a> {
    #[serde(borrow)]
    id: Option<Text<'a>>,
    #[serde(borrow)]
    model: Option<Text<'a>>,
    #[serde(borrow)]
    content: Option<Json<'a>>,
}

/// A value as it stands.
#[derive(Clone, Copy, Debug)]
struct Json<'a>(&'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Json<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&RawValue>::deserialize(deserializer).map(|raw| Self(raw.get()))
    }
}

impl<'a> Json<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        json.value().map(Self)
    }
}

impl<'a> Usual<'a> {
    fn of(raw: &'a [u8]) -> Option<Self> {
        // Strings are read as bytes, which lets control characters pass that JSON forbids; such lines are rare.
        let has_controls = raw.iter().any(|byte| *byte < b' ');
        let usual = (!has_controls).then(|| serde_json::from_slice::<Strict<Self>>(raw).ok()).flatten();
        usual.map(|Strict(usual)| usual)
    }

    /// Returns the same, sooner, if there is nothing about the line that has to be looked at twice.
    fn of_plain(raw: &'a [u8]) -> Option<Self> {
        let mut json = PlainJson::of(raw)?;
        let (mut usual, mut parent) = (Self::default(), None);
        json.object(|json, name| match name {
            b"type" => once(&mut usual.kind, Text::of_plain(json)?),
            b"subtype" => once(&mut usual.subtype, Text::of_plain(json)?),
            b"uuid" => once(&mut usual.uuid, Text::of_plain(json)?),
            b"parentUuid" => once(&mut parent, json.string_or_null()?),
            b"agentId" => once(&mut usual.agent_id, Text::of_plain(json)?),
            b"timestamp" => once(&mut usual.timestamp, Text::of_plain(json)?),
            b"isSidechain" => once(&mut usual.is_sidechain, json.flag()?),
            b"isMeta" => once(&mut usual.is_meta, json.flag()?),
            b"isApiErrorMessage" => once(&mut usual.is_api_error_message, json.flag()?),
            b"isCompactSummary" => once(&mut usual.is_compact_summary, json.flag()?),
            b"message" => once(&mut usual.message, Strict(UsualBody::of_plain(json)?)),
            b"content" => once(&mut usual.content, Json::of_plain(json)?),
            b"attachment" => once(&mut usual.attachment, Json::of_plain(json)?),
            b"teamName" => once(&mut usual.team_name, Text::of_plain(json)?),
            _ => json.skip(),
        })?;
        usual.parent_uuid = parent.flatten().map(|parent| Text(parent.into()));
        json.is_over().then_some(usual)
    }

    fn said(self, raw: &'a [u8], span: Span) -> Option<(Entry<'a>, Said<'a>)> {
        // What an attachment says is seldom, and somewhere else.
        if self.attachment.is_some() {
            let entry = Entry::of(raw, span)?;
            return Some((entry, entry.view().into_text()));
        }
        let body = self.message.as_ref().map(|Strict(body)| Body {
            id: body.id.clone(),
            model: body.model.clone(),
            content: body.content.map(content_of).unwrap_or_default(),
        });
        let envelope = Envelope {
            kind: self.kind,
            subtype: self.subtype,
            uuid: self.uuid.clone(),
            parent_uuid: self.parent_uuid.clone(),
            is_sidechain: self.is_sidechain,
            is_meta: self.is_meta,
            is_api_error_message: self.is_api_error_message,
            is_compact_summary: self.is_compact_summary,
            message: body.map(Strict),
            team_name: self.team_name,
            ..Envelope::default()
        };
        let link = Link::of(&envelope, span)?;
        let text = |text: Option<Text<'a>>| text.map(|Text(text)| text);
        let (model, message_id, content) = match self.message {
            Some(Strict(body)) => (text(body.model), text(body.id), body.content),
            None => (None, None, self.content),
        };
        let said = Said {
            uuid: text(self.uuid),
            timestamp: text(self.timestamp),
            model,
            parent_uuid: text(self.parent_uuid),
            message_id,
            agent_id: text(self.agent_id),
            content: content.map(|Json(content)| Cow::Borrowed(content)),
        };
        Some((Entry::new(raw, link), said))
    }
}

impl<'a> UsualBody<'a> {
    fn of_plain(json: &mut PlainJson<'a>) -> Option<Self> {
        let mut body = Self::default();
        json.object(|json, name| match name {
            b"id" => once(&mut body.id, Text::of_plain(json)?),
            b"model" => once(&mut body.model, Text::of_plain(json)?),
            b"content" => once(&mut body.content, Json::of_plain(json)?),
            _ => json.skip(),
        })?;
        Some(body)
    }
}

/// The type of a block that brings the result of a tool. Made ready once: that takes longer than looking for it.
static RESULT: LazyLock<memmem::Finder<'static>> = LazyLock::new(|| memmem::Finder::new("tool_result"));

/// Returns what a content is made of. Blocks are only read where the word that matters stands among them.
fn content_of(Json(json): Json<'_>) -> Content {
    match json.as_bytes().first() {
        Some(b'"') => Content::Text,
        Some(b'[') if RESULT.find(json.as_bytes()).is_none() => Content::Blocks { has_result: false },
        _ => serde_json::from_str(json).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::entry::tests::is_typed_alike;

    /// Reading once must find what reading for each question finds.
    #[test]
    fn a_line_says_what_its_entry_says_whatever_it_is_made_of() {
        let contents = [
            r#""text""#,
            r#"[{"type":"text","text":"x"}]"#,
            r#"[{"type":"tool_result","content":"x"}]"#,
            r#"[{"type":"text","text":"tool_result"}]"#,
            "[]",
            "[1]",
            "7",
            "null",
            r#"{"type":"text"}"#,
        ];
        let lines = contents.iter().flat_map(|content| {
            ["user", "assistant", "system", "progress", "summary"].into_iter().flat_map(move |kind| {
                [
                    format!(r#"{{"type":"{kind}","uuid":"u","parentUuid":"p","timestamp":"t","message":{{"id":"m","model":"<synthetic>","content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":"u","isMeta":true,"isSidechain":false,"agentId":"a","content":{content}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":7,"message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","uuid":"u","uuid":"v","message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","subtype":"compact_boundary","uuid":"\ud83d","timestamp":7,"message":{{"content":{content}}}}}"#),
                    format!(r#"{{"type":"{kind}","message":[{content}],"uuid":"u"}}"#),
                    format!(r#"{{"type":"attachment","uuid":"u","attachment":{{"type":"queued_command","source_uuid":"s","prompt":{content}}}}}"#),
                    format!(r#"{{"type":"attachment","uuid":"u","attachment":{content}}}"#),
                    format!("{{\"type\":\"{kind}\",\"uuid\":\"u\u{1}\",\"message\":{{\"content\":{content}}}}}"),
                    format!(r#"{{"type":"{kind}","uuid":"u","message":{{"content":{content}}}"#),
                ]
            })
        });
        let span = Span { offset: 3, length: 9 };
        for line in lines {
            let raw = line.as_bytes();
            let known = Entry::of(raw, span).map(|entry| format!("{entry:?} {:?}", entry.view().into_text()));
            let read = Line::of(raw, span);
            assert_eq!(read.is_some(), Envelope::of(raw).is_some(), "{line}");
            let said = read.and_then(Line::said).map(|(entry, said)| format!("{entry:?} {said:?}"));
            assert_eq!(said, known, "{line}");
        }
    }

    /// Lines as Claude Code writes them, shortened.
    const REAL: [&str; 6] = [
        r#"{"parentUuid":null,"isSidechain":false,"promptId":"p1","type":"user","message":{"role":"user","content":"add \"a\" cache\n"},"isMeta":true,"uuid":"u1","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/p\u00e9","version":"2.1.0"}"#,
        r#"{"parentUuid":"u1","isSidechain":false,"message":{"model":"claude-x","id":"msg_1","type":"message","role":"assistant","content":[{"type":"text","text":"é 🧵 \ud83d"}],"stop_reason":null,"usage":{"input_tokens":4,"cost":0.25,"tiers":[-1,{"a":[]}]}},"requestId":"r","type":"assistant","uuid":"u2","timestamp":"t"}"#,
        r#"{"parentUuid":"u2","isSidechain":true,"agentId":"a1","teamName":"blue","type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":"1\t\\x"}]},"uuid":"u3","toolUseResult":{"stdout":"\u001b[0m","interrupted":false}}"#,
        r#"{"parentUuid":"u3","attachment":{"type":"queued_command","prompt":"go on","source_uuid":"s1"},"type":"attachment","uuid":"u4"}"#,
        r#"{"parentUuid":"u4","type":"system","subtype":"compact_boundary","content":"Compacted","isCompactSummary":false,"isApiErrorMessage":true,"level":"info","uuid":"u5"}"#,
        r#"{"type":"file-history-snapshot","messageId":"u1","snapshot":{"trackedFileBackups":{"a.rs":{"version":1}}},"isSnapshotUpdate":false}"#,
    ];

    /// Checks that a line which is read by hand is what serde reads; returns whether it was.
    fn is_plain(raw: &[u8]) -> bool {
        is_typed_alike(raw);
        if let Some(plain) = Envelope::of_plain(raw) {
            let known = Envelope::of_any(raw).map(|envelope| format!("{envelope:?}"));
            assert_eq!(Some(format!("{plain:?}")), known, "{}", raw.escape_ascii());
        }
        let Some(plain) = Usual::of_plain(raw) else { return false };
        let known = Usual::of(raw).map(|usual| format!("{usual:?}"));
        assert_eq!(Some(format!("{plain:?}")), known, "{}", raw.escape_ascii());
        true
    }

    #[test]
    fn what_claude_code_writes_is_read_by_hand() {
        assert!(REAL.iter().all(|line| is_plain(line.as_bytes())));
        assert!(REAL.iter().all(|line| Envelope::of_plain(line.as_bytes()).is_some()));
    }

    #[test]
    fn a_line_cut_anywhere_is_what_serde_says_it_is() {
        for line in REAL {
            (0..line.len()).for_each(|end| assert!(!is_plain(&line.as_bytes()[..end])));
            (1..line.len()).for_each(|begin| assert!(!is_plain(&line.as_bytes()[begin..])));
        }
    }

    #[test]
    fn a_line_with_any_byte_changed_is_what_serde_says_it_is() {
        let nasty = b"\"\\{}[]:,- \n\t\0\x1f\x7f\x80\xc3\xed\xff0189.eE+unltfaA/";
        for line in REAL {
            for at in 0..line.len() {
                for &byte in nasty {
                    let mut changed = line.as_bytes().to_vec();
                    changed[at] = byte;
                    is_plain(&changed);
                    changed.insert(at, line.as_bytes()[at]);
                    is_plain(&changed);
                }
            }
        }
    }

    #[test]
    fn a_member_that_matters_and_is_unusual_is_left_to_serde() {
        for member in ["type", "subtype", "uuid", "agentId", "timestamp", "parentUuid", "teamName"] {
            assert!(is_plain(format!(r#"{{"{member}":"x"}}"#).as_bytes()));
            for odd in [r#""\u0061""#, "7", "true", "{}", "[]"] {
                assert!(!is_plain(format!(r#"{{"{member}":{odd}}}"#).as_bytes()), "{member}: {odd}");
            }
            for [first, second] in [["null", "null"], ["null", r#""x""#], [r#""x""#, "null"], [r#""x""#; 2]] {
                let line = format!(r#"{{"{member}":{first},"a":1,"{member}":{second}}}"#);
                assert!(!is_plain(line.as_bytes()), "{line}");
            }
        }
    }

    /// A value as members that matter have it, or any other.
    fn any_value() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            4 => "[a-z]{0,9}".prop_map(|text| format!("\"{text}\"")),
            1 => any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
            1 => r#""(\\u[0-9a-fA-F]{3,4}|\\[bn"x]|é)*""#,
            2 => prop_oneof![Just("true"), Just("false"), Just("null"), Just("1e3"), Just("[ ]")].prop_map(String::from),
            1 => any::<i32>().prop_map(|number| number.to_string()),
            1 => any::<f64>().prop_map(|number| serde_json::Value::from(number).to_string()),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let array = proptest::collection::vec(inner.clone(), 0..4);
            prop_oneof![array.prop_map(|values| format!("[{}]", values.join(","))), any_object(inner)]
        })
    }

    fn any_object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
        let name = prop_oneof![
            8 => prop::sample::select(vec!["type", "subtype", "uuid", "parentUuid", "timestamp", "isMeta", "isSidechain",
                "message", "content", "attachment", "teamName", "id", "model", "role", "usage"]).prop_map(String::from),
            1 => "[a-z]{0,3}|\\\\u00[67][0-9]",
        ];
        let member = (name, value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
        proptest::collection::vec(member, 0..6).prop_map(|members| format!("{{{}}}", members.join(",")))
    }

    proptest! {
        #[test]
        fn any_line_is_what_serde_says_it_is(line in any_object(any_value())) {
            is_plain(line.as_bytes());
        }
    }
}
