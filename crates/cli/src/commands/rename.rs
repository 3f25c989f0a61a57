//! `rename`: gives a session a name.

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Rename {
    session: NamedSession,
    name: String,
}

impl From<args::Rename> for Rename {
    fn from(typed: args::Rename) -> Self {
        Self { session: typed.id, name: typed.name }
    }
}

impl Rename {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(id) = self.session.native(context)? {
            context.native.claude()?.rename(&id, &self.name)?;
            ui.say(&format!("Session {} is now called {:?}.", context.short_of(&id), self.name.trim()));
            return Ok(Done::Fully);
        }
        let session = pollster::block_on(self.session.open(context))?;
        let name = self.name.trim().to_owned();
        if name.is_empty() {
            return Err(Failure::wrongly("a name must not be blank", "`rethread rename ID NAME`"));
        }
        let given = name.clone();
        context.write(session.update(move |metadata| metadata.name = Some(given.clone())))?;
        ui.say(&format!("Session {} is now called {name:?}.", context.short(session.id())));
        Ok(Done::Fully)
    }
}
