//! A conversation of Claude Code's own, for people and for programs.

use std::collections::HashSet;

use rethread_transcripts::{Chain, Entry, Event, From, Means, Transcript, Watch};
use serde_json::Value;

use super::subagent;
use crate::context::Context;
use crate::conversation::Conversation;
use crate::failure::{Done, Failure};
use crate::named::ambiguous;
use crate::text::one_line;
use crate::ui::{Answer, Tone, Ui};

/// How many lines of a change are shown.
const DIFF: usize = 12;

/// What is shown of a session, and how.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Only up to this entry, which an id or the beginning of one names.
    pub(crate) at: Option<String>,
    /// Every entry of every branch.
    pub(crate) all: bool,
    /// A subagent instead of the session itself.
    pub(crate) subagent: Option<String>,
    pub(crate) form: Form,
}

/// How a conversation is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Conversation,
    /// Each message as `{role, content, timestamp, uuid}`.
    Messages,
    /// Lines as they stand in the file.
    Raw,
}

/// Shows a session.
pub(crate) fn show(id: &str, part: &Part, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let mut transcript = Transcript::open(context.native.claude()?.find(id)?)?;
    let mut chain = None;
    if let Some(typed) = &part.subagent {
        (transcript, chain) = subagent::find(transcript, typed)?;
    }
    let chain = match &part.at {
        _ if chain.is_some() => chain.unwrap_or_default(),
        Some(entry) => transcript.chain_to(&find_entry(&transcript, entry)?)?,
        None if part.all => transcript.all(),
        None => transcript.active(),
    };
    match part.form {
        Form::Conversation if part.all => show_tree(&transcript, ui)?,
        Form::Conversation => converse(&transcript, &chain, ui)?,
        Form::Messages => {
            for message in transcript.messages(&chain)? {
                let json = serde_json::to_vec(&message);
                ui.data(&json.unwrap_or_else(|_| unreachable!("a message is made of what JSON can hold")))?;
            }
        }
        Form::Raw if part.all => {
            let mut done = Ok(());
            transcript.each_line(|line| {
                if done.is_ok() {
                    done = ui.data(line);
                }
            })?;
            done?;
        }
        Form::Raw => {
            let mut reader = transcript.read(&chain);
            while let Some(entry) = reader.next().transpose()? {
                ui.data(entry.raw())?;
            }
        }
    }
    let damaged = transcript.faults().into_iter().filter(|fault| fault.kind.is_damage()).count();
    if damaged == 0 {
        return Ok(Done::Fully);
    }
    ui.warn(&format!(
        "{} in the transcript; what can be read is shown",
        crate::text::count(damaged as u64, "fault")
    ));
    ui.hint(&format!("{} says where", context.command(&format!("doctor {}", context.short_of(id)))));
    Ok(Done::Partly)
}

/// Finds the one entry that is meant by the beginning of an id.
pub(crate) fn find_entry(transcript: &Transcript, typed: &str) -> Result<String, Failure> {
    if transcript.chain_to(typed).is_ok() {
        return Ok(typed.to_owned());
    }
    let all = transcript.all();
    let mut reader = transcript.read(&all);
    let mut found: Vec<String> = Vec::new();
    while let Some(entry) = reader.next().transpose()? {
        let id = entry.view().uuid.filter(|id| id.starts_with(typed)).map(|id| id.into_owned());
        if let Some(id) = id.filter(|id| !found.contains(id)) {
            found.push(id);
        }
    }
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => Err(transcript.chain_to(typed).err().map_or_else(
            || Failure::failed(format!("no entry {typed}"), "`rethread show ID --all` shows every entry"),
            Failure::from,
        )),
        count => Err(ambiguous("entries", typed, found.into_iter(), count)),
    }
}

/// Shows the last messages of a session, and then each one that comes.
pub(crate) fn tail(
    id: &str,
    before: usize,
    answer: Answer,
    context: &Context,
    ui: &mut Ui,
) -> Result<Done, Failure> {
    let transcript = Transcript::open(context.native.claude()?.find(id)?)?;
    let chain = transcript.active().messages().last(before);
    let conversation = Conversation::new(ui.cut());
    let mut reader = transcript.read(&chain);
    while let Some(entry) = reader.next().transpose()? {
        follow_up(&entry, answer, &conversation, ui)?;
    }
    ui.flush()?;
    let (send, changes) = std::sync::mpsc::channel();
    let take = move |change| drop(send.send(change));
    let _watch = Watch::one(transcript.path(), From::Offset(transcript.settled()), Means::Best, take)?;
    while let Ok(change) = changes.recv() {
        match change.event {
            Event::Added { span, raw } => {
                if let Some(entry) = Entry::of(&raw, span) {
                    follow_up(&entry, answer, &conversation, ui)?;
                }
            }
            Event::Restarted => ui.warn("the transcript was replaced; it begins anew"),
            Event::Removed => ui.warn("the transcript is gone; waiting for it to come back"),
        }
        ui.flush()?;
    }
    Ok(Done::Fully)
}

fn follow_up(
    entry: &Entry<'_>,
    answer: Answer,
    conversation: &Conversation,
    ui: &mut Ui,
) -> Result<(), Failure> {
    match answer {
        Answer::Json => ui.data(entry.raw()),
        Answer::Text if entry.is_message() => ui.lines(&lines(conversation, entry)),
        Answer::Text => Ok(()),
    }
}

fn converse(transcript: &Transcript, chain: &Chain, ui: &mut Ui) -> Result<(), Failure> {
    let conversation = Conversation::new(ui.cut());
    let chain = chain.messages();
    let mut reader = transcript.read(&chain);
    let mut is_first = true;
    while let Some(entry) = reader.next().transpose()? {
        let mut lines = lines(&conversation, &entry);
        if std::mem::take(&mut is_first) && !lines.is_empty() {
            lines.remove(0);
        }
        ui.lines(&lines)?;
    }
    if is_first {
        ui.say("There is no conversation in it.");
    }
    Ok(())
}

/// Shows every entry of every branch in the order of the file, with what it follows unless that came just before.
fn show_tree(transcript: &Transcript, ui: &mut Ui) -> Result<(), Failure> {
    let conversation = Conversation::new(ui.cut());
    let active: HashSet<u64> = transcript.active().spans().map(|span| span.offset).collect();
    let (mut before, mut is_first, mut done) = (None, true, Ok(()));
    transcript.each_entry(|span, raw| {
        if done.is_err() {
            return;
        }
        let mut lines = match Entry::of(raw, span) {
            Some(entry) => {
                let parent = entry.text("parentUuid");
                let mark = branch_mark(parent.as_deref(), before.as_deref(), active.contains(&span.offset));
                let mut lines = lines(&conversation, &entry);
                lines.splice(1..1, mark.map(|mark| (Tone::Faint, mark)));
                before = entry.text("uuid");
                lines
            }
            None => conversation.foreign("-", raw),
        };
        if std::mem::take(&mut is_first) {
            lines.remove(0);
        }
        done = ui.lines(&lines);
    })?;
    done
}

/// Returns what is to be said of an entry's place in the tree.
fn branch_mark(parent: Option<&str>, before: Option<&str>, is_active: bool) -> Option<String> {
    let mut marks = Vec::new();
    if parent != before {
        marks.push(parent.map_or_else(|| "a new beginning".into(), |parent| format!("after {parent}")));
    }
    if !is_active {
        marks.push("not on the active branch".into());
    }
    (!marks.is_empty()).then(|| format!("-- {} --", marks.join(", ")))
}

/// Returns the lines of one entry.
pub(crate) fn lines(conversation: &Conversation, entry: &Entry<'_>) -> Vec<(Tone, String)> {
    let view = entry.view();
    let id = view.uuid.as_deref().unwrap_or("-").to_owned();
    if entry.is_summary() {
        let text = view.blocks().into_iter().find_map(|block| match block {
            rethread_transcripts::Block::Text(text) => Some(text.into_owned()),
            _ => None,
        });
        let heading = (Tone::Faint, "-- compacted here; what came before was summed up --".to_owned());
        let summary = (Tone::Faint, format!("  {}", one_line(&text.unwrap_or_default(), 200)));
        return vec![(Tone::Plain, String::new()), heading, summary];
    }
    // A prompt that came while a turn ran is no message in the file.
    let is_wrapped = view.content.is_some()
        && entry.text("message").is_none()
        && entry.text("type").as_deref() == Some("attachment");
    let mut lines = match (&view.content, is_wrapped) {
        (Some(content), true) => {
            let message = format!("{{\"role\":\"user\",\"content\":{}}}", content.get());
            conversation.foreign(&id, message.as_bytes())
        }
        _ => conversation.foreign(&id, entry.raw()),
    };
    if entry.is_tool_result() {
        lines.extend(diff(entry));
    }
    lines
}

/// Returns what a tool changed in a file.
fn diff(entry: &Entry<'_>) -> Vec<(Tone, String)> {
    let value: Value = serde_json::from_slice(entry.raw()).unwrap_or_default();
    let Some(hunks) = value["toolUseResult"]["structuredPatch"].as_array() else { return Vec::new() };
    let all: Vec<&str> = hunks
        .iter()
        .filter_map(|hunk| hunk["lines"].as_array())
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut lines: Vec<(Tone, String)> =
        all.iter().take(DIFF).map(|line| (Tone::Plain, format!("    {}", one_line(line, 160)))).collect();
    if all.len() > DIFF {
        lines.push((
            Tone::Faint,
            format!("    … {} more", crate::text::count((all.len() - DIFF) as u64, "line")),
        ));
    }
    lines
}
