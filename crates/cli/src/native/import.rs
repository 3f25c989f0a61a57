//! Claude Code's own sessions, copied into a store, again and again: only what is new is added.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use rethread_store::{Entry, Error, Fork, ForkKind, Metadata, NewSession, Session as Stored, SessionId};
use rethread_transcripts::{Chain, Session, Sidechain, Subagent, Transcript};
use serde_json::{Value, json};

use super::branches::Branches;
use crate::context::Context;
use crate::failure::{Done, Failure, in_one_line};
use crate::text::count;
use crate::ui::{Answer, Ui};

/// What a stored session remembers of its origin.
const MARK: &str = "claude_transcript";

/// Imports sessions by their ids, or all there are.
pub(crate) fn import(
    ids: &[String],
    answer: Answer,
    context: &Context,
    ui: &mut Ui,
) -> Result<Done, Failure> {
    let mut sessions = context.native.list()?;
    // Where a folder was copied there are two of one id; the newer is meant, as everywhere.
    let mut known = HashSet::new();
    sessions.retain(|session| known.insert(session.session_id.clone()));
    if !ids.is_empty() {
        sessions.retain(|session| ids.contains(&session.session_id));
    }
    let (mut imported, mut same, mut done) = (0_u64, 0_u64, Done::Fully);
    for (number, session) in sessions.iter().enumerate() {
        ui.progress("importing session", number + 1, sessions.len());
        match import_one(session, context) {
            Ok(Some(refused)) => {
                imported += 1;
                tell(session, "imported", None, answer, ui)?;
                if let Some(why) = refused.first() {
                    done = Done::Partly;
                    let were = if refused.len() == 1 { "was" } else { "were" };
                    let (entries, short) =
                        (count(refused.len(), "entry"), context.short_of(&session.session_id));
                    ui.warn(&format!("{entries} of session {short} {were} left out: {why}"));
                }
            }
            Ok(None) => {
                same += 1;
                if answer == Answer::Json {
                    tell(session, "unchanged", None, answer, ui)?;
                }
            }
            Err(failure) => {
                done = Done::Partly;
                let why = match failure {
                    Failure::Store(error) => in_one_line(&error),
                    Failure::Failed { message, .. } | Failure::Wrongly { message, .. } => message,
                    Failure::PipeClosed => return Err(Failure::PipeClosed),
                };
                if answer == Answer::Json {
                    tell(session, "failed", Some(&why), answer, ui)?;
                }
                ui.warn(&format!("session {} was left out: {why}", context.short_of(&session.session_id)));
            }
        }
    }
    let already = if same > 0 { format!("; {same} had nothing new") } else { String::new() };
    ui.say(&format!("Imported {}{already}.", count(imported, "session")));
    Ok(done)
}

fn tell(
    session: &Session,
    outcome: &str,
    error: Option<&str>,
    answer: Answer,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let id = &session.session_id;
    match answer {
        Answer::Text => ui.data(id.as_bytes()),
        Answer::Json => {
            let json = json!({ "session_id": id, "outcome": outcome, "error": error });
            ui.data(json.to_string().as_bytes())
        }
    }
}

/// Brings the store's copy of a session up to date. Returns why entries of it were refused.
pub(crate) fn bring_in(session: &Session, context: &Context) -> Result<Vec<String>, Failure> {
    Ok(import_one(session, context)?.unwrap_or_default())
}

/// Imports a session. Returns why entries of it were refused; `None` if there was nothing new.
fn import_one(session: &Session, context: &Context) -> Result<Option<Vec<String>>, Failure> {
    let id: SessionId = session.session_id.parse()?;
    let subagents = Subagent::all_of(&session.path);
    let mark = mark(session, &subagents);
    let there = pollster::block_on(context.store.load(&id))?;
    if let Some(there) = &there {
        let metadata = pollster::block_on(there.metadata())?;
        if metadata.extra.get(MARK) == Some(&mark) {
            return Ok(None);
        }
    }
    let stored = match there {
        Some(there) => there,
        None => {
            let cwd = session.cwd.clone().unwrap_or_default();
            context.write(context.store.create(NewSession::at(cwd).id(id)))?
        }
    };
    let transcript = Transcript::open(&session.path)?;
    let mut refused = Vec::new();
    for subagent in &subagents {
        import_subagent(subagent, &stored, context, &mut refused)?;
    }
    // Old versions wrote what subagents said into the session's own file.
    for sidechain in transcript.sidechains() {
        import_sidechain(&sidechain, &transcript, &stored, context, &mut refused)?;
    }
    let about = session.clone();
    let change = move |metadata: &mut Metadata| {
        metadata.name = about.custom_title.clone().or_else(|| metadata.name.clone());
        metadata.model = about.model.clone().or_else(|| metadata.model.clone());
        metadata.archived = about.archived;
        metadata.tags = about.tag.iter().cloned().collect();
        metadata.extra.insert(MARK.into(), mark.clone());
    };
    // The active branch last, so that it is the active one here too.
    let active = transcript.active();
    let mut branches = Branches::of(&stored)?;
    for chain in transcript.branches().into_iter().filter(|chain| *chain != active) {
        // What is refused here is refused once more as a part of the whole.
        let entries = entries(&transcript, &chain, context, &mut Vec::new())?;
        if !branches.have(&entries) {
            branches.save(&entries, context, |_| ())?;
        }
    }
    branches.save(&entries(&transcript, &active, context, &mut refused)?, context, change)?;
    Ok(Some(refused))
}

/// Returns what is different when there is something new: in the transcript, beside it, or with a subagent, who may go on
/// when the session itself does not.
fn mark(session: &Session, subagents: &[Subagent]) -> Value {
    let state = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        let since = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Some(json!([metadata.len(), since.as_nanos().to_string()]))
    };
    let subagents: Vec<Value> = subagents.iter().map(|it| json!([it.agent_id, state(&it.path)])).collect();
    json!([
        session.size,
        session.updated_at.as_nanosecond().to_string(),
        session.archived,
        session.custom_title,
        subagents
    ])
}

fn import_subagent(
    subagent: &Subagent,
    parent: &Stored,
    context: &Context,
    refused: &mut Vec<String>,
) -> Result<(), Failure> {
    let id: SessionId = format!("agent-{}", subagent.agent_id).parse()?;
    let kind = subagent.agent_type.clone().unwrap_or_else(|| "subagent".into());
    let child = child(parent, id, kind, subagent.description.clone(), context)?;
    let transcript = Transcript::open(&subagent.path)?;
    let entries = entries(&transcript, &transcript.active(), context, refused)?;
    Branches::of(&child)?.save(&entries, context, |_| ())
}

fn import_sidechain(
    sidechain: &Sidechain,
    transcript: &Transcript,
    parent: &Stored,
    context: &Context,
    refused: &mut Vec<String>,
) -> Result<(), Failure> {
    let id: SessionId = format!("agent-{}", sidechain.uuid).parse()?;
    let child = child(parent, id, "subagent".into(), None, context)?;
    let entries = entries(transcript, &sidechain.chain, context, refused)?;
    Branches::of(&child)?.save(&entries, context, |_| ())
}

/// Returns the stored session of a subagent, begun if need be.
fn child(
    parent: &Stored,
    id: SessionId,
    kind: String,
    name: Option<String>,
    context: &Context,
) -> Result<Stored, Failure> {
    if let Some(child) = pollster::block_on(context.store.load(&id))? {
        return Ok(child);
    }
    let mut fork = Fork::of_kind(ForkKind::Child).id(id).agent(kind);
    fork.name = name;
    Ok(context.write(parent.fork(fork))?)
}

/// Returns the entries of a chain as a store takes them, and why it refuses others.
fn entries(
    transcript: &Transcript,
    chain: &Chain,
    context: &Context,
    refused: &mut Vec<String>,
) -> Result<Vec<Entry>, Failure> {
    let limit = context.store.backend().capabilities().max_record;
    let mut entries = Vec::with_capacity(chain.len());
    let mut reader = transcript.read(chain);
    while let Some(entry) = reader.next().transpose()? {
        let size = entry.raw().len();
        if size > limit {
            refused.push(in_one_line(&Error::TooLarge { size, limit }));
            continue;
        }
        // A store takes text only; what is none in an entry is shown as such everywhere.
        let text = || String::from_utf8_lossy(entry.raw()).into_owned().into_bytes();
        match Entry::parse(entry.raw().to_vec()).or_else(|_| Entry::parse(text())) {
            Ok(entry) => entries.push(entry),
            Err(error) => refused.push(in_one_line(&error)),
        }
    }
    Ok(entries)
}
