//! The threads that do the work, and what they share with those who bring it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event_listener::Event as Signal;

use super::Limits;
use super::operation::Operation;
use super::queue::Job;
use super::state::State;
use super::unheard::Unheard;
use super::worker;
use crate::backend::{Backend, Durability, LogKey, LogName};
use crate::error::{Error, Result};
use crate::health::Event;
use crate::ticket::Ack;

/// How long a thread that has just written stays awake.
const AWAKE: Duration = Duration::from_micros(60);
/// What the threads of one store share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) durability: Durability,
    pub(super) limits: Limits,
    pub(super) state: Mutex<State>,
    /// There is work.
    pub(super) work: Condvar,
    /// How many operations were ever accepted.
    pub(super) accepted: AtomicUsize,
    /// There is room in a queue.
    pub(super) room: Signal,
    pub(super) unheard: Arc<Unheard>,
}

/// What to tell those whose operations were done, or could not be.
#[derive(Debug)]
struct Answers {
    log: LogKey,
    answers: Vec<(Operation, Result<Ack>)>,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run(&self) {
        let (mut back, mut is_awake) = (None, false);
        loop {
            let mut state = self.state();
            let (log, job) = loop {
                if let Some(awaited) = back.take()
                    && (std::mem::take(&mut is_awake) || !std::mem::replace(&mut state.awake, true))
                {
                    // Whoever just got an answer may be back before a sleeper could be woken.
                    state = self.stay_awake(state, awaited);
                }
                if let Some(job) = state.next_job() {
                    break job;
                }
                if state.ending {
                    state.threads -= 1;
                    return;
                }
                let pause = state.next_alarm().map_or(Duration::from_secs(3600), |at| {
                    at.saturating_duration_since(Instant::now()).max(Duration::from_micros(100))
                });
                state.idle_threads += 1;
                let waited = self.work.wait_timeout(state, pause);
                state = waited.map(|(state, _)| state).unwrap_or_else(|poisoned| poisoned.into_inner().0);
                state.idle_threads -= 1;
            };
            // This thread may be gone for long: others must look after what is ready, and after what a clock matters to.
            let others = !state.ready.is_empty() || state.watched.iter().any(|watched| *watched != log);
            if others && state.idle_threads > 0 {
                self.work.notify_one();
            }
            drop(state);
            if let Some(answers) = self.work_safely(&log, job) {
                // One sync for all who come back costs as much as one for the first of them.
                let together = self.durability == Durability::Synced;
                let others = if together { answers.answers.len() } else { 1 };
                back = Some(self.accepted.load(Ordering::Acquire) + others);
                // Before they are told: the first of them would wake another thread, which would write it alone.
                is_awake = together && !std::mem::replace(&mut self.state().awake, true);
                self.answer(answers);
            }
        }
    }

    /// A backend that panics takes its batch with it, whose tickets say so; the log must not stay owned.
    fn work_safely(&self, log: &LogKey, job: Job) -> Option<Answers> {
        let work = std::panic::AssertUnwindSafe(|| self.work_on(log, job));
        let done = std::panic::catch_unwind(work).ok();
        if done.is_none() {
            self.released(log);
        }
        done
    }

    /// The same on a thread that does nothing else. Returns whether a clock matters to the log that did not before.
    pub(super) fn work_on_watched(&self, log: &LogKey, job: Job) -> bool {
        let before = self.state().watched.contains(log);
        if let Some(answers) = self.work_safely(log, job) {
            self.answer(answers);
        }
        !before && self.state().watched.contains(log)
    }

    fn released(&self, log: &LogKey) {
        let mut state = self.state();
        let before = state.queues.get(log).map_or(0, |queue| queue.records);
        if let Some(queue) = state.queues.get_mut(log) {
            queue.owned = false;
            queue.head = None;
        }
        state.recount(log);
        let records = before - state.queues.get(log).map_or(0, |queue| queue.records).min(before);
        self.unheard.keep(log, Error::Abandoned { log: log.clone(), records });
        state.make_ready(log);
        drop(state);
        self.room.notify(usize::MAX);
    }

    pub(super) fn run_once(&self) {
        while let Some((log, job)) = { self.state().next_job() } {
            self.answer(self.work_on(&log, job));
        }
    }

    fn work_on(&self, log: &LogKey, job: Job) -> Answers {
        match job {
            Job::Sync => {
                let done = pollster::block_on(self.backend.settle(log));
                self.synced(log, done);
                Answers { log: log.clone(), answers: Vec::new() }
            }
            Job::Write { head, batch, unsynced } => {
                let work = worker::write(&*self.backend, log, head, batch, self.durability, unsynced);
                self.written(log, pollster::block_on(work))
            }
        }
    }

    /// Waits a moment without sleeping until so many operations were accepted. Nobody else does at the time.
    fn stay_awake<'a>(&'a self, mut state: MutexGuard<'a, State>, awaited: usize) -> MutexGuard<'a, State> {
        if state.ready.len() > 1 || (self.durability != Durability::Synced && !state.ready.is_empty()) {
            state.awake = false;
            return state;
        }
        drop(state);
        let (mut begun, mut seen) = (Instant::now(), self.accepted.load(Ordering::Acquire));
        while seen < awaited && begun.elapsed() < AWAKE {
            // Looking all the time would slow down those who count.
            (0..32).for_each(|_| std::hint::spin_loop());
            let now = self.accepted.load(Ordering::Acquire);
            if now != seen {
                (begun, seen) = (Instant::now(), now);
            }
        }
        let mut state = self.state();
        state.awake = false;
        state
    }

    fn synced(&self, log: &LogKey, done: Result<()>) {
        let mut state = self.state();
        let Some(queue) = state.queues.get_mut(log) else {
            return;
        };
        queue.owned = false;
        match done {
            Ok(()) => {
                queue.unsynced = None;
                if let Some(head) = &mut queue.head {
                    head.settled = head.next;
                }
                state.recovered(log);
            }
            Err(error) => state.failed(log, error),
        }
        state.watch(log);
        state.make_ready(log);
    }

    /// Keeps the books. Returns what to tell whom.
    fn written(&self, log: &LogKey, outcome: worker::Outcome) -> Answers {
        let answers = Answers { log: log.clone(), answers: outcome.answers };
        let mut state = self.state();
        if outcome.wrote && log.name == LogName::Messages {
            state.touched.insert(log.session.clone());
        }
        for damage in outcome.found {
            state.tell(Event::SetAside(log.clone(), damage));
        }
        let Some(queue) = state.queues.get_mut(log) else {
            return answers;
        };
        queue.owned = false;
        queue.head = outcome.head;
        queue.unsynced = match (outcome.unsynced, queue.unsynced) {
            (true, since) => Some(since.unwrap_or_else(Instant::now)),
            (false, _) => None,
        };
        for operation in outcome.postponed.into_iter().rev() {
            queue.waiting.push_front(operation);
        }
        match outcome.retry {
            None => state.recovered(log),
            Some((batch, error)) => {
                queue.stuck = Some(batch);
                state.failed(log, error);
            }
        }
        state.recount(log);
        state.watch(log);
        state.make_ready(log);
        state.forget_idle();
        drop(state);
        self.room.notify(usize::MAX);
        answers
    }

    /// Tells everybody how it went; an error that nobody hears is kept.
    fn answer(&self, Answers { log, answers }: Answers) {
        for (mut operation, answer) in answers {
            let error = answer.as_ref().err().cloned();
            if let (false, Some(error)) = (operation.tell(answer), error) {
                self.state().tell(Event::Abandoned(log.clone(), error.clone()));
                self.unheard.keep(&log, error);
            }
        }
    }

    /// Gives up what could not be written, and lets the threads end.
    pub(super) fn abandon(&self) -> Option<Error> {
        let mut state = self.state();
        state.ending = true;
        let mut first = None;
        let logs: Vec<LogKey> = state.queues.keys().cloned().collect();
        for log in logs {
            let Some(queue) = state.queues.get_mut(&log) else {
                continue;
            };
            let stuck = queue.stuck.take().map(|batch| batch.operations).unwrap_or_default();
            let operations: Vec<Operation> = stuck.into_iter().chain(queue.waiting.drain(..)).collect();
            let records = operations.iter().filter(|operation| !operation.is_barrier()).count();
            let records = if queue.owned { queue.records } else { records };
            if records > 0 || queue.unsynced.is_some() {
                let error = match queue.trouble() {
                    Some(failing) => failing.error.clone(),
                    None => Error::Abandoned { log: log.clone(), records },
                };
                operations.into_iter().for_each(|operation| operation.fail(&error));
                state.tell(Event::Abandoned(log, error.clone()));
                first.get_or_insert(error);
            }
        }
        first
    }
}
