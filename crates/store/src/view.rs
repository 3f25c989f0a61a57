//! A typed, read-only look at one entry, over its bytes.
//!
//! An entry is kept as it came; a view only says what it means. It borrows from the entry,
//! understands both message shapes, and never fails on what it does not know: that passes through
//! as it stands.

mod block;
mod json;
mod usual;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use block::{Block, ToolResult, ToolUse};

use json::Object;

/// What one entry says, whichever of the two shapes it has.
///
/// The *flat* shape has `role`, `content`, `tool_calls` and `tool_call_id` in the entry itself, as a
/// bare API message has the first two; *Claude's* shape wraps such a message as
/// `{"type":"user","uuid":…,"message":{…}}`. The entry's `type` alone may say who speaks.
///
/// A field of an unexpected type counts as missing. Half a surrogate pair in a string (`"\ud83d"`)
/// reads as U+FFFD here; the entry's own bytes keep it.
///
/// ```
/// use rethread_store::view::{Message, Role};
///
/// let entry = br#"{"type":"assistant","uuid":"7c41","message":{"role":"assistant","content":[
///     {"type":"text","text":"Let me look."},
///     {"type":"tool_use","id":"toolu_1","name":"Read","input":{"file_path":"a.rs"}}]}}"#;
///
/// let message = Message::of(entry).expect("an assistant entry is a message");
/// assert_eq!(message.role, Role::Assistant);
/// assert_eq!(message.text(), "Let me look.");
/// let tools: Vec<_> = message.tool_uses().map(|tool| &*tool.name).collect();
/// assert_eq!(tools, ["Read"]);
///
/// assert!(Message::of(br#"{"type":"summary","summary":"A cache"}"#).is_none());
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role<'a>,
    /// What is said, in order; the calls of a flat message's `tool_calls` come last.
    pub blocks: Vec<Block<'a>>,
    /// The entry's id, as its writer gave it.
    pub uuid: Option<Cow<'a, str>>,
    /// The id of the entry it follows, as Claude writes it; the store has its own parents.
    pub parent_uuid: Option<Cow<'a, str>>,
    /// When it was said, as its writer put it.
    pub timestamp: Option<Cow<'a, str>>,
    /// The model that said it.
    pub model: Option<Cow<'a, str>>,
}

/// Who speaks in a message.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role<'a> {
    /// A person, or a program in their place; in Claude's shape also the tools.
    User,
    /// The model.
    Assistant,
    /// The program around the model.
    System,
    /// A tool, in the flat shape.
    Tool,
    /// A role this program does not know.
    Other(Cow<'a, str>),
}

impl<'a> Message<'a> {
    /// Returns the entry's message, or `None` when the entry is not one (a summary, a snapshot, a
    /// title, a torn line).
    pub fn of(entry: &'a [u8]) -> Option<Self> {
        usual::message(entry).or_else(|| Self::of_any(simdutf8::basic::from_utf8(entry).ok()?))
    }

    /// Reads an entry one level at a time, whatever is odd about it.
    fn of_any(json: &'a str) -> Option<Self> {
        let entry = Object::of(json)?;
        let wrapped = match entry.string("role") {
            Some(_) => None,
            None => entry.get("message").and_then(|it| Object::of(it.get())),
        };
        let body = wrapped.as_ref().unwrap_or(&entry);
        let content = match wrapped {
            Some(_) => body.get("content"),
            None => body.get("content").or_else(|| body.get("message")),
        };
        let role = body.string("role").map(Role::named);
        let role = speaker(entry.string("role").is_some(), entry.string("type"), role)?;
        // `{"type":"system","subtype":"init"}` and `{"type":"member","role":"owner"}` are about
        // something else; `{"role":"assistant"}` is a message that was left empty.
        let says_nothing = content.is_none() && body.get("tool_calls").is_none();
        if says_nothing && (body.string("role").is_none() || matches!(role, Role::Other(_))) {
            return None;
        }
        Some(Self {
            blocks: blocks(&role, body, content),
            role,
            uuid: entry.string("uuid"),
            parent_uuid: entry.string("parentUuid"),
            timestamp: entry.string("timestamp"),
            model: body.string("model").or_else(|| entry.string("model")),
        })
    }

    /// Returns the text blocks joined by blank lines: what a person would read.
    pub fn text(&self) -> Cow<'_, str> {
        block::joined(self.blocks.iter().filter_map(|block| match block {
            Block::Text(text) => Some(Cow::Borrowed(&**text)),
            _ => None,
        }))
    }

    /// Returns the tool calls the message asks for.
    pub fn tool_uses(&self) -> impl Iterator<Item = &ToolUse<'a>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolUse(tool_use) => Some(tool_use),
            _ => None,
        })
    }

    /// Returns the answers of tools that the message brings.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult<'a>> {
        self.blocks.iter().filter_map(|block| match block {
            Block::ToolResult(tool_result) => Some(tool_result),
            _ => None,
        })
    }
}

impl<'a> Role<'a> {
    /// Returns the role's name as entries write it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::System => "system",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }

    fn named(name: Cow<'a, str>) -> Self {
        match &*name {
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "system" => Self::System,
            "tool" => Self::Tool,
            _ => Self::Other(name),
        }
    }
}

/// Returns who speaks in an entry of a type whose message has a role, or `None` if it is no speaker's.
fn speaker<'a>(flat: bool, kind: Option<Cow<'a, str>>, role: Option<Role<'a>>) -> Option<Role<'a>> {
    if flat {
        return role;
    }
    // Claude's requests for replay hold messages too, so the type must be one that speaks.
    match kind {
        Some(kind) if matches!(&*kind, "user" | "assistant" | "system") => {
            role.or_else(|| Some(Role::named(kind)))
        }
        Some(kind) if kind != "message" => None,
        _ => role,
    }
}

/// Returns the blocks of `content`, then those of the body's `tool_calls`.
fn blocks<'a>(role: &Role<'a>, body: &Object<'a>, content: Option<&'a RawValue>) -> Vec<Block<'a>> {
    let mut blocks = match body.string("tool_call_id") {
        Some(id) if *role == Role::Tool => {
            vec![Block::ToolResult(ToolResult::new(id, content, body.get("is_error")))]
        }
        _ => content.map_or_else(Vec::new, Block::all_of),
    };
    blocks.extend(body.get("tool_calls").into_iter().flat_map(Block::all_of_calls));
    blocks
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CLAUDE: &str = r#"{"parentUuid":"p","type":"assistant","uuid":"u","timestamp":"t","message":{
        "id":"msg_1","role":"assistant","model":"opus","usage":{"input_tokens":3},"content":[
        {"type":"thinking","thinking":"hm","signature":"sig"},
        {"type":"text","text":"a \"b\" é","cache_control":{}},
        {"type":"tool_use","id":"c1","name":"Read","input":{"path": "x"}},
        {"type":"image","source":{"data":"AA=="}},
        {"type":"tool_result","tool_use_id":"c0","content":[{"type":"text","text":"ok"}],"is_error":true},
        {"type":"server_tool_use", "id":7}]},"_rt":"1 4 3 4 e u 0 c0ffee"}"#;

    /// Writes a block on one line, so that a message's blocks compare as a whole.
    fn line(block: &Block<'_>) -> String {
        match block {
            Block::Text(text) => format!("text {text}"),
            Block::Thinking { thinking, signature } => format!("thinking {thinking} {signature:?}"),
            Block::ToolUse(tool) => format!("use {} {} {}", tool.id, tool.name, tool.input),
            Block::ToolResult(result) => {
                let failed = if result.is_error { " failed" } else { "" };
                format!("result {} {}{failed}", result.tool_use_id, result.content)
            }
            Block::Image(json) => format!("image {json}"),
            Block::Other(json) => format!("other {json}"),
        }
    }

    #[track_caller]
    fn lines(entry: &str) -> Vec<String> {
        let message = Message::of(entry.as_bytes()).expect(entry);
        message.blocks.iter().map(line).collect()
    }

    #[test]
    fn whichever_reader_takes_an_entry_it_says_the_same() {
        let usual = [
            r#"{"parentUuid":null,"type":"user","uuid":"u","message":{"role":"user","model":"m","content":["#,
            r#"{"type":"text","text":"a\n\ud83e\uddf5"}, {"type":"thinking","thinking":"hm"},"#,
            r#"{"type":"tool_use","id":"c1","name":"Read","input":null},"#,
            r#"{"type":"tool_result","tool_use_id":"c0","content":"x","is_error":false}]},"toolUseResult":["x"]}"#,
        ];
        let usual = &usual.concat();
        let flat =
            r#"{"role":"assistant","content":"Hi!","model":"m","tool_calls":[{"id":"c","name":"ls"}]}"#;
        for json in [usual, flat] {
            let (quick, slow) =
                (usual::message(json.as_bytes()).expect("a usual one"), Message::of_any(json).expect("one"));
            assert_eq!(format!("{quick:?}"), format!("{slow:?}"));
        }
        for odd in [
            CLAUDE,
            r#"["user","u",null,null,null,null,null,"x"]"#,
            r#"{"type":"user","message":["user",null,"x",null,null]}"#,
            r#"{"role":"user","content":[["text","x",null,null,null,null,null,null,null,null]]}"#,
            r#"{"role":"user","role":"assistant","content":"x"}"#,
            r#"{"role":"tool","tool_call_id":"c","content":"x"}"#,
            r#"{"role":"user","message":"x"}"#,
            r#"{"role":"user","uuid":1,"content":"x"}"#,
            r#"{"type":"summary","message":{"role":"user","content":"x"}}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"user","content":"\ud83d"}"#,
            r#"{"role":"user","content":"x"} {}"#,
        ] {
            assert!(usual::message(odd.as_bytes()).is_none(), "{odd}");
        }
    }

    proptest! {
        /// Whatever is done to an entry: what is read quickly is what is read slowly.
        #[test]
        fn the_quick_reader_never_says_anything_else(at: prop::sample::Index, part in prop::sample::select(PARTS), how in 0..3) {
            let mut json = QUICK.to_owned();
            let at = at.index(json.len());
            match how {
                0 => json.insert_str(at, part),
                1 => json.replace_range(at..=at, part),
                _ => json = json.replace(&QUICK[at..(at + 9).min(QUICK.len())], part),
            }
            if let Some(quick) = usual::message(json.as_bytes()) {
                prop_assert_eq!(format!("{quick:?}"), format!("{:?}", Message::of_any(&json).expect("a message")));
            }
        }
    }

    const QUICK: &str = concat!(
        r#"{"parentUuid":null,"type":"assistant","uuid":"u","role":null,"message":{"role":"assistant","model":"m","#,
        r#""content":[{"type":"text","text":"a\"b"},{"type":"tool_use","id":"c","name":"n","input":{"a": [1]}},"#,
        r#"{"type":"tool_result","tool_use_id":"c","content":[],"is_error":true}],"tool_calls":[]},"timestamp":"t"}"#
    );
    const PARTS: &[&str] = &[
        "",
        " ",
        ",",
        "\"",
        "null",
        "{}",
        "[]",
        "1",
        "\\",
        "\\u00e9",
        "\\ud83d",
        "x",
        "\"role\":\"user\",",
        "\"content\":\"x\",",
        "\"tool_call_id\":\"c\",",
        "\"message\":null,",
        "\"model\":\"o\",",
        "image",
        "user",
        "summary",
        "message",
        "text",
        "\t",
    ];

    #[test]
    fn claudes_shape_is_understood_and_what_is_unknown_stays_as_it_was() {
        let message = Message::of(CLAUDE.as_bytes()).expect("a message");

        assert_eq!(message.role, Role::Assistant);
        let (uuid, parent_uuid) = (message.uuid.as_deref(), message.parent_uuid.as_deref());
        assert_eq!((uuid, parent_uuid), (Some("u"), Some("p")));
        let (timestamp, model) = (message.timestamp.as_deref(), message.model.as_deref());
        assert_eq!((timestamp, model), (Some("t"), Some("opus")));
        let expected = [
            r#"thinking hm Some("sig")"#,
            r#"text a "b" é"#,
            r#"use c1 Read {"path": "x"}"#,
            r#"image {"type":"image","source":{"data":"AA=="}}"#,
            r#"result c0 [{"type":"text","text":"ok"}] failed"#,
            r#"other {"type":"server_tool_use", "id":7}"#,
        ];
        assert_eq!(lines(CLAUDE), expected);
    }

    #[test]
    fn the_flat_shape_is_understood() {
        let call = r#"{"uuid":"u","timestamp":"t","role":"assistant","content":"Hi!","tool_calls":[
            {"id":"c1","type":"function","function":{"name":"grep","arguments":{"q":1}}},
            {"id":"c2","name":"ls","input":null}]}"#;
        assert_eq!(lines(call), ["text Hi!", r#"use c1 grep {"q":1}"#, "use c2 ls null"]);

        let answer = r#"{"role":"tool","tool_call_id":"c1","content":"two\nlines"}"#;
        assert_eq!(lines(answer), [r#"result c1 "two\nlines""#]);

        let custom = Message::of(br#"{"role":"critic","content":["a",{"type":"text","text":"b"}]}"#);
        let custom = custom.expect("an unknown role may speak");
        assert_eq!((custom.role.as_str(), &*custom.text()), ("critic", "a\n\nb"));
    }

    #[test]
    fn arguments_in_a_string_are_given_as_the_json_they_hold() {
        let call = |arguments: &str| {
            let function = format!(r#"{{"name":"f","arguments":{arguments}}}"#);
            lines(&format!(r#"{{"role":"assistant","tool_calls":[{{"id":"c","function":{function}}}]}}"#))
        };
        assert_eq!(call(r#""{\"a\": [1]}""#), [r#"use c f {"a": [1]}"#]);
        assert_eq!(call(r#""{\"a\": [1""#), [r#"use c f "{\"a\": [1""#]);
        assert_eq!(call(r#""""#), [r#"use c f """#]);
    }

    #[test]
    fn half_a_surrogate_pair_reads_as_a_replacement_character() {
        let entry = r#"{"\udfff":"\ud83d","role":"user","uuid":"\ude00\ud83d","content":[
            {"type":"text","text":"\ud83d|\ud83d\ude00|\ud83d\n|\ud83d\u0041|\ud83d\ud83d\ude00|\ude00é"},
            {"type":"new","\ud83d":"\ud83d"}]}"#;
        let message = Message::of(entry.as_bytes()).expect("a message");

        assert_eq!(message.uuid.as_deref(), Some("\u{fffd}\u{fffd}"));
        let text = "text \u{fffd}|😀|\u{fffd}\n|\u{fffd}A|\u{fffd}😀|\u{fffd}é";
        assert_eq!(lines(entry), [text, r#"other {"type":"new","\ud83d":"\ud83d"}"#]);
    }

    #[test]
    fn a_field_of_another_type_does_not_hide_the_rest() {
        let entry = r#"{"uuid":1,"timestamp":{},"type":"user","message":{"role":[],"model":false,
            "tool_calls":"none","content":[null,4,[],{},{"type":"text","text":5},
            {"type":"tool_use","id":"c"},{"type":"tool_result","tool_use_id":"c","is_error":"yes"},{"type":6}]}}"#;
        let message = Message::of(entry.as_bytes()).expect("a message");

        assert_eq!(message.role, Role::User);
        assert_eq!([message.uuid, message.timestamp, message.model], [None, None, None]);
        let expected = [
            "other null",
            "other 4",
            "other []",
            "other {}",
            r#"other {"type":"text","text":5}"#,
            r#"other {"type":"tool_use","id":"c"}"#,
            "result c null",
            r#"other {"type":6}"#,
            r#"other "none""#,
        ];
        assert_eq!(lines(entry), expected);
    }

    #[test]
    fn content_need_not_be_an_array_nor_a_message_an_object() {
        assert_eq!(lines(r#"{"role":"user","content":17}"#), ["other 17"]);
        assert_eq!(lines(r#"{"type":"user","message":"hi"}"#), ["text hi"]);
        assert_eq!(lines(r#"{"role":"assistant"}"#), [""; 0]);
    }

    #[test]
    fn the_last_member_of_a_name_wins_and_escaped_names_count() {
        assert_eq!(lines(r#"{"role":"user","content":"a","c\u006fntent":"b"}"#), ["text b"]);
    }

    #[test]
    fn a_tool_result_reads_as_text_whatever_it_holds() {
        let text = |content: &str| {
            let entry = format!(r#"{{"role":"tool","tool_call_id":"c","content":{content}}}"#);
            let message = Message::of(entry.as_bytes()).expect("a message");
            let texts: Vec<_> = message.tool_results().map(|it| it.text().into_owned()).collect();
            texts.concat()
        };
        assert_eq!(text(r#""plain""#), "plain");
        assert_eq!(
            text(r#"[{"type":"text","text":"a"},{"type":"image"},{"type":"text","text":"b"}]"#),
            "a\n\nb"
        );
        assert_eq!(text(r#"{"exit": 0}"#), r#"{"exit": 0}"#);
        assert_eq!(text(r#"[{"type":"new"}]"#), "");
        assert_eq!(text("null"), "");
    }

    #[test]
    fn what_is_not_a_message_gives_none() {
        for entry in [
            r#"{"type":"summary","summary":"A cache","leafUuid":"u"}"#,
            r#"{"type":"file-history-snapshot","messageId":"u","snapshot":{}}"#,
            r#"{"type":"queue-operation","operation":"enqueue","content":"hi"}"#,
            r#"{"type":"api-request-blob","hash":"h","message":{"role":"user","content":"hi"}}"#,
            r#"{"type":"system","subtype":"init","model":"opus"}"#,
            r#"{"type":"user","message":{}}"#,
            r#"{"type":"member","role":"owner"}"#,
            r#"{"role":7,"content":"hi"}"#,
            r#"{"role":"user","content":"hi"} {}"#,
            "[]",
            "null",
            "\"user\"",
            "",
        ] {
            assert!(Message::of(entry.as_bytes()).is_none(), "{entry}");
        }
        assert!(Message::of(b"{\"role\":\"user\",\"content\":\"\xff\"}").is_none());
    }

    #[test]
    fn a_system_entry_of_claudes_speaks_through_its_own_content() {
        let entry = br#"{"type":"system","subtype":"compact_boundary","content":"Compacted"}"#;
        let message = Message::of(entry).expect("a message");
        assert_eq!((message.role.as_str(), &*message.text()), ("system", "Compacted"));
    }

    #[test]
    fn no_cut_no_flipped_byte_and_no_depth_panics() {
        let whole = CLAUDE.as_bytes();
        for end in 0..whole.len() {
            assert!(Message::of(&whole[..end]).is_none(), "cut at {end}");
            for byte in [b'"', b'\\', b'{', b'[', b'0', b'\n', 0xED] {
                let mut damaged = whole.to_vec();
                damaged[end] = byte;
                for result in Message::of(&damaged).iter().flat_map(Message::tool_results) {
                    result.text();
                }
            }
        }
        let deep = "[".repeat(500_000) + &"]".repeat(500_000);
        let entry = format!(r#"{{"role":"user","content":[{deep}]}}"#);
        assert_eq!(lines(&entry), [format!("other {deep}")]);
    }
}
