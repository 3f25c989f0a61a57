//! `new`: begins a session.

use rethread_store::NewSession;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct New {
    new: NewSession,
    answer: Answer,
}

impl From<args::New> for New {
    fn from(typed: args::New) -> Self {
        let mut new = NewSession::default();
        // Without a directory "latest" would never find it again.
        new.cwd = typed.cwd.or_else(|| std::env::current_dir().ok());
        new.id = typed.id;
        new.name = typed.name;
        new.model = typed.model;
        Self { new, answer: Answer::of(typed.json) }
    }
}

impl New {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = context.write(context.store.create(self.new))?;
        let id = session.id();
        ui.begun(&pollster::block_on(session.metadata())?, self.answer)?;
        ui.aside(&format!("{} adds to it", context.command_on("append", id)));
        Ok(Done::Fully)
    }
}
