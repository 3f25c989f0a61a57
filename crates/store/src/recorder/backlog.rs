//! What one log has still to get, in order, and what the store has promised of it.

use std::collections::VecDeque;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::faults::Faults;
use super::finish::Finish;
use super::recording::Recording;
use super::save::{Save, Saving};
use crate::backend::{LogKey, LogName};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::ticket::{Ack, Acknowledged, Ticket};
use crate::writer::{Draft, Request};

/// How many items are passed on at once, so that nobody waits long for the recorder's state.
const BURST: usize = 64;
/// How soon the store is asked again when nothing else tells that it has room.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// The answer to a flush.
pub(super) type Reply = oneshot::AsyncReceiver<Result<()>>;
type Replies = Vec<oneshot::Sender<Result<()>>>;

/// What one log has still to get.
#[derive(Debug)]
pub(super) struct Backlog {
    log: LogKey,
    waiting: VecDeque<Item>,
    bytes: usize,
    tickets: VecDeque<Watched>,
    /// A barrier that could not be passed, and when to try again.
    again: Option<(Instant, Replies)>,
    used: bool,
}

/// What goes into a log, or stands between what does.
#[derive(Debug)]
enum Item {
    Entry(Entry),
    Finish(Finish),
    /// Passed when everything before it is durable.
    Barrier(Replies),
    /// Begins when everything before it is done, and lets nothing pass.
    Save(Save),
}

/// Whether the worker must be told of a new item: it looks after those that follow one it knows of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attention {
    Needed,
    NotNeeded,
}

impl Attention {
    fn if_first(count: usize) -> Self {
        if count == 1 { Self::Needed } else { Self::NotNeeded }
    }
}

/// A ticket of the store, and who waits for it if it is a barrier's.
struct Watched {
    ticket: Acknowledged,
    barrier: Option<Replies>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.barrier.is_some() { "Barrier" } else { "Ticket" })
    }
}

impl Backlog {
    pub(super) fn new(log: LogKey) -> Self {
        let (waiting, tickets) = (VecDeque::new(), VecDeque::new());
        Self { log, waiting, bytes: 0, tickets, again: None, used: false }
    }

    /// Passes an entry on, or keeps it in the overflow, or refuses it.
    pub(super) fn accept(
        &mut self,
        entry: Entry,
        session: &Session,
        recording: &Recording,
    ) -> Result<Attention> {
        self.used = true;
        let size = size_of(&entry);
        let item = Item::Entry(entry);
        if self.waiting.is_empty() {
            match self.offer(&item, session) {
                Ok(ticket) => {
                    self.watch(ticket, None);
                    return Ok(Attention::if_first(self.tickets.len()));
                }
                Err(Error::Full(_)) => {}
                Err(error) => return Err(error),
            }
        } else if self.waiting.len() >= recording.overflow_entries
            || self.bytes + size > recording.overflow_bytes
        {
            return Err(Error::Full(self.log.clone()));
        }
        self.bytes += size;
        self.waiting.push_back(item);
        Ok(Attention::if_first(self.waiting.len()))
    }

    pub(super) fn push_finish(&mut self, finish: Finish) {
        self.used = true;
        self.waiting.push_back(Item::Finish(finish));
    }

    /// Queues a save, or merges it into the last one where nothing has been added since.
    pub(super) fn push_save(&mut self, save: Save) {
        self.used = true;
        let last = self.waiting.iter_mut().rev().find(|item| !matches!(item, Item::Barrier(_)));
        match last {
            Some(Item::Save(last)) if !last.is_running() => last.supersede(save),
            _ => self.waiting.push_back(Item::Save(save)),
        }
    }

    /// Asks to be told when everything so far is durable; `None` if nothing was ever recorded.
    pub(super) fn push_barrier(&mut self) -> Option<Reply> {
        if !self.used {
            return None;
        }
        let (sender, reply) = oneshot::channel();
        match self.waiting.back_mut() {
            Some(Item::Barrier(replies)) => replies.push(sender),
            _ => self.waiting.push_back(Item::Barrier(vec![sender])),
        }
        Some(reply.into_future())
    }

    /// Passes on what the store takes, up to the next save. Returns whether it might take more at once.
    pub(super) fn drain(&mut self, session: &Session, faults: &mut Faults) -> bool {
        for _ in 0..BURST {
            let Some(item) = self.waiting.front().filter(|item| !matches!(item, Item::Save(_))) else {
                return false;
            };
            let offered = match self.offer(item, session) {
                Err(Error::Full(_)) => return false,
                offered => offered,
            };
            let barrier = match self.waiting.pop_front() {
                Some(Item::Barrier(replies)) => Some(replies),
                Some(Item::Entry(entry)) => {
                    self.bytes -= size_of(&entry);
                    None
                }
                _ => None,
            };
            match (offered, barrier) {
                (Ok(ticket), barrier) => self.watch(ticket, barrier),
                (Err(error), Some(replies)) => answer(replies, &Err(error)),
                (Err(error), None) => faults.lose(&error),
            }
        }
        true
    }

    /// Takes in what the store has finished. Returns whether there was anything.
    pub(super) fn harvest(&mut self, context: &mut Context<'_>, faults: &mut Faults) -> bool {
        let before = self.tickets.len();
        while let Some(first) = self.tickets.front_mut() {
            let Poll::Ready(done) = Pin::new(&mut first.ticket).poll(context) else {
                break;
            };
            let barrier = self.tickets.pop_front().and_then(|watched| watched.barrier);
            match (done, barrier) {
                (Ok(_), None) => {}
                (Err(error), None) => faults.lose(&error),
                (Err(error), Some(replies)) if error.is_passing() => {
                    self.try_barrier_later(replies);
                    faults.suffer(error);
                }
                (done, Some(replies)) => {
                    faults.recover();
                    answer(replies, &done.map(drop));
                }
            }
        }
        self.tickets.len() < before
    }

    fn try_barrier_later(&mut self, replies: Replies) {
        let (_, waiting) = self.again.get_or_insert_with(|| (Instant::now() + ASK_AGAIN, Vec::new()));
        waiting.extend(replies);
    }

    /// Puts a barrier that failed back, once it is time and if anybody still waits for it.
    pub(super) fn retry_barrier(&mut self, now: Instant, faults: &mut Faults) {
        if let Some((_, mut replies)) = self.again.take_if(|(at, _)| *at <= now) {
            replies.retain(|reply| !reply.is_closed());
            match replies.is_empty() {
                true => faults.recover(),
                false => self.waiting.push_back(Item::Barrier(replies)),
            }
        }
    }

    pub(super) fn has_save(&self) -> bool {
        self.waiting.iter().any(|item| matches!(item, Item::Save(_)))
    }

    /// Starts the save that comes first, if everything before it is done.
    pub(super) fn start_save(&mut self, session: &Session, now: Instant) -> Option<Saving> {
        match self.waiting.front_mut() {
            Some(Item::Save(save)) if self.tickets.is_empty() && !save.is_running() => {
                let due = save.not_before().is_none_or(|at| at <= now);
                due.then(|| save.start(session.clone()))
            }
            _ => None,
        }
    }

    /// Takes in how the save went that came first.
    pub(super) fn saved(&mut self, done: Result<Ack>, faults: &mut Faults) {
        match (done, self.waiting.front_mut()) {
            (Err(error), Some(Item::Save(save))) if error.is_passing() => {
                save.postpone();
                faults.suffer(error);
                return;
            }
            (Err(error), _) => faults.lose(&error),
            (Ok(_), _) => faults.recover(),
        }
        self.waiting.pop_front();
    }

    /// Returns when to look again if nothing happens before.
    pub(super) fn alarm(&self, now: Instant) -> Option<Instant> {
        let waiting = match self.waiting.front() {
            Some(Item::Save(save)) if save.is_running() || !self.tickets.is_empty() => None,
            Some(Item::Save(save)) => Some(save.not_before().unwrap_or(now)),
            // Others may fill the store's queue, so none of this recorder's tickets need tell of room.
            Some(_) => Some(now + ASK_AGAIN),
            None => None,
        };
        let again = self.again.as_ref().map(|(at, _)| *at);
        waiting.into_iter().chain(again).min()
    }

    /// Returns whether the store has got everything.
    pub(super) fn is_handed_over(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns how much is not in the log yet.
    pub(super) fn waiting(&self) -> usize {
        let items = self.waiting.iter().filter(|item| !matches!(item, Item::Barrier(_))).count();
        items + self.tickets.iter().filter(|watched| watched.barrier.is_none()).count()
    }

    fn watch(&mut self, ticket: Ticket, barrier: Option<Replies>) {
        self.tickets.push_back(Watched { ticket: ticket.into_future(), barrier });
    }

    fn offer(&self, item: &Item, session: &Session) -> Result<Ticket> {
        let drafts = match item {
            Item::Entry(entry) => vec![Draft::entry(&session.store().redacted(entry.clone()))],
            Item::Finish(finish) => {
                let finish = finish.clone();
                vec![session.store().redacted_change(Box::new(move |metadata| finish.apply(metadata)))]
            }
            Item::Barrier(_) | Item::Save(_) => Vec::new(),
        };
        let request = match self.log.name {
            LogName::Messages => Request {
                drafts,
                lane: session.lane.clone(),
                nonce: session.nonce.clone(),
                ..Request::default()
            },
            // A handle's own place is one in the conversation; the transcript is a plain list.
            _ => Request { drafts, ..Request::default() },
        };
        session.store.inner.writer.try_submit(&self.log, request)
    }
}

/// What an entry takes in memory, roughly.
fn size_of(entry: &Entry) -> usize {
    entry.as_bytes().len() + 128
}

fn answer(replies: Replies, done: &Result<()>) {
    for reply in replies {
        // Whoever asked may have given up waiting.
        let _ = reply.send(done.clone());
    }
}
