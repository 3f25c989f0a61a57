//! `fork`: begins a session from an entry of another.

use rethread_store::{ForkKind, SessionId};
use rethread_transcripts::{NativeFork, Transcript};

use crate::args;
use crate::commands::rename::tell_if_cut;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::{NamedEntry, NamedSession};
use crate::native::find_entry;
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
        if let Some(id) = self.parent.native(context)? {
            return self.native(&id, context, ui);
        }
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

    /// Forks a session of Claude Code's own into another one of its own.
    fn native(self, id: &str, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if self.kind == ForkKind::Detached {
            let hint = "`rethread import --claude` copies it into the store first";
            return Err(Failure::wrongly("a fork of Claude Code's own session is never detached", hint));
        }
        let claude = context.native.claude()?;
        let mut fork = NativeFork::default();
        if let Some(NamedEntry(at)) = &self.at {
            let transcript = Transcript::open(claude.find(id)?)?;
            fork.at = Some(find_entry(&transcript, at.as_str())?);
        }
        fork.id = self.new.as_ref().map(|id| id.to_string());
        fork.name = self.name;
        let written = claude.fork(id, &fork)?;
        match self.answer {
            Answer::Json => {
                let session = context.native.session(&written.session_id)?;
                ui.data(&serde_json::to_vec(&session).unwrap_or_default())?;
            }
            Answer::Text => ui.data(written.session_id.as_bytes())?,
        }
        if let (Some(typed), Some(name)) = (&fork.name, &written.name) {
            tell_if_cut(typed, name, ui);
        }
        let resume = context.command(&format!("resume {}", written.session_id));
        ui.aside(&format!(
            "a fork of {} with {}; {resume} goes on with it",
            context.short_of(id),
            count(written.entries as u64, "entry")
        ));
        Ok(Done::Fully)
    }
}
