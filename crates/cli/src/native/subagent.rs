//! The subagents of a session of Claude Code's own: in files of their own, or within the session's.

use rethread_transcripts::{Chain, Subagent, Transcript};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::ambiguous;
use crate::text::one_line;
use crate::ui::{Answer, Tone, Ui};

/// Finds the one subagent that is meant: its transcript, and which part of it that is; `None` for all of it.
pub(super) fn find(session: Transcript, typed: &str) -> Result<(Transcript, Option<Chain>), Failure> {
    let files = Subagent::all_of(session.path());
    let mut found: Vec<&Subagent> = files.iter().filter(|it| it.agent_id.starts_with(typed)).collect();
    let mut within = session.sidechains();
    within.retain(|sidechain| sidechain.uuid.starts_with(typed));
    match (found.len(), within.len()) {
        (1, 0) => Ok((Transcript::open(&found.remove(0).path)?, None)),
        (0, 1) => Ok((session, Some(within.remove(0).chain))),
        (0, 0) => Err(Failure::failed(
            format!("the session has no subagent {typed}"),
            "`rethread show ID --subagents` lists them",
        )),
        (one, other) => {
            let ids = found.into_iter().map(|it| it.agent_id.clone());
            let ids = ids.chain(within.into_iter().map(|it| it.uuid));
            Err(ambiguous("subagents", typed, ids, one + other))
        }
    }
}

/// Lists the subagents of a session.
pub(crate) fn list_subagents(
    id: &str,
    answer: Answer,
    context: &Context,
    ui: &mut Ui,
) -> Result<Done, Failure> {
    let session = Transcript::open(context.native.claude()?.find(id)?)?;
    let mut none = true;
    for subagent in Subagent::all_of(session.path()) {
        none = false;
        let entries = Transcript::open(&subagent.path).map(|it| it.active().message_count()).ok();
        let description = subagent.description.as_deref().or(subagent.agent_type.as_deref());
        tell(&subagent.agent_id, description, entries, answer, ui)?;
    }
    for sidechain in session.sidechains() {
        none = false;
        let first = session.messages(&sidechain.chain.first(1))?;
        let said = first.first().map(|message| one_line(&message.text(), 80));
        tell(&sidechain.uuid, said.as_deref(), Some(sidechain.chain.message_count()), answer, ui)?;
    }
    if none && answer == Answer::Text {
        ui.say("It has no subagents.");
    }
    Ok(Done::Fully)
}

fn tell(
    id: &str,
    description: Option<&str>,
    messages: Option<u64>,
    answer: Answer,
    ui: &mut Ui,
) -> Result<(), Failure> {
    match answer {
        Answer::Json => {
            let line = json!({ "agent_id": id, "description": description, "message_count": messages });
            ui.data(line.to_string().as_bytes())
        }
        Answer::Text => {
            let messages = messages.map_or("?".into(), |messages| messages.to_string());
            ui.line(Tone::Plain, &format!("{id}  {messages:>4}  {}", description.unwrap_or("-")))
        }
    }
}
