//! Claude Code's own sessions, copied into a store, again and again: only what is new is added.

use std::collections::HashSet;

use rethread_transcripts::Session;
use serde_json::json;

use crate::context::Context;
use crate::failure::{Done, Failure, in_one_line};
use crate::text::count;
use crate::ui::{Answer, Ui};

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
        match bring_in(session, context) {
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
                let why = match (&failure, failure.problem()) {
                    (Failure::Store(error), _) => in_one_line(error),
                    (_, Some(problem)) => problem.detail.unwrap_or(problem.title).into(),
                    (_, None) => return Err(failure),
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

/// Brings the store's copy of a session up to date. Returns why entries of it were refused; `None` if nothing was new.
pub(crate) fn bring_in(session: &Session, context: &Context) -> Result<Option<Vec<String>>, Failure> {
    let brought = context.write(rethread_bridge::bring_in(session, &context.store))?;
    let refused = brought.refused.iter().map(|error| in_one_line(error)).collect();
    Ok(brought.is_new.then_some(refused))
}
