//! `tag`: gives a session a tag, or takes it off.

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Tag {
    session: NamedSession,
    tag: Option<String>,
}

impl From<args::Tag> for Tag {
    fn from(typed: args::Tag) -> Self {
        Self { session: typed.id, tag: typed.tag }
    }
}

impl Tag {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if self.tag.as_ref().is_some_and(|tag| tag.trim().is_empty()) {
            let hint = format!("{} takes a tag off", context.command("tag ID --remove"));
            return Err(Failure::wrongly("a tag must not be blank", hint));
        }
        let id = match self.session.native(context)? {
            Some(id) => {
                context.native.claude()?.tag(&id, self.tag.as_deref())?;
                context.short_of(&id)
            }
            None => {
                let session = pollster::block_on(self.session.open(context))?;
                let tag = self.tag.clone();
                context
                    .write(session.update(move |metadata| metadata.tags = tag.iter().cloned().collect()))?;
                context.short(session.id())
            }
        };
        ui.say(&match &self.tag {
            Some(tag) => format!("Tagged session {id} {tag:?}."),
            None => format!("Took the tag off session {id}."),
        });
        Ok(Done::Fully)
    }
}
