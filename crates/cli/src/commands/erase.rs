//! `erase`: destroys a session's key, so that no copy of it can be read any more.

use rethread_store::{Error, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Erase {
    session: NamedSession,
}

impl From<args::Erase> for Erase {
    fn from(typed: args::Erase) -> Self {
        Self { session: typed.id }
    }
}

impl Erase {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let Some(backend) = context.encrypted_backend()? else {
            let hint = format!("{} removes a session from it", context.command("purge ID"));
            return Err(Failure::wrongly("this store is not encrypted: its sessions have no keys", hint));
        };
        let id = pollster::block_on(self.session.find(context))?;
        self.check(&id, context)?;
        // Forks get copies of what they inherit, and once more when no other can begin: then they need no key but their own.
        context.write(context.store.detach_forks(&id))?;
        let was_there = pollster::block_on(backend.erase(&id))?;
        context.write(context.store.detach_forks(&id))?;
        let forks = pollster::block_on(backend.disinherit(&id))?;
        let (short, gc) = (context.short(&id), context.command("gc"));
        let erased = if was_there || forks > 0 { "is erased" } else { "was erased before" };
        ui.say(&format!("Session {short} {erased}; {gc} clears away what is left of it."));
        Ok(Done::Fully)
    }

    /// A slip of the finger in a short id must not cost a session.
    fn check(&self, id: &SessionId, context: &Context) -> Result<(), Failure> {
        if self.session.is_whole(id) {
            return match pollster::block_on(context.store.metadata(id)) {
                Err(Error::Erased(_)) => Ok(()),
                found => Ok(found.map(drop)?),
            };
        }
        let message = format!("session {} is not named by its whole id", context.short(id));
        Err(Failure::failed(message, format!("{} erases it", context.command(&format!("erase {id}")))))
    }
}
