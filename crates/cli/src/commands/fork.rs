//! `fork`: begins a session from an entry of another.

use rethread_store::{ForkKind, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::{NamedEntry, NamedSession};
use crate::text::count;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Fork {
    parent: NamedSession,
    at: Option<NamedEntry>,
    kind: ForkKind,
    new: Option<SessionId>,
    name: Option<String>,
    answer: Answer,
}

impl From<args::Fork> for Fork {
    fn from(typed: args::Fork) -> Self {
        Self {
            parent: typed.id,
            at: typed.at,
            kind: if typed.detached { ForkKind::Detached } else { ForkKind::Attached },
            new: typed.new,
            name: typed.name,
            answer: Answer::of(typed.json),
        }
    }
}

impl Fork {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let parent = pollster::block_on(self.parent.open(context))?;
        let mut fork = rethread_store::Fork::of_kind(self.kind);
        fork.at = match self.at {
            Some(named) => Some(pollster::block_on(named.find(&parent))?),
            None => None,
        };
        fork.id = self.new;
        fork.name = self.name;
        let session = context.write(parent.fork(fork))?;
        let metadata = pollster::block_on(session.metadata())?;
        ui.begun(&metadata, self.answer)?;
        let inherits = match self.kind {
            ForkKind::Attached => format!("inherits {}", count(metadata.message_count, "entry")),
            _ => "begins empty".into(),
        };
        ui.aside(&format!(
            "a fork of {} that {inherits}; {} adds to it",
            context.short(parent.id()),
            context.command_on("append", session.id())
        ));
        Ok(Done::Fully)
    }
}
