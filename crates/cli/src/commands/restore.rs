//! `restore`: takes a session out of the trash.

use rethread_store::Error;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Restore {
    session: NamedSession,
}

impl From<args::Restore> for Restore {
    fn from(typed: args::Restore) -> Self {
        Self { session: typed.id }
    }
}

impl Restore {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(id) = self.session.trashed_native(context)? {
            context.native.claude()?.restore(&id, &context.native.trash()?)?;
            ui.say(&format!("Took session {} out of the trash.", context.short_of(&id)));
            return Ok(Done::Fully);
        }
        let id = pollster::block_on(self.session.find(context))?;
        let there = pollster::block_on(context.store.load(&id));
        if !matches!(there, Err(Error::Trashed(_))) {
            there?.ok_or_else(|| Error::SessionNotFound(id.clone()))?;
            ui.say(&format!("Session {} is not in the trash.", context.short(&id)));
            return Ok(Done::Fully);
        }
        context.write(context.store.restore(&id))?;
        ui.say(&format!("Took session {} out of the trash.", context.short(&id)));
        Ok(Done::Fully)
    }
}
