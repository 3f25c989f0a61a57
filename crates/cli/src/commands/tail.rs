//! `tail`: a session as it grows.

use rethread_store::backend::{From as ReadFrom, LogKey, LogName};
use rethread_store::{Page, Record, Start};

use crate::args;
use crate::context::Context;
use crate::conversation::Conversation;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::native;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Tail {
    session: NamedSession,
    before: usize,
    answer: Answer,
}

impl From<args::Tail> for Tail {
    fn from(typed: args::Tail) -> Self {
        Self { session: typed.id, before: typed.lines, answer: Answer::of(typed.json) }
    }
}

impl Tail {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(id) = self.session.native(context)? {
            return native::tail(&id, self.before, self.answer, context, ui);
        }
        let session = pollster::block_on(self.session.open(context))?;
        let log = LogKey::new(session.id().clone(), LogName::Messages);
        // What comes after this position is followed, what came before is read: each entry once.
        let next = pollster::block_on(context.store.backend().read(&log, ReadFrom::Last, 1))?.next;
        let mut before = pollster::block_on(session.page(Page::Last(self.before)))?;
        before.records.retain(|record| record.session != *session.id() || record.position < next);
        let mut conversation = Conversation::new(ui.cut());
        before.records.iter().try_for_each(|record| self.show(record, &mut conversation, ui))?;
        ui.flush()?;
        before.gaps.iter().for_each(|gap| ui.warn(&context.shortened(&gap.to_string(), &gap.session)));
        let follow = pollster::block_on(session.follow(Start::Position(next)))?;
        while let Some(record) = follow.next_blocking() {
            self.show(&record?, &mut conversation, ui)?;
            ui.flush()?;
        }
        Ok(Done::Fully)
    }

    fn show(&self, record: &Record, conversation: &mut Conversation, ui: &mut Ui) -> Result<(), Failure> {
        match self.answer {
            Answer::Json => ui.data(record.entry.as_bytes()),
            Answer::Text => ui.lines(&conversation.next(record)),
        }
    }
}
