//! `gc`: clears away what nothing needs any more.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rethread_checkpoint::{Retention, retire};
use rethread_store::{Cleaned, Cleaning, Error, Filter, Mode, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::failure;
use crate::text::count;
use crate::ui::{Answer, Ui};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Gc {
    cleaning: Cleaning,
    retention: Retention,
    answer: Answer,
}

impl From<args::Gc> for Gc {
    fn from(typed: args::Gc) -> Self {
        Self {
            cleaning: Cleaning {
                trash_after: typed.trash_after.map(|days| DAY * days),
                mode: if typed.dry_run { Mode::Plan } else { Mode::Apply },
                ..Cleaning::default()
            },
            retention: Retention {
                older_than: typed.checkpoints_after.map(|days| DAY * days),
                keep: typed.checkpoints_keep,
                bytes: typed.checkpoints_bytes,
            },
            answer: Answer::of(typed.json),
        }
    }
}

impl Gc {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let given_up = self.give_up(context, ui)?;
        let cleaned = {
            let ui = Mutex::new(&mut *ui);
            let tell = |done, all| {
                let mut ui = ui.lock().unwrap_or_else(PoisonError::into_inner);
                ui.progress("looking through session", done, all);
            };
            context.write(context.store.gc_telling(&self.cleaning, &tell))?
        };
        let done = if cleaned.failed.is_empty() { Done::Fully } else { Done::Partly };
        if self.answer == Answer::Json {
            return json(&cleaned, given_up, self.cleaning.mode, context, ui).map(|()| done);
        }
        cleaned.purged.iter().try_for_each(|id| ui.data(id.as_str().as_bytes()))?;
        for (id, error) in &cleaned.failed {
            ui.warn(&format!("session {}: {}", context.short(id), context.describe(error)));
        }
        ui.say(&sentence(&cleaned, given_up, self.cleaning.mode));
        if done == Done::Fully {
            return Ok(done);
        }
        ui.say("No content was removed: what cannot be read may still need it.");
        Ok(done)
    }

    /// Gives up old checkpoints of every session. Returns how many.
    fn give_up(&self, context: &Context, ui: &mut Ui) -> Result<u64, Failure> {
        if self.retention == Retention::default() {
            return Ok(0);
        }
        let mut given_up = 0;
        let sessions = pollster::block_on(context.store.list(&Filter::everything()))?.sessions;
        for (number, metadata) in sessions.iter().enumerate() {
            ui.progress("looking at the checkpoints of session", number + 1, sessions.len());
            if metadata.trashed_at.is_some() {
                continue;
            }
            let session = pollster::block_on(context.store.open(&metadata.session_id))?;
            let retired = pollster::block_on(retire(&session, &self.retention, self.cleaning.mode));
            given_up += retired.map_err(failure)?.checkpoints.len() as u64;
        }
        Ok(given_up)
    }
}

fn json(cleaned: &Cleaned, given_up: u64, mode: Mode, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let failed = |(id, error): &(SessionId, Error)| serde_json::json!({ "session_id": id, "error": context.describe(error) });
    let json = serde_json::json!({
        "applied": mode == Mode::Apply,
        "purged": cleaned.purged,
        "checkpoints": given_up,
        "blobs": cleaned.blobs,
        "waiting": cleaned.waiting,
        "leftovers": cleaned.leftovers,
        "failed": cleaned.failed.iter().map(failed).collect::<Vec<_>>(),
    });
    ui.data(json.to_string().as_bytes())
}

fn sentence(cleaned: &Cleaned, given_up: u64, mode: Mode) -> String {
    let parts = [
        (given_up, "checkpoint"),
        (cleaned.purged.len() as u64, "session"),
        (cleaned.blobs.len() as u64, "unused blob"),
        (cleaned.leftovers, "leftover"),
    ];
    let parts: Vec<String> = parts
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(number, what))
        .collect();
    let waiting = match cleaned.waiting.len() {
        0 => String::new(),
        1 => " 1 unused blob waits for its day of grace.".into(),
        waiting => format!(" {waiting} unused blobs wait for their day of grace."),
    };
    let done = match (mode, parts.is_empty()) {
        (_, true) => "Nothing to clear away.".into(),
        (Mode::Plan, false) => format!("Would clear away {}.", parts.join(", ")),
        (Mode::Apply, false) => format!("Cleared away {}.", parts.join(", ")),
    };
    done + &waiting
}
