//! Lines of one transcript that come at once: read where they stand, encoded one after the other, told together.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use rethread_transcripts::Line;

use crate::drive::Driver;
use crate::frame::Drafts;
use crate::hub::Wake;
use crate::item::MessageItem;
use crate::keeper::Keeper;
use crate::merge::Arrival;
use crate::topic::Subject;

/// How many lines, or about how many bytes of them, are told at once.
const LINES: usize = 256;
const BYTES: usize = 96 << 10;

const KIND: &str = "message.upsert";

/// Lines that come at once.
#[derive(Debug)]
pub(crate) struct Run {
    session: String,
    transcript: PathBuf,
    agent: Option<String>,
    subject: Subject,
    /// Lines before this place have been told, when they were in the store.
    from: u64,
    /// As of so many changes of silences: one may begin or end while lines come.
    asked: u64,
    /// Who has to merge them with what the agent says.
    driver: Option<Arc<Driver>>,
    /// What is told next; none before there is anything, so that it gets the numbers it expects.
    drafts: Option<Drafts>,
    /// How much room the next ones get: where many lines come, many follow.
    room: usize,
}

impl Run {
    pub(crate) fn new(keeper: &Keeper, session: String, agent: Option<String>, transcript: PathBuf) -> Self {
        let subject = Subject::new(&session, KIND);
        let driver = keeper.drivers.get(&session).filter(|_| agent.is_none());
        let (drafts, room, from, asked) = (None, 0, 0, 0);
        let mut run = Self { session, transcript, agent, subject, from, asked, driver, drafts, room };
        run.ask(keeper);
        run
    }

    /// Asks from where on lines are news.
    fn ask(&mut self, keeper: &Keeper) {
        // Counted first: what changes meanwhile is asked again.
        self.asked = keeper.silences.changes();
        self.from = if self.agent.is_none() { keeper.silences.of(&self.session) } else { 0 };
    }

    pub(crate) fn add(&mut self, keeper: &Keeper, line: Line<'_>) {
        if keeper.silences.changes() != self.asked {
            self.ask(keeper);
        }
        let Some(mut item) = MessageItem::of_said(line) else { return };
        if item.offset.is_some_and(|offset| offset < self.from) {
            return;
        }
        let agent = self.agent.clone();
        item.agent_id = agent.as_deref().map(Cow::Borrowed).or(item.agent_id);
        if let Some(driver) = self.driver.clone().filter(|_| item.agent_id.is_none()) {
            // What stands before it is told before it.
            self.tell(keeper);
            return driver.take(keeper, Arrival::Disk(item.into_owned()), Wake::Soon);
        }
        let begin = || keeper.hub.drafts(&self.subject, KIND).room(self.room);
        let drafts = self.drafts.get_or_insert_with(begin);
        drafts.add_with(|bytes| item.small().write_to(bytes));
        if drafts.len() >= LINES || drafts.bytes() >= BYTES {
            self.tell(keeper);
        }
    }

    /// Tells what is left; returns whose lines they were.
    pub(crate) fn end(mut self, keeper: &Keeper) -> PathBuf {
        self.tell(keeper);
        if let Some(driver) = &self.driver {
            keeper.hub.wake();
            driver.share_soon();
        }
        self.transcript
    }

    fn tell(&mut self, keeper: &Keeper) {
        if let Some(drafts) = self.drafts.take() {
            // The last line may be longer than those before it.
            self.room = drafts.bytes() + drafts.bytes() / 16;
            keeper.hub.publish_all(&self.subject, drafts);
        }
    }
}
