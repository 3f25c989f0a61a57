//! What the beginning of a transcript tells.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::{self, Finder};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ending::{Ending, is_chained};
use crate::envelope::Strict;
use crate::message::Block;
use crate::text::{Text, beginning_of, cut};

/// How much of a prompt is kept, in characters, as in the official SDKs.
const PROMPT: usize = 200;
/// How much of a prompt is looked at, in bytes.
const LOOKED_AT: usize = 4096;
/// How much of a prompt is nearly always enough to know what is kept of it, in bytes.
const USUALLY_ENOUGH: usize = 512;

/// What the beginning of a transcript tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Opening<T = String> {
    pub(crate) cwd: Option<T>,
    /// When the first line was written that says so.
    pub(crate) began_at: Option<T>,
    pub(crate) first_prompt: Option<T>,
    /// The first entry of the conversation: forks share it.
    pub(crate) root: Option<T>,
    pub(crate) forked_from: Option<T>,
    pub(crate) branch: Option<T>,
    /// The repository's directory, for a session in a worktree.
    pub(crate) worktree_of: Option<T>,
    pub(crate) version: Option<T>,
    /// What a person called it, last; it may have another name since.
    pub(crate) custom_title: Option<T>,
    /// What the model called it, last.
    pub(crate) ai_title: Option<T>,
}

/// The members that tell something at the beginning.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FirstLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    uuid: Option<Text<'a>>,
    #[serde(borrow)]
    cwd: Option<Text<'a>>,
    #[serde(borrow)]
    timestamp: Option<Text<'a>>,
    #[serde(borrow)]
    git_branch: Option<Text<'a>>,
    #[serde(borrow)]
    version: Option<Text<'a>>,
    is_meta: Option<bool>,
    is_compact_summary: Option<bool>,
    #[serde(borrow)]
    message: Option<Said<'a>>,
    #[serde(borrow)]
    worktree_session: Option<Worktree<'a>>,
    #[serde(borrow)]
    forked_from: Option<Forked<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Said<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Worktree<'a> {
    #[serde(borrow)]
    original_cwd: Option<Text<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Forked<'a> {
    #[serde(borrow)]
    session_id: Option<Text<'a>>,
}

impl<T> Opening<T> {
    /// Returns the same with its texts kept in another way.
    pub(crate) fn with<'s, U>(&'s self, text: impl Fn(&'s T) -> U) -> Opening<U> {
        let text = |of: &'s Option<T>| of.as_ref().map(&text);
        Opening {
            cwd: text(&self.cwd),
            began_at: text(&self.began_at),
            first_prompt: text(&self.first_prompt),
            root: text(&self.root),
            forked_from: text(&self.forked_from),
            branch: text(&self.branch),
            worktree_of: text(&self.worktree_of),
            version: text(&self.version),
            custom_title: text(&self.custom_title),
            ai_title: text(&self.ai_title),
        }
    }
}

/// Reads the first lines of a transcript until it knows what was asked first.
#[derive(Debug, Default)]
pub(crate) struct OpeningReader {
    opening: Opening,
    /// The first command, should there be no prompt.
    command: Option<String>,
    /// Up to where everything was looked at.
    read: usize,
}

impl OpeningReader {
    /// Looks at what is new since the last call. The last line may be cut off. Returns whether that was enough.
    pub(crate) fn read(&mut self, bytes: &[u8]) -> bool {
        while self.opening.first_prompt.is_none()
            && let Some(length) = memchr(b'\n', &bytes[self.read..])
        {
            let line = &bytes[self.read..self.read + length];
            self.read += length + 1;
            if !self.opening.is_settled() || may_tell_more(line) {
                self.opening.line(line, &mut self.command);
            }
        }
        self.opening.first_prompt.is_some()
    }

    /// Returns whether the line that is cut off is one that is wanted: what was asked first, or the first that would say
    /// where.
    pub(crate) fn is_within_a_prompt(&self, bytes: &[u8]) -> bool {
        let line = &bytes[self.read..];
        let begins = &line[..line.len().min(LOOKED_AT)];
        line.starts_with(b"{\"") && (self.opening.cwd.is_none() || may_tell_more(begins))
    }

    /// Returns what there is to know, the line that is cut off included.
    pub(crate) fn end(mut self, bytes: &[u8]) -> Opening {
        if !self.read(bytes) && !self.opening.line(&bytes[self.read..], &mut self.command) {
            self.opening.cut_line(&bytes[self.read..]);
        }
        Opening { first_prompt: self.opening.first_prompt.or(self.command), ..self.opening }
    }
}

impl Opening {
    /// Takes the names that stand in some of the first lines.
    pub(crate) fn named_in(self, lines: &Ending) -> Self {
        Self { custom_title: lines.custom_title.clone(), ai_title: lines.ai_title.clone(), ..self }
    }

    /// Returns whether all is known that every line of the conversation says.
    fn is_settled(&self) -> bool {
        self.root.is_some() && self.cwd.is_some() && self.began_at.is_some()
    }

    /// Takes a line. Returns whether it is one.
    fn line(&mut self, line: &[u8], command: &mut Option<String>) -> bool {
        let Some(Strict(line)) = parsed::<Strict<FirstLine<'_>>>(line) else { return false };
        let own = |text: Option<Text<'_>>| text.map(|Text(text)| text.into_owned());
        let kind = line.kind.as_ref().map_or("", Text::as_str);
        let is_chained = matches!(kind, "user" | "assistant" | "system" | "attachment");
        self.root = self.root.take().or(own(line.uuid).filter(|_| is_chained));
        self.cwd = self.cwd.take().or(own(line.cwd));
        self.began_at = self.began_at.take().or(own(line.timestamp));
        self.branch = self.branch.take().or(own(line.git_branch).filter(|branch| !branch.is_empty()));
        self.version = self.version.take().or(own(line.version));
        self.worktree_of =
            self.worktree_of.take().or(line.worktree_session.and_then(|it| own(it.original_cwd)));
        self.forked_from = self.forked_from.take().or(line.forked_from.and_then(|it| own(it.session_id)));
        let hidden = line.is_meta == Some(true) || line.is_compact_summary == Some(true);
        if kind == "user"
            && !hidden
            && let Some(content) = line.message.and_then(|message| message.content)
        {
            self.first_prompt = prompt_in(content, command);
        }
        true
    }

    /// Takes what can be had of a line that is longer than what was read.
    fn cut_line(&mut self, line: &[u8]) {
        for (name, place) in [("\"cwd\":\"", &mut self.cwd), ("\"timestamp\":\"", &mut self.began_at)] {
            if place.is_none()
                && let Some(at) = memmem::find(line, name.as_bytes())
                && let Some(text) = crate::text::leading_string(&line[at + name.len() - 1..])
            {
                *place = Some(text);
            }
        }
    }
}

/// Returns whether a line may be a prompt, or say where its session was begun, once the first of the conversation is known:
/// that one says whether it is a fork. Most are answers and tools' results, and reading those is most of the work.
fn may_tell_more(line: &[u8]) -> bool {
    let has = |finder: &Finder<'_>| finder.find(line).is_some();
    (has(&USER) && !has(&RESULT) && !has(&OLDER_RESULT)) || (!is_chained(line) && has(&WORKTREE))
}

static USER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("user\""));
/// A message that begins with a tool's result is no prompt, whatever follows.
static RESULT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"content\":[{\"tool_use_id\":"));
static OLDER_RESULT: LazyLock<Finder<'static>> =
    LazyLock::new(|| Finder::new("\"content\":[{\"type\":\"tool_result\""));
static WORKTREE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\"worktreeSession\""));
static COMMAND: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("command-name>"));

/// Reads a line. One that is text throughout is checked for that once, and fast.
fn parsed<'a, L: Deserialize<'a>>(line: &'a [u8]) -> Option<L> {
    match simdutf8::basic::from_utf8(line) {
        Ok(text) => serde_json::from_str(text).ok(),
        Err(_) => serde_json::from_slice(line).ok(),
    }
}

/// Returns the first thing that a person really typed, as one line.
fn prompt_in(content: &RawValue, command: &mut Option<String>) -> Option<String> {
    usual_prompt_in(content.get()).or_else(|| any_prompt_in(content, command))
}

fn any_prompt_in(content: &RawValue, command: &mut Option<String>) -> Option<String> {
    // Nobody reads more of a prompt than a line, and it may have megabytes.
    if let Some(text) = beginning_of(content.get(), 2 * LOOKED_AT).filter(|text| !text.trim().is_empty()) {
        return typed(&text, command);
    }
    let blocks = Block::all_of(content);
    if blocks.iter().any(|block| matches!(block, Block::ToolResult { .. })) {
        return None;
    }
    let mut texts =
        blocks.iter().filter_map(|block| if let Block::Text(text) = block { Some(text) } else { None });
    texts.find_map(|text| typed(text, command))
}

/// Returns the same for nearly all prompts, with less work: a long text is read no further than what is kept of it.
fn usual_prompt_in(content: &str) -> Option<String> {
    if COMMAND.find(cut(content, 2 * LOOKED_AT).as_bytes()).is_some() {
        return None;
    }
    let mut letters = cut(content, USUALLY_ENOUGH).strip_prefix('"')?.chars();
    let (mut line, mut units) = (String::with_capacity(PROMPT + 64), 0);
    loop {
        let letter = match letters.next()? {
            '"' => return None,
            '\\' => match letters.next()? {
                'n' => ' ',
                't' => '\t',
                escaped @ ('"' | '\\' | '/') => escaped,
                _ => return None,
            },
            letter => letter,
        };
        match (letter, units) {
            (blank, 0) if blank.is_whitespace() => continue,
            // What a program said in a person's place begins so.
            ('<' | '[', 0) => return None,
            _ => units += letter.len_utf16(),
        }
        match units > PROMPT {
            false => line.push(letter),
            // Nothing but blanks may follow, so that nothing was cut off.
            true if letter.is_whitespace() => {}
            true => return Some(format!("{}…", line.trim_end())),
        }
    }
}

/// Returns a text as one line, if a person typed it.
fn typed(text: &str, command: &mut Option<String>) -> Option<String> {
    let text = cut(text.trim_start(), LOOKED_AT).replace('\n', " ");
    let text = text.trim();
    if let Some(name) = between(text, "<command-name>", "</command-name>") {
        command.get_or_insert_with(|| name.to_owned());
        return None;
    }
    (!text.is_empty() && !is_automatic(text)).then(|| shortened(text))
}

/// Cuts a text as the official SDKs do.
pub(crate) fn shortened(text: &str) -> String {
    // They count UTF-16 units, of which a text never has more than bytes.
    if text.len() <= PROMPT || text.encode_utf16().take(PROMPT + 1).count() <= PROMPT {
        return text.to_owned();
    }
    let mut units = 0;
    let kept = text.char_indices().find(|(_, letter)| {
        units += letter.len_utf16();
        units > PROMPT
    });
    format!("{}…", text[..kept.map_or(text.len(), |(at, _)| at)].trim_end())
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let from = memmem::find(text.as_bytes(), open.as_bytes())? + open.len();
    text[from..].split_once(close).map(|(name, _)| name)
}

/// Returns whether a program said it in a person's place.
fn is_automatic(text: &str) -> bool {
    let begins = [
        "<local-command-stdout>",
        "<session-start-hook>",
        "<tick>",
        "<goal>",
        "[Request interrupted by user",
    ];
    let whole = [("<ide_opened_file>", "</ide_opened_file>"), ("<ide_selection>", "</ide_selection>")];
    begins.iter().any(|begin| text.starts_with(begin))
        || whole.iter().any(|(open, close)| text.starts_with(open) && text.ends_with(close))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reading less of a prompt must not find another one.
    #[test]
    fn a_prompt_is_the_same_however_little_of_it_is_read() {
        let beginnings = ["", " \n\t ", "<goal>", "[Request interrupted by user", "\u{1}", "\\/\"", "é"];
        let middles = ["a", "é", "日", "🚀", "a ", "a\n", "\\a", "🚀a"];
        let ends = ["", " ", "\n\n", "x", " x", "<command-name>/x</command-name>", "🚀", "\u{b}"];
        let lengths = [1, 66, 99, 100, 101, 133, 134, 198, 199, 200, 201, 202, 700, 5000];
        let bodies = middles.map(|middle| lengths.map(|length| middle.repeat(length))).concat();
        let with_end = |body: &String| ends.map(|end| format!("{body}{end}"));
        let texts: Vec<String> = bodies.iter().flat_map(with_end).collect();
        let mut usual = 0;
        for text in beginnings.iter().flat_map(|begin| texts.iter().map(move |text| format!("{begin}{text}")))
        {
            let content = serde_json::value::to_raw_value(&text).unwrap();
            let Some(prompt) = usual_prompt_in(content.get()) else { continue };
            usual += 1;
            let mut command = None;
            assert_eq!((Some(prompt), None), (any_prompt_in(&content, &mut command), command));
        }
        assert!(usual > 100, "only {usual} were read as usual ones are");
    }
}
