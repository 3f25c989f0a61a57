//! `materialize`: makes a fork independent of its parent.

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Materialize {
    session: NamedSession,
}

impl From<args::Materialize> for Materialize {
    fn from(typed: args::Materialize) -> Self {
        Self { session: typed.id }
    }
}

impl Materialize {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = pollster::block_on(self.session.open(context))?;
        let copied = context.write(session.materialize())?;
        let id = context.short(session.id());
        ui.say(&match copied {
            0 => format!("Session {id} inherits nothing; nothing was copied."),
            _ => {
                format!("Copied {} into session {id}; it no longer needs its parent.", count(copied, "entry"))
            }
        });
        Ok(Done::Fully)
    }
}
