//! The threads that write, and the queues before them.
//!
//! An append goes to its log's queue and returns a ticket. A small pool of threads takes logs that have work, one
//! owner per log, and writes everything that waits for it as one batch with one sync: the busier a log, the larger
//! its batches. A log that cannot be written is parked with its records and tried again; no other log waits for it.

mod coming;
mod compose;
mod head;
mod operation;
mod pool;
mod queue;
mod seen;
mod state;
mod unheard;
mod worker;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use event_listener::{Event as Signal, listener};

pub(crate) use self::head::Lane;
pub(crate) use self::operation::{Change, Draft, Operation, Patience};
use self::pool::Shared;
use self::queue::{Job, Queue};
use self::state::{State, trouble};
pub(crate) use self::unheard::Unheard;
use crate::backend::{Backend, Durability, LogKey, LogName};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::health::{Event, Health};
use crate::id::SessionId;
use crate::ticket::{Ack, Ticket};

/// How long a reader waits for what its own store has accepted.
const SETTLE_WITHIN: Duration = Duration::from_secs(2);

/// How much may wait, how many threads write, and what an acknowledgement means.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Operations that may wait for one log.
    pub operations: usize,
    /// Bytes that may wait for one log.
    pub bytes: usize,
    /// Bytes that may wait in all.
    pub total_bytes: usize,
    /// Writing threads.
    pub threads: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { operations: 256, bytes: 16 << 20, total_bytes: 64 << 20, threads: 8 }
    }
}

/// The writers of one store.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    closed: Mutex<Option<Result<()>>>,
}

impl Writer {
    pub(crate) fn new(backend: Arc<dyn Backend>, durability: Durability, limits: Limits) -> Self {
        let shared = Shared {
            backend,
            durability,
            limits,
            state: Mutex::default(),
            work: Condvar::new(),
            accepted: AtomicUsize::new(0),
            room: Signal::new(),
            unheard: Arc::default(),
        };
        Self { shared: Arc::new(shared), threads: Mutex::default(), closed: Mutex::default() }
    }

    /// Queues an operation, waiting for room if there is none.
    pub(crate) async fn submit(&self, log: &LogKey, request: Request) -> Result<Ticket> {
        let (operation, ticket) = request.into_operation(log, &self.shared);
        match self.accept(log, operation, Hands::Pool) {
            Ok(_) => Ok(ticket),
            Err(refused) => self.submit_again(log, refused).await.map(|()| ticket),
        }
    }

    /// Queues an operation that was refused, once there is room.
    async fn submit_again(&self, log: &LogKey, mut refused: (Box<Operation>, Error)) -> Result<()> {
        // Listening first, so that no room is missed that is made meanwhile; but most never have to.
        while let (operation, Error::Full(_)) = refused {
            listener!(self.shared.room => room);
            refused = match self.accept(log, *operation, Hands::Pool) {
                Ok(_) => return Ok(()),
                Err((operation, Error::Full(full))) => {
                    room.await;
                    (operation, Error::Full(full))
                }
                Err(refused) => refused,
            };
        }
        Err(refused.1)
    }

    /// Queues an operation and waits for it. Where nobody writes the log just now, this thread does: being woken up
    /// twice takes about half as long as a sync.
    pub(crate) fn submit_and_wait(&self, log: &LogKey, request: Request) -> Result<Ack> {
        let (operation, ticket) = request.into_operation(log, &self.shared);
        match self.accept(log, operation, Hands::Own) {
            Ok(None) => {}
            Ok(Some(job)) => {
                let new_to_the_clock = self.shared.work_on_watched(log, *job);
                self.call_for_help(new_to_the_clock);
            }
            Err(refused) => pollster::block_on(self.submit_again(log, refused))?,
        }
        ticket.wait()
    }

    /// Leaves to the pool what this thread will not do: what came meanwhile, and what a clock matters to.
    fn call_for_help(&self, clock: bool) {
        let state = self.shared.state();
        let needed = clock || !state.ready.is_empty();
        drop(state);
        if needed {
            self.shared.work.notify_one();
            self.ensure_threads();
        }
    }

    /// Queues an operation, or says that there is no room.
    pub(crate) fn try_submit(&self, log: &LogKey, request: Request) -> Result<Ticket> {
        let (operation, ticket) = request.into_operation(log, &self.shared);
        self.accept(log, operation, Hands::Pool).map(|_| ticket).map_err(|(_, error)| error)
    }

    /// Puts an operation into its queue. With [`Hands::Own`], the work comes back if it can be done at once.
    fn accept(
        &self,
        log: &LogKey,
        operation: Operation,
        hands: Hands,
    ) -> Result<Option<Box<Job>>, (Box<Operation>, Error)> {
        let mut state = self.shared.state();
        if state.closing {
            return Err((Box::new(operation), Error::Closed));
        }
        let (size, limits) = (operation.size, &self.shared.limits);
        let State { queues, ready, bytes: total, .. } = &mut *state;
        // Looked for once: nearly always it is there.
        let queue = match queues.get_mut(log) {
            Some(queue) => queue,
            None => queues.entry(log.clone()).or_default(),
        };
        // What is larger than the limit itself passes through an empty queue, or it would never pass.
        let fits =
            queue.records == 0 || (queue.records < limits.operations && queue.bytes + size <= limits.bytes);
        if !operation.is_barrier() && (!fits || (*total > 0 && *total + size > limits.total_bytes)) {
            if Defect::DropWhenFull.is_on() {
                let mut operation = operation;
                operation.tell(Ok(Ack { records: Vec::new(), durability: self.shared.durability }));
                return Ok(None);
            }
            return Err((Box::new(operation), Error::Full(log.clone())));
        }
        if !operation.is_barrier() {
            queue.records += 1;
            queue.bytes += size;
            *total += size;
        }
        match Defect::ServeTheLastFirst.is_on() {
            true => queue.waiting.push_front(operation),
            false => queue.waiting.push_back(operation),
        }
        let listed = queue.wants_a_thread();
        if listed && hands == Hands::Own {
            return Ok(Some(Box::new(queue.take_job())));
        }
        if listed {
            queue.listed = true;
            ready.push_back(log.clone());
        }
        let short = state.ready.len() > state.idle_threads + usize::from(state.awake);
        let asleep = !state.awake || state.ready.len() > 1;
        drop(state);
        self.shared.accepted.fetch_add(1, Ordering::Release);
        if listed && asleep {
            self.shared.work.notify_one();
        }
        if short {
            self.ensure_threads();
        }
        Ok(None)
    }

    /// Threads are started when there is work and none is free, so that a store that only reads has none.
    fn ensure_threads(&self) {
        let mut state = self.shared.state();
        let nobody_minds_the_clock = state.threads == 0 && !state.watched.is_empty();
        let short = state.ready.len() > state.idle_threads || nobody_minds_the_clock;
        if !short || state.threads >= self.shared.limits.threads.max(1) {
            return;
        }
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new().name("rethread-writer".into()).spawn(move || shared.run());
        if let Ok(thread) = thread {
            state.threads += 1;
            self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread);
        } else if state.threads == 0 {
            // No thread at all to be had: do the work here rather than never.
            drop(state);
            self.shared.run_once();
        }
    }

    /// Waits until everything accepted so far is durable.
    pub(crate) async fn flush(&self) -> Result<()> {
        let mut result = Ok(());
        for barrier in self.barriers() {
            let passed = match barrier {
                Ok(ticket) => ticket.await.map(drop),
                Err(error) => Err(error),
            };
            result = result.and(passed);
        }
        self.shared.unheard.take().and(result)
    }

    /// The same on this thread, as far as it gets until some time.
    fn flush_until(&self, until: Instant) -> Result<()> {
        let mut result = Ok(());
        for barrier in self.barriers() {
            let left = until.saturating_duration_since(Instant::now());
            let passed = match barrier {
                Ok(ticket) => ticket.wait_for(left).unwrap_or(Err(Error::Closed)).map(drop),
                Err(error) => Err(error),
            };
            result = result.and(passed);
        }
        result
    }

    /// Puts a barrier into every queue that has something to do.
    fn barriers(&self) -> Vec<Result<Ticket>> {
        let busy = |(log, queue): (&LogKey, &Queue)| (!queue.is_idle()).then(|| log.clone());
        let logs: Vec<LogKey> = self.shared.state().queues.iter().filter_map(busy).collect();
        logs.iter().map(|log| self.barrier(log)).collect()
    }

    /// Waits a little until what was accepted for one log is in, or cannot be got in for now.
    pub(crate) async fn settle(&self, log: &LogKey) -> Result<()> {
        let busy = self.shared.state().queues.get(log).is_some_and(|queue| queue.has_work() || queue.owned);
        if !busy {
            return Ok(());
        }
        // A reader must not hang because a writer does.
        let passed = self.barrier(log)?.wait_for(SETTLE_WITHIN);
        passed.unwrap_or_else(|| Err(Error::Contended(log.to_string()))).map(drop)
    }

    fn barrier(&self, log: &LogKey) -> Result<Ticket> {
        let (operation, ticket) = Request::default().into_operation(log, &self.shared);
        let mut state = self.shared.state();
        let queue = state.queues.entry(log.clone()).or_default();
        if let Some(failing) = queue.trouble() {
            return Err(failing.error.clone());
        }
        if state.ending {
            return Err(Error::Closed);
        }
        let queue = state.queues.entry(log.clone()).or_default();
        queue.waiting.push_back(operation);
        state.make_ready(log);
        drop(state);
        self.shared.work.notify_one();
        self.ensure_threads();
        Ok(ticket)
    }

    /// Stops accepting, writes what was accepted, and ends the threads, within a deadline.
    ///
    /// The answer is that of the first call.
    pub(crate) fn close(&self, deadline: Duration) -> Result<()> {
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = &*closed {
            return result.clone();
        }
        let until = Instant::now() + deadline;
        self.shared.state().closing = true;
        let mut result = self.flush_until(until);
        while result.is_err() && Instant::now() < until {
            std::thread::sleep(
                Duration::from_millis(20).min(until.saturating_duration_since(Instant::now())),
            );
            result = self.flush_until(until);
        }
        if let Some(error) = self.shared.abandon() {
            result = Err(error);
        }
        result = self.shared.unheard.take().and(result);
        self.shared.work.notify_all();
        self.shared.room.notify(usize::MAX);
        for thread in self.threads.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            while !thread.is_finished() && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A thread that panicked has answered its tickets by dropping them.
                let _ = thread.join();
            }
        }
        *closed = Some(result.clone());
        result
    }

    /// Says how the writers are doing.
    pub(crate) fn health(&self) -> Health {
        let state = self.shared.state();
        let trouble =
            |(log, queue): (&LogKey, &Queue)| queue.trouble().map(|failing| trouble(log, failing, queue));
        Health {
            failing: state.queues.iter().filter_map(trouble).collect(),
            lost: self.shared.unheard.all(),
            queued: state.queues.values().map(|queue| queue.records).sum(),
            queued_bytes: state.bytes,
        }
    }

    /// Returns a channel of everything that happens from now on.
    pub(crate) fn subscribe(&self) -> async_channel::Receiver<Event> {
        let (sender, receiver) = async_channel::unbounded();
        self.shared.state().subscribers.push(sender);
        receiver
    }

    /// Returns the sessions that were written to since the last call, with their states where those are known.
    pub(crate) fn take_touched(&self) -> Vec<(SessionId, Option<Fold>)> {
        let mut state = self.shared.state();
        let touched = std::mem::take(&mut state.touched);
        let with_fold = |session: SessionId| {
            let queue = state.queues.get(&LogKey::new(session.clone(), LogName::Messages));
            let fold = queue.and_then(|queue| queue.head.as_ref()?.own_fold());
            (session, fold)
        };
        touched.into_iter().map(with_fold).collect()
    }

    /// Forgets what is known of a session's logs.
    pub(crate) fn forget(&self, session: &SessionId) {
        let mut state = self.shared.state();
        for name in LogName::ALL {
            if let Some(queue) = state.queues.get_mut(&LogKey::new(session.clone(), name))
                && queue.is_idle()
            {
                queue.head = None;
            }
        }
        state.touched.remove(session);
    }

    /// Forgets that a session was found to be gone: somebody has found one of that name, or begins one.
    pub(crate) fn look_again(&self, session: &SessionId) {
        let mut state = self.shared.state();
        for name in LogName::ALL {
            if let Some(queue) = state.queues.get_mut(&LogKey::new(session.clone(), name)) {
                queue.head.take_if(|head| head.gone);
            }
        }
    }
}

impl Drop for Writer {
    /// Without a `close`, threads finish what they have at hand and end; what cannot be written is not waited for.
    fn drop(&mut self) {
        let mut state = self.shared.state();
        (state.closing, state.ending) = (true, true);
        drop(state);
        self.shared.work.notify_all();
    }
}

/// Who does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hands {
    /// The writers' threads.
    Pool,
    /// Whoever asks for it, if nobody else has begun.
    Own,
}

/// What to append, and on whose behalf.
#[derive(Default)]
pub(crate) struct Request {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) lane: Option<Arc<Lane>>,
    pub(crate) nonce: Option<Arc<str>>,
    pub(crate) patience: Patience,
}

impl Request {
    fn into_operation(self, log: &LogKey, shared: &Shared) -> (Operation, Ticket) {
        let (reply, ticket) = Ticket::new(log, &shared.unheard);
        let Request { mut drafts, lane, nonce, patience } = self;
        // Who writes without a sync is what others wait for; who syncs has time.
        if shared.durability != Durability::Synced {
            drafts.iter_mut().for_each(Draft::sum_up);
        }
        let size = Operation::size_of(&drafts);
        (Operation { drafts, size, lane, nonce, patience, reply: Some(reply) }, ticket)
    }
}
