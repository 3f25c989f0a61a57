//! `delete`: moves a session to the trash.

use rethread_store::Error;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Delete {
    session: NamedSession,
}

impl From<args::Delete> for Delete {
    fn from(typed: args::Delete) -> Self {
        Self { session: typed.id }
    }
}

impl Delete {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = pollster::block_on(self.session.find(context))?;
        if !context.write(context.store.delete(&id))? {
            return Err(Error::SessionNotFound(id).into());
        }
        ui.say(&format!(
            "Moved session {} to the trash; {} takes it out again.",
            context.short(&id),
            context.command_on("restore", &id)
        ));
        Ok(Done::Fully)
    }
}
