//! `copy`: a session and those of its subagents in another store.

use rethread_store::Error;
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::family::replicate_family;
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
        let found = pollster::block_on(self.session.find(context));
        let id = found.map_err(|failure| self.or_native(failure, context))?;
        let other = context.other_store(&self.to)?;
        let done = replicate_family(&id, &context.store, &other, ui)?;
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

    /// Whoever sees a session in a list may not know that Claude Code has it, and the store has not.
    fn or_native(&self, failure: Failure, context: &Context) -> Failure {
        match (&failure, self.session.native(context)) {
            (Failure::Store(Error::SessionNotFound(_)), Ok(Some(id))) => {
                let short = context.short_of(&id);
                let handoff = context.command(&format!("handoff {short} --to URL"));
                let import = context.command(&format!("import --claude {short}"));
                Failure::failed(
                    format!("session {short} is Claude Code's own, and not in this store"),
                    format!("{handoff} hands it over as it is, {import} brings it in first"),
                )
            }
            _ => failure,
        }
    }
}
