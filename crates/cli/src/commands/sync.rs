//! `sync`: another store, brought up to date.

use rethread_store::{Error, Replicated};
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::text::{count, one_line};
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Sync {
    to: String,
    answer: Answer,
}

impl From<args::Sync> for Sync {
    fn from(typed: args::Sync) -> Self {
        Self { to: typed.to, answer: Answer::of(typed.json) }
    }
}

impl Sync {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let other = context.other_store(&self.to)?;
        let ids = pollster::block_on(context.store.ids())?;
        let (mut all, mut failed, mut apart) = (Replicated::default(), 0, None);
        for (number, id) in ids.iter().enumerate() {
            let before = all.records;
            let mut tell = |so_far: Replicated| {
                let copied = count(before + so_far.records, "record");
                ui.progress(&format!("{copied} copied, session"), number + 1, ids.len());
            };
            tell(Replicated::default());
            match pollster::block_on(context.store.replicate(id, &other, &mut tell)) {
                Ok(done) => {
                    all.sessions += done.sessions;
                    all.records += done.records;
                    all.contents += done.contents;
                    if self.answer == Answer::Json && done.records > 0 {
                        let json =
                            json!({ "session_id": id, "records": done.records, "contents": done.contents });
                        ui.data(json.to_string().as_bytes())?;
                        // Whoever reads along knows what is there, should this be interrupted.
                        ui.flush()?;
                    }
                }
                // A folder without any record is no session; `gc` clears it away.
                Err(Error::SessionNotFound(missing)) if missing == *id => {}
                Err(Error::SessionNotFound(missing)) => {
                    failed += 1;
                    ui.warn(&format!(
                        "{} was left out: it inherits from session {missing}, which is not there",
                        context.short(id)
                    ));
                }
                Err(Error::Erased(erased)) if erased == *id => {
                    ui.say(&format!("Session {} was erased, and is left out.", context.short(id)));
                }
                // One that cannot be copied does not keep the others back; a store that cannot be written does.
                Err(
                    error @ (Error::Diverged { .. }
                    | Error::Damaged { .. }
                    | Error::TooLarge { .. }
                    | Error::Erased(_)),
                ) => {
                    failed += 1;
                    if let Error::Diverged { .. } = error {
                        apart = context.hint(&error);
                    }
                    ui.warn(&format!(
                        "{} was left as it is: {}",
                        context.short(id),
                        context.describe(&error)
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(hint) = apart {
            ui.hint(&hint);
        }
        let (memories, different) = context.write(context.store.replicate_memories(&other))?;
        for project in &different {
            ui.warn(&format!(
                "both have a memory of {}, and not the same; each keeps its own",
                one_line(project, usize::MAX)
            ));
        }
        other.close()?;
        if self.answer == Answer::Text {
            let what = match all.sessions {
                0 if memories == 0 => "nothing was new".into(),
                0 => format!("copied {}", count(memories, "memory")),
                _ => format!(
                    "copied {} and {} of {}",
                    count(all.records, "record"),
                    count(all.contents, "file content"),
                    count(all.sessions, "session")
                ),
            };
            ui.say(&format!("Looked at {}: {what}.", count(ids.len() as u64, "session")));
        }
        Ok(if failed > 0 || !different.is_empty() { Done::Partly } else { Done::Fully })
    }
}
