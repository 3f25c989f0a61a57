//! `rename`: gives a session a name.

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

/// How many characters of a name Claude Code keeps.
const LONGEST: usize = 200;

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
            let name = context.native.claude()?.rename(&id, &self.name)?;
            ui.say(&format!("Session {} is now called {name:?}.", context.short_of(&id)));
            tell_if_cut(&self.name, &name, ui);
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

/// Says that not all of a name was kept in a session of Claude Code's.
pub(crate) fn tell_if_cut(typed: &str, name: &str, ui: &mut Ui) {
    let (typed, kept) = (typed.trim().chars().count(), name.chars().count());
    if typed > LONGEST && kept < typed {
        ui.warn(&format!(
            "Claude Code's names have at most {LONGEST} characters: {kept} of {typed} were kept"
        ));
    }
}
