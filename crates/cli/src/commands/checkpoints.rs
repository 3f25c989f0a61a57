//! `checkpoints`: what was recorded of a session's files.

use jiff::Timestamp;
use rethread_checkpoint::{Checkpoint, What};

use crate::age::age;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::{self, failure};
use crate::named::NamedSession;
use crate::native;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Checkpoints {
    session: NamedSession,
    root: args::Root,
    answer: Answer,
}

impl From<args::Checkpoints> for Checkpoints {
    fn from(typed: args::Checkpoints) -> Self {
        Self { session: typed.session, root: typed.root, answer: Answer::of(typed.json) }
    }
}

impl Checkpoints {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(id) = self.session.native(context)? {
            return native::checkpoints(&id, self.answer, context, ui);
        }
        let session = pollster::block_on(self.session.open(context))?;
        let checkpoints = files::open(&session, &self.root, context, ui)?;
        let all = pollster::block_on(checkpoints.checkpoints()).map_err(failure)?;
        for checkpoint in &all {
            match self.answer {
                Answer::Json => ui.data(&serde_json::to_vec(checkpoint).unwrap_or_default())?,
                Answer::Text => ui.line(Tone::Plain, &line(checkpoint))?,
            }
        }
        if all.is_empty() && self.answer == Answer::Text {
            let session = context.short(session.id());
            ui.say(&format!(
                "Session {session} has no checkpoints beneath {}.",
                checkpoints.root_path().display()
            ));
        }
        Ok(Done::Fully)
    }
}

fn line(checkpoint: &Checkpoint) -> String {
    let what = match checkpoint.what {
        What::Before => "before",
        What::After => "after",
        What::Tree => "tree",
        What::Rewind => "receipt",
        _ => "other",
    };
    let paths = match &checkpoint.changes[..] {
        [] => "nothing changed".into(),
        [only] => only.path.to_string(),
        [first, rest @ ..] => format!("{} and {}", first.path, count(rest.len(), "more path")),
    };
    let message = checkpoint.message.as_ref().map(|message| format!("  {message}")).unwrap_or_default();
    format!(
        "{}  {:>4}  {what:<7}{message}  {paths}",
        checkpoint.id,
        age(checkpoint.created_at, Timestamp::now())
    )
}
