//! `purge`: removes a session for good.

use rethread_store::{Error, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Purge {
    session: NamedSession,
}

impl From<args::Purge> for Purge {
    fn from(typed: args::Purge) -> Self {
        Self { session: typed.id }
    }
}

impl Purge {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = pollster::block_on(self.session.find(context))?;
        self.check(&id, context)?;
        let short = context.short(&id);
        if !context.write(context.store.purge(&id))? {
            return Err(Error::SessionNotFound(id).into());
        }
        ui.say(&format!("Removed session {short} for good."));
        Ok(Done::Fully)
    }

    /// A slip of the finger in a short id must not cost a session, so what is not in the trash is named whole.
    fn check(&self, id: &SessionId, context: &Context) -> Result<(), Failure> {
        let in_trash = || match pollster::block_on(context.store.metadata(id)) {
            Ok(metadata) => metadata.trashed_at.is_some(),
            // A purge that was interrupted may be finished, and of what was erased there is nothing left to lose.
            Err(error) => matches!(error, Error::SessionNotFound(_) | Error::Erased(_)),
        };
        if self.session.is_whole(id) || in_trash() {
            return Ok(());
        }
        let (delete, purge) = (context.command_on("delete", id), context.command(&format!("purge {id}")));
        let message = format!("session {} is not in the trash", context.short(id));
        Err(Failure::failed(message, format!("{delete} moves it there, {purge} removes it at once")))
    }
}
