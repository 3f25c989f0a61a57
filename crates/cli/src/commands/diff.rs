//! `diff`: what changed since a checkpoint.

use std::path::PathBuf;

use rethread_checkpoint::{Choices, Point};
use rethread_store::EntryId;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::{self, failure};
use crate::named::NamedSession;
use crate::native;
use crate::ui::{Tone, Ui};

#[derive(Debug)]
pub(crate) struct Diff {
    session: NamedSession,
    to: EntryId,
    only: Vec<PathBuf>,
    root: args::Root,
}

impl From<args::Diff> for Diff {
    fn from(typed: args::Diff) -> Self {
        Self { session: typed.session, to: typed.to, only: typed.only, root: typed.root }
    }
}

impl Diff {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(id) = self.session.native(context)? {
            return native::diff(&id, self.to.as_str(), context, ui);
        }
        let session = pollster::block_on(self.session.open(context))?;
        let checkpoints = files::open(&session, &self.root, context, ui)?;
        let mut choices = Choices { only: files::beneath(&checkpoints, &self.only)?, ..Choices::default() };
        let to = Point::At(self.to);
        let first = pollster::block_on(checkpoints.plan(&to, &choices)).map_err(failure)?;
        // To look at a conflict does no harm.
        let can_be_forced = first.conflicts.iter().filter(|conflict| conflict.reason.can_be_forced());
        choices.force = can_be_forced.map(|conflict| conflict.path.clone()).collect();
        let plan = pollster::block_on(checkpoints.plan(&to, &choices)).map_err(failure)?;
        for step in &plan.steps {
            match pollster::block_on(checkpoints.diff(step)).map_err(failure)? {
                Some(text) => text.lines().try_for_each(|line| ui.line(Tone::Plain, line))?,
                None => ui.line(Tone::Plain, &format!("{} differs", step.path))?,
            }
        }
        for conflict in &plan.conflicts {
            ui.warn(&format!("{}: {}", conflict.path, conflict.because));
        }
        plan.incomplete.iter().for_each(|why| ui.warn(why));
        let whole = plan.conflicts.is_empty() && plan.incomplete.is_empty();
        Ok(if whole { Done::Fully } else { Done::Partly })
    }
}
