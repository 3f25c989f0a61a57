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
        if let Some(id) = self.session.native(context)? {
            let short = context.short_of(&id);
            context.native.claude()?.delete(&id, &context.native.trash()?)?;
            let restore = context.command(&format!("restore {id}"));
            ui.say(&format!("Moved session {short} to the trash; {restore} takes it out again."));
            return Ok(Done::Fully);
        }
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
