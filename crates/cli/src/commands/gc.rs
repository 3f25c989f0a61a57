//! `gc`: clears away what nothing needs any more.

use std::time::Duration;

use rethread_checkpoint::{Retention, retire};
use rethread_store::{Cleaned, Cleaning, Filter, Mode};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::failure;
use crate::text::count;
use crate::ui::Ui;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug)]
pub(crate) struct Gc {
    cleaning: Cleaning,
    retention: Retention,
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
        }
    }
}

impl Gc {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let given_up = self.give_up(context)?;
        let cleaned = context.write(context.store.gc(&self.cleaning))?;
        cleaned.purged.iter().try_for_each(|id| ui.data(id.as_str().as_bytes()))?;
        for (id, error) in &cleaned.failed {
            ui.warn(&format!("session {}: {}", context.short(id), context.describe(error)));
        }
        ui.say(&sentence(&cleaned, given_up, self.cleaning.mode));
        if cleaned.failed.is_empty() {
            return Ok(Done::Fully);
        }
        ui.say("No content was removed: what cannot be read may still need it.");
        Ok(Done::Partly)
    }
}

impl Gc {
    /// Gives up old checkpoints of every session. Returns how many.
    fn give_up(&self, context: &Context) -> Result<u64, Failure> {
        if self.retention == Retention::default() {
            return Ok(0);
        }
        let mut given_up = 0;
        for metadata in pollster::block_on(context.store.list(&Filter::everything()))?.sessions {
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
    match (mode, parts.is_empty()) {
        (_, true) => "Nothing to clear away.".into(),
        (Mode::Plan, false) => format!("Would clear away {}.", parts.join(", ")),
        (Mode::Apply, false) => format!("Cleared away {}.", parts.join(", ")),
    }
}
