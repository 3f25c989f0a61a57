//! `archive`: puts a session away, or takes it out again.

use rethread_store::Archive as Way;
use rethread_transcripts::Shelf;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Archive {
    session: NamedSession,
    way: Way,
}

impl From<args::Archive> for Archive {
    fn from(typed: args::Archive) -> Self {
        Self { session: typed.id, way: if typed.undo { Way::Back } else { Way::Away } }
    }
}

impl Archive {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = match self.session.native(context)? {
            Some(id) => {
                let shelf = if matches!(self.way, Way::Away) { Shelf::Archive } else { Shelf::List };
                context.native.claude()?.archive(&id, shelf)?;
                context.short_of(&id)
            }
            None => {
                let session = pollster::block_on(self.session.open(context))?;
                context.write(session.archive(self.way))?;
                context.short(session.id())
            }
        };
        ui.say(&match self.way {
            Way::Away => {
                let undo = context.command(&format!("archive --undo {id}"));
                format!("Archived session {id}; {undo} takes it out again.")
            }
            Way::Back => format!("Took session {id} out of the archive."),
        });
        Ok(Done::Fully)
    }
}
