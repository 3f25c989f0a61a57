//! What the end of a transcript tells.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::envelope::Strict;
use crate::recent::Recent;
use crate::skim::lines_from_the_end;
use crate::text::Text;

/// How many entries from the end are looked at for the model.
const RECENT: usize = 8;
/// Since when Claude Code writes everything about a session again with the last prompt that does not stand shortly before:
/// names, tag and where it was moved to, and what others have added of that meanwhile.
const WRITES_ALL_AGAIN: [u32; 3] = [2, 1, 300];

/// What the end of a transcript tells. A text is empty where the last line of its kind takes it away.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ending<T = String> {
    pub(crate) custom_title: Option<T>,
    pub(crate) ai_title: Option<T>,
    pub(crate) last_prompt: Option<T>,
    pub(crate) summary: Option<T>,
    pub(crate) tag: Option<T>,
    pub(crate) branch: Option<T>,
    pub(crate) model: Option<T>,
    pub(crate) relocated: Option<T>,
    /// The last line is no entry, or has no end.
    pub(crate) is_torn: bool,
    /// There is not a single entry among the lines.
    pub(crate) is_unreadable: bool,
}

/// The members that tell something at the end.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct LastLine<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Text<'a>>,
    #[serde(borrow)]
    git_branch: Option<Text<'a>>,
    #[serde(borrow)]
    custom_title: Option<Text<'a>>,
    #[serde(borrow)]
    ai_title: Option<Text<'a>>,
    #[serde(borrow)]
    last_prompt: Option<Text<'a>>,
    /// Only the branch was chosen; nothing is written again with it.
    explicit: Option<IgnoredAny>,
    #[serde(borrow)]
    summary: Option<Text<'a>>,
    #[serde(borrow)]
    tag: Option<Text<'a>>,
    #[serde(borrow)]
    relocated_cwd: Option<Text<'a>>,
    #[serde(borrow)]
    message: Option<Answered<'a>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Answered<'a> {
    #[serde(borrow)]
    model: Option<Text<'a>>,
}

impl<T> Ending<T> {
    /// Returns the same with its texts kept in another way.
    pub(crate) fn with<'s, U>(&'s self, text: impl Fn(&'s T) -> U) -> Ending<U> {
        let text = |of: &'s Option<T>| of.as_ref().map(&text);
        Ending {
            custom_title: text(&self.custom_title),
            ai_title: text(&self.ai_title),
            last_prompt: text(&self.last_prompt),
            summary: text(&self.summary),
            tag: text(&self.tag),
            branch: text(&self.branch),
            model: text(&self.model),
            relocated: text(&self.relocated),
            is_torn: self.is_torn,
            is_unreadable: self.is_unreadable,
        }
    }
}

impl Ending {
    /// Reads the last lines, the first of which is whole.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        EndingReader::read(bytes).end()
    }

    /// Reads the last lines, the first of which is whole, of a session that Claude Code has left: it then writes the last
    /// prompt within so many bytes of the end. Returns nothing if older lines could tell more.
    pub(crate) fn of_left(bytes: &[u8], within: u64) -> Option<Self> {
        let read = EndingReader::read(bytes);
        (read.was_left() && read.prompt_from_end <= within).then(|| read.end())
    }

    /// Takes what an earlier part of the file knows better. What that is called counts less than what lies beside the file.
    pub(crate) fn add_older(&mut self, older: Ending) {
        let places = [
            (&mut self.tag, older.tag),
            (&mut self.branch, older.branch),
            (&mut self.model, older.model),
            (&mut self.relocated, older.relocated),
        ];
        for (place, older) in places {
            *place = place.take().or(older);
        }
        self.is_unreadable &= older.is_unreadable;
    }
}

/// Reads the last lines of a transcript, from the end.
#[derive(Debug, Default)]
struct EndingReader {
    ending: Ending,
    recent: Recent,
    /// How many entries were looked at for what is recent.
    looked_at: usize,
    /// The last prompt was written again, and nothing was said since: by the version that wrote what was said last.
    is_written_again: bool,
    /// How far from the end that begins.
    prompt_from_end: u64,
}

impl EndingReader {
    fn read(bytes: &[u8]) -> Self {
        let (mut reader, mut readable, mut from_end) = (Self::default(), false, 0);
        for (at, (line, is_ended)) in lines_from_the_end(bytes).enumerate() {
            from_end += line.len() as u64 + 1;
            if line.is_empty() {
                continue;
            }
            let kind = kind_of(line);
            let is_about_session = kind.is_some_and(is_telling) || kind.is_none() && !is_chained(line);
            let is_last = at == 0 && !is_ended;
            if is_about_session || is_last {
                let read = serde_json::from_slice::<Strict<LastLine<'_>>>(line);
                reader.ending.is_torn |= is_last && read.is_err();
                readable |= read.is_ok();
                if let Ok(Strict(line)) = read {
                    let was_written_again = reader.is_written_again;
                    reader.older(line);
                    if reader.is_written_again && !was_written_again {
                        reader.prompt_from_end = from_end;
                    }
                }
            } else if reader.wants_recent() {
                // There may be any number of others in between, which tell neither model nor branch.
                reader.looked_at += usize::from(kind.is_none_or(is_said));
                readable |= reader.recent.read(line);
            } else {
                readable = true;
            }
        }
        reader.ending.is_unreadable = !readable && !bytes.is_empty();
        reader
    }

    /// Takes a line that is older than those before it.
    fn older(&mut self, line: LastLine<'_>) {
        let own = |text: Option<Text<'_>>| text.map(|Text(text)| text.into_owned());
        let ending = &mut self.ending;
        match line.kind.as_ref().map_or("", Text::as_str) {
            "custom-title" => ending.custom_title = ending.custom_title.take().or(own(line.custom_title)),
            "ai-title" => ending.ai_title = ending.ai_title.take().or(own(line.ai_title)),
            "last-prompt" => {
                // One that only names a branch comes alone.
                let is_alone = line.explicit.is_some() || line.last_prompt.is_none();
                self.is_written_again |= !is_alone && self.looked_at == 0;
                ending.last_prompt = ending.last_prompt.take().or(own(line.last_prompt));
            }
            "summary" => ending.summary = ending.summary.take().or(own(line.summary)),
            "tag" => ending.tag = ending.tag.take().or(own(line.tag)),
            "relocated" => ending.relocated = ending.relocated.take().or(own(line.relocated_cwd)),
            _ => {}
        }
        self.recent.take_branch(line.git_branch);
        self.recent.take_model(line.message.and_then(|message| message.model));
    }

    /// Returns whether more entries are to be looked at for what is recent.
    fn wants_recent(&self) -> bool {
        self.looked_at < RECENT && !self.recent.is_complete()
    }

    fn was_left(&self) -> bool {
        let has_prompt = self.ending.last_prompt.as_ref().is_some_and(|prompt| !prompt.is_empty());
        let writes_all_again = self.recent.version.as_deref().is_some_and(writes_all_again);
        // If the last line is torn, it may have been one of those that were being written again.
        let is_whole = self.is_written_again && !self.ending.is_torn;
        is_whole && has_prompt && writes_all_again && !self.wants_recent()
    }

    fn end(self) -> Ending {
        Ending { branch: self.recent.branch, model: self.recent.model, ..self.ending }
    }
}

/// Returns whether a version of Claude Code is one that writes everything again.
fn writes_all_again(version: &str) -> bool {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let version: [u32; 3] = std::array::from_fn(|_| numbers.next().unwrap_or(0));
    version >= WRITES_ALL_AGAIN
}

/// Returns an entry's type where it comes first, as it does in lines about the session.
fn kind_of(line: &[u8]) -> Option<&[u8]> {
    let rest = line.strip_prefix(b"{\"type\":\"")?;
    memchr::memchr(b'"', &rest[..rest.len().min(40)]).map(|end| &rest[..end])
}

fn is_telling(kind: &[u8]) -> bool {
    matches!(kind, b"custom-title" | b"ai-title" | b"last-prompt" | b"summary" | b"tag" | b"relocated")
}

/// Returns whether entries of a type are part of the conversation.
fn is_said(kind: &[u8]) -> bool {
    matches!(kind, b"user" | b"assistant" | b"system" | b"attachment")
}

pub(crate) fn is_chained(line: &[u8]) -> bool {
    line.starts_with(b"{\"parentUuid\":") || line.starts_with(b"{\"uuid\":")
}
