//! Claude Code's own sessions, copied into a store, again and again: only what is new is added.

use rethread_store::{Entry, Fork, ForkKind, Metadata, NewSession, Session as Stored, SessionId};
use rethread_transcripts::{Chain, Session, Sidechain, Subagent, Transcript};
use serde_json::json;

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
    if !ids.is_empty() {
        sessions.retain(|session| ids.contains(&session.session_id));
    }
    let (mut imported, mut same, mut done) = (0_u64, 0_u64, Done::Fully);
    for (number, session) in sessions.iter().enumerate() {
        ui.progress("importing session", number + 1, sessions.len());
        match import_one(session, context) {
            Ok(true) => {
                imported += 1;
                tell(session, "imported", None, answer, ui)?;
            }
            Ok(false) => {
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

/// Returns whether there was anything new.
fn import_one(session: &Session, context: &Context) -> Result<bool, Failure> {
    let id: SessionId = session.session_id.parse()?;
    let mark = json!([session.size, session.updated_at.as_nanosecond().to_string()]);
    let there = pollster::block_on(context.store.load(&id))?;
    if let Some(there) = &there {
        let metadata = pollster::block_on(there.metadata())?;
        if metadata.extra.get(MARK) == Some(&mark) {
            return Ok(false);
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
    for subagent in Subagent::all_of(&session.path) {
        import_subagent(&subagent, &stored, context)?;
    }
    // Old versions wrote what subagents said into the session's own file.
    for sidechain in transcript.sidechains() {
        import_sidechain(&sidechain, &transcript, &stored, context)?;
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
    let others = transcript.branches().into_iter().filter(|chain| *chain != active);
    for chain in others {
        save(&stored, &transcript, &chain, context, |_| ())?;
    }
    save(&stored, &transcript, &active, context, change)?;
    Ok(true)
}

fn import_subagent(subagent: &Subagent, parent: &Stored, context: &Context) -> Result<(), Failure> {
    let id: SessionId = format!("agent-{}", subagent.agent_id).parse()?;
    let kind = subagent.agent_type.clone().unwrap_or_else(|| "subagent".into());
    let child = child(parent, id, kind, subagent.description.clone(), context)?;
    let transcript = Transcript::open(&subagent.path)?;
    save(&child, &transcript, &transcript.active(), context, |_| ())
}

fn import_sidechain(
    sidechain: &Sidechain,
    transcript: &Transcript,
    parent: &Stored,
    context: &Context,
) -> Result<(), Failure> {
    let id: SessionId = format!("agent-{}", sidechain.uuid).parse()?;
    let child = child(parent, id, "subagent".into(), None, context)?;
    save(&child, transcript, &sidechain.chain, context, |_| ())
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

/// Makes a stored conversation what a chain is.
fn save(
    stored: &Stored,
    transcript: &Transcript,
    chain: &Chain,
    context: &Context,
    change: impl FnMut(&mut Metadata) + Send + 'static,
) -> Result<(), Failure> {
    let mut entries = Vec::with_capacity(chain.len());
    let mut reader = transcript.read(chain);
    while let Some(entry) = reader.next().transpose()? {
        entries.push(Entry::parse(entry.raw().to_vec())?);
    }
    context.write(async {
        let ticket = stored.save(&entries, change).await?;
        ticket.await.map(drop)
    })?;
    Ok(())
}
