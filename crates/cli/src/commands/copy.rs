//! `copy`: a session in another store.

use serde_json::json;

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
        let mut tell =
            |so_far: rethread_store::Replicated| ui.progress_so_far("copying records", so_far.records);
        let done = pollster::block_on(context.store.replicate(&id, &other, &mut tell))?;
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
