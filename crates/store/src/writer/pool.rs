//! The threads that do the work, and what they share with those who bring it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use event_listener::Event as Signal;

use super::Limits;
use super::coming::Coming;
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
    /// Returns how many operations were ever accepted.
    pub(super) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Acquire)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn run(&self) {
        let (mut back, mut is_awake) = (None, false);
        loop {
            let mut state = self.state();
            let mut coming = None;
            let (log, job) = loop {
                if let Some((log, awaited)) = back.take()
                    && (std::mem::take(&mut is_awake) || !std::mem::replace(&mut state.awake, true))
                {
                    // Whoever just got an answer may be back before a sleeper could be woken.
                    state = self.stay_awake(state);
                    coming = Some((log, awaited));
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
                // Whoever comes now is not back at once.
                coming = None;
            };
            // This thread may be gone for long: others must look after what is ready, and after what a clock matters to.
            let others = !state.ready.is_empty() || state.watched.iter().any(|watched| *watched != log);
            if others && state.idle_threads > 0 {
                self.work.notify_one();
            }
            // Nobody else is kept waiting for those who come back.
            let awaited = coming.filter(|(of, _)| *of == log && state.ready.is_empty());
            let awaited = awaited.map_or(0, |(_, awaited)| awaited);
            drop(state);
            if let Some(answers) = self.work_safely(&log, job, awaited) {
                // One sync for all who come back costs as much as one for the first of them.
                let together = self.durability == Durability::Synced;
                let awaited = if together { self.accepted() + answers.answers.len() } else { 0 };
                back = Some((answers.log.clone(), awaited));
                // Before they are told: the first of them would wake another thread, which would write it alone.
                is_awake = together && !std::mem::replace(&mut self.state().awake, true);
                self.answer(answers);
            }
        }
    }

    /// A backend that panics takes its batch with it, whose tickets say so; the log must not stay owned.
    fn work_safely(&self, log: &LogKey, job: Job, awaited: usize) -> Option<Answers> {
        let work = std::panic::AssertUnwindSafe(|| self.work_on(log, job, awaited));
        let done = std::panic::catch_unwind(work).ok();
        if done.is_none() {
            self.released(log);
        }
        done
    }

    /// The same on a thread that does nothing else. Returns whether a clock matters to the log that did not before.
    pub(super) fn work_on_watched(&self, log: &LogKey, job: Job) -> bool {
        let before = self.state().watched.contains(log);
        if let Some(answers) = self.work_safely(log, job, 0) {
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
            self.answer(self.work_on(&log, job, 0));
        }
    }

    /// Does a job. A batch takes in those who come until so many operations were accepted.
    fn work_on(&self, log: &LogKey, job: Job, awaited: usize) -> Answers {
        match job {
            Job::Sync => {
                let done = pollster::block_on(self.backend.settle(log));
                self.synced(log, done);
                Answers { log: log.clone(), answers: Vec::new() }
            }
            Job::Write { head, batch, unsynced } => {
                let mut coming = Coming::new(self, log, awaited);
                let mut latecomers = || coming.next();
                let (backend, durability) = (&*self.backend, self.durability);
                let work = worker::write(backend, log, head, batch, durability, unsynced, &mut latecomers);
                self.written(log, pollster::block_on(work))
            }
        }
    }

    /// Waits a moment without sleeping until there is something to do. Nobody else does at the time.
    fn stay_awake<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        if state.ready.is_empty() {
            // Asked before the lock is given back: who comes from then on is counted afterwards.
            let accepted = self.accepted();
            drop(state);
            self.wait_for(accepted + 1);
            state = self.state();
        }
        state.awake = false;
        state
    }

    /// Waits without sleeping until so many operations were accepted, or none was for a moment. Returns how many were.
    pub(super) fn wait_for(&self, awaited: usize) -> usize {
        let (mut begun, mut seen) = (Instant::now(), self.accepted());
        while seen < awaited && begun.elapsed() < AWAKE {
            // Looking all the time would slow down those who count.
            (0..32).for_each(|_| std::hint::spin_loop());
            let now = self.accepted();
            if now != seen {
                (begun, seen) = (Instant::now(), now);
            }
        }
        seen
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
