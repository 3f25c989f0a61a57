//! `copy`: a session and those of its subagents in another store.

use rethread_store::{Filter, Replicated, SessionId, Show, Store};
use serde_json::json;

use super::handoff::replicate_family;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Copy {
    session: NamedSession,
    to: String,
    answer: Answer,
}

impl From<args::Copy> for Copy {
    fn from(typed: args::Copy) -> Self {
        Self { session: typed.id, to: typed.to, answer: Answer::of(typed.json) }
    }
}

impl Copy {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = pollster::block_on(self.session.find(context))?;
        let other = context.other_store(&self.to)?;
        let mut done = Replicated::default();
        for session in std::iter::once(id.clone()).chain(parts_of(&id, &context.store)?) {
            let copied = replicate_family(&session, &context.store, &other, ui)?;
            done.records += copied.records;
            done.contents += copied.contents;
        }
        other.close()?;
        match self.answer {
            Answer::Json => {
                let json = json!({ "session_id": id, "records": done.records, "contents": done.contents });
                ui.data(json.to_string().as_bytes())?;
            }
            Answer::Text if done.records == 0 => ui.say("It is there already, up to its last record."),
            Answer::Text => {
                let (records, contents) =
                    (count(done.records, "record"), count(done.contents, "file content"));
                ui.say(&format!("Copied {records} and {contents}."));
            }
        }
        Ok(Done::Fully)
    }
}

/// Returns the parts of a session that the official SDKs store through a keeper: they know of it by their names alone.
fn parts_of(id: &SessionId, store: &Store) -> Result<Vec<SessionId>, Failure> {
    let Some(name) = id.as_str().strip_prefix("sdk.") else { return Ok(Vec::new()) };
    let beginning = format!("sub.{name}.");
    let mut filter = Filter::everything();
    filter.children = Show::Only;
    let listing = pollster::block_on(store.list(&filter))?;
    // One that cannot be read is no less a part: copying it says why.
    let unreadable = listing.unreadable.into_iter().map(|(id, _)| id);
    let children = listing.sessions.into_iter().map(|it| it.session_id).chain(unreadable);
    Ok(children.filter(|child| child.as_str().starts_with(&beginning)).collect())
}
