//! What an agent loop holds: it records the loop's session and never gets in the loop's way.

mod backlog;
mod faults;
mod finish;
mod recording;
mod save;
mod state;
mod tool;
mod within;
mod worker;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use self::backlog::{Attention, Reply};
pub use self::finish::{Finish, Restored};
pub use self::recording::{Begin, Recording};
use self::save::Save;
use self::state::{Ending, State};
pub use self::tool::{CaptureError, CaptureFiles, Captured, Tool};
use self::within::within;
use crate::backend::LogName;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::{EntryId, SessionId};
use crate::metadata::Metadata;
use crate::off::OffBackend;
use crate::session::Session;
use crate::store::{Options, Store};

/// Records the session of an agent loop.
///
/// [`persist`](Recorder::persist) takes an entry and returns at once, whatever the disk does: entries wait in the
/// store's queue, then in an overflow of the recorder's own, and reach the log in order. The loop goes on when
/// something fails, and the failure stays visible: in what `persist` returns, in [`problem`](Recorder::problem), and
/// as the error of [`flush`](Recorder::flush) and [`finalize`](Recorder::finalize).
///
/// Dropping it hands what still waits to the store, for as long as [`Recording::patience`] at most;
/// [`Store::close`] then makes it durable. Only `finalize` can say how that went.
///
/// # Example
///
/// ```
/// use rethread_store::{Entry, Finish, MemoryBackend, Options, Recorder, Recording, Resume, Store};
///
/// # pollster::block_on(async {
/// let store = Store::new(MemoryBackend::default(), Options::default());
/// let recorder = Recorder::initialize(Some(store.clone()), Recording::default()).await?;
/// let asked = recorder.persist(Entry::parse(r#"{"role":"user","content":"hello"}"#)?);
/// recorder.persist(Entry::parse(r#"{"role":"assistant","content":"hi"}"#)?);
/// recorder.finalize(Finish::because("end_turn").turns(1).cost_usd(0.02)).await?;
///
/// let again = Recording::resume(Resume::session(recorder.id().clone()).at(asked.id));
/// let restored = Recorder::initialize(Some(store), again).await?.restore().await?;
/// assert_eq!((restored.messages.records.len(), restored.turn_count), (1, 1));
/// # Ok::<(), rethread_store::Error>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct Recorder {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
    /// Hangs up when the worker has ended. Locked only because a receiver cannot be shared otherwise.
    ended: Mutex<oneshot::Receiver<()>>,
    /// The store that was made in place of none.
    off: Option<Arc<OffStore>>,
    /// Who captures files around tools.
    capture: Option<Arc<dyn CaptureFiles>>,
}

#[derive(Debug)]
struct Shared {
    session: Session,
    recording: Recording,
    max_record: usize,
    state: Mutex<State>,
}

/// What became of an entry so far.
#[derive(Clone, Debug)]
pub struct Persisted {
    /// The entry's id, by which the session can be resumed or forked at it.
    pub id: EntryId,
    /// Why the entry will not be recorded, if that is known already.
    pub refused: Option<Error>,
    /// What is wrong, with this entry or an earlier one, as [`Recorder::problem`] says.
    pub problem: Option<Error>,
}

impl Recorder {
    /// Begins a session, or picks one up as it is, and starts recording it.
    ///
    /// Without a store, or with one that keeps nothing, everything works in the same way and nothing is kept: then
    /// there is nothing to pick up either, and a new session begins. Waits at most [`Recording::patience`].
    pub async fn initialize(store: Option<Store>, mut recording: Recording) -> Result<Self> {
        let (store, off) = match store {
            Some(store) => (store, None),
            None => {
                let store = Store::new(OffBackend, Options::default());
                (store.clone(), Some(Arc::new(OffStore(store))))
            }
        };
        let id = recording.begin.id();
        let session = within(recording.patience, recording.begin.open(&store)).await;
        let late = || match trouble_of(&store, id.as_ref()) {
            Some(error) => error,
            None => faults::late(&store, "the session is not open".into(), recording.patience),
        };
        let session = session.unwrap_or_else(|| Err(late()))?;
        let mut recorder = Self::on(session, recording)?;
        recorder.off = off;
        Ok(recorder)
    }

    /// Records into a session that is open already, such as a lease's.
    pub fn on(session: Session, recording: Recording) -> Result<Self> {
        let max_record = session.store().backend().capabilities().max_record;
        let state = Mutex::new(State::new(session.id()));
        let shared = Arc::new(Shared { session, recording, max_record, state });
        let (alive, ended) = oneshot::channel();
        let worker = worker::start(shared.clone(), alive)?;
        Ok(Self { shared, worker: Some(worker), ended: Mutex::new(ended), off: None, capture: None })
    }

    /// Returns the session's id.
    pub fn id(&self) -> &SessionId {
        self.shared.session.id()
    }

    /// Returns the session.
    pub fn session(&self) -> &Session {
        &self.shared.session
    }

    /// Gives a loop its state back: the conversation with everything persisted so far, and the totals.
    pub async fn restore(&self) -> Result<Restored> {
        self.settle().await?;
        let session = self.session();
        let read = async { Ok(Restored::new(session.messages().await?, session.metadata().await?)) };
        within(self.shared.recording.patience, read).await.unwrap_or_else(|| Err(self.late()))
    }

    /// Takes the next entry of the conversation. Returns at once, whatever happens.
    pub fn persist(&self, entry: Entry) -> Persisted {
        self.accept(LogName::Messages, entry)
    }

    /// Takes the next entry of the transcript, the agent's full message stream. Returns at once, whatever happens.
    pub fn persist_transcript(&self, entry: Entry) -> Persisted {
        self.accept(LogName::Transcript, entry)
    }

    /// Makes the conversation what is given, as [`Session::save`] does, once no newer list has come for
    /// [`Recording::quiet`]. Of several lists the newest counts; of metadata, every change is made.
    ///
    /// It is for loops that keep their own list of messages, instead of [`persist`](Recorder::persist). Returns at
    /// once.
    pub fn auto_save(&self, messages: Vec<Entry>, change: impl FnMut(&mut Metadata) + Send + 'static) {
        self.shared.state().save_later(Save::new(messages, change), self.shared.recording.quiet);
        self.wake();
    }

    /// Waits until everything so far is durable, a pending save included, but no longer than
    /// [`Recording::patience`]; returns what is in the way, or what was lost earlier.
    pub async fn flush(&self) -> Result<()> {
        let settled = self.settle().await;
        let lost = self.shared.state().faults.first();
        lost.map_or(settled, Err)
    }

    /// Writes down how the loop ended, and [flushes](Recorder::flush). What `finish` does not say stays as it was.
    ///
    /// The loop may go on afterwards, and finalize again.
    pub async fn finalize(&self, finish: Finish) -> Result<()> {
        let sound = finish.check();
        self.shared.state().finish(finish);
        self.flush().await.and(sound)
    }

    /// Begins a session for a subagent, which "latest" never picks, and starts recording it with the same settings.
    pub async fn spawn_child(&self, agent_name: impl Into<String>) -> Result<Self> {
        // The child remembers the entry at which it was spawned, so that must be in the store.
        self.settle().await?;
        let patience = self.shared.recording.patience;
        let child = within(patience, self.session().spawn_child(agent_name)).await;
        let child = child.unwrap_or_else(|| Err(self.late()))?;
        let mut recorder = Self::on(child, self.shared.recording.clone())?;
        recorder.off = self.off.clone();
        Ok(recorder)
    }

    /// Returns why something was lost, for good; else what keeps this session from being written now, until it can
    /// be written again; `None` if all is well.
    pub fn problem(&self) -> Option<Error> {
        let known = self.shared.state().faults.known();
        known.or_else(|| trouble_of(self.session().store(), Some(self.id())))
    }

    /// Returns how many entries, saves and totals were lost: refused, or given up by the store.
    pub fn lost(&self) -> u64 {
        self.shared.state().faults.lost()
    }

    /// Returns how many entries and saves are not yet in the log.
    pub fn waiting(&self) -> usize {
        self.shared.state().waiting()
    }

    fn accept(&self, log: LogName, entry: Entry) -> Persisted {
        let id = entry.id().clone();
        let accepted = self.shared.accept(log, entry);
        if let Ok(Attention::Needed) = accepted {
            self.wake();
        }
        Persisted { id, refused: accepted.err(), problem: self.problem() }
    }

    /// Waits until everything so far is durable, whatever was lost before.
    async fn settle(&self) -> Result<()> {
        let replies = self.shared.state().barriers();
        self.wake();
        let done = within(self.shared.recording.patience, all_of(replies)).await;
        done.unwrap_or_else(|| Err(self.late()))
    }

    fn wake(&self) {
        if let Some(worker) = &self.worker {
            worker.thread().unpark();
        }
    }

    /// Says why something is not done in time.
    fn late(&self) -> Error {
        self.problem().unwrap_or_else(|| {
            let what = format!("{} records of session {} are not durable", self.waiting(), self.id());
            faults::late(self.session().store(), what, self.shared.recording.patience)
        })
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept(&self, log: LogName, entry: Entry) -> Result<Attention> {
        let (size, limit) = (entry.as_bytes().len(), self.max_record);
        let mut state = self.state();
        let accepted = match size > limit {
            true => Err(Error::TooLarge { size, limit }),
            false => state.accept(log, entry, &self.session, &self.recording),
        };
        accepted.inspect_err(|error| state.faults.lose(error))
    }
}

/// A store that keeps nothing, closed with the last recorder that uses it.
#[derive(Debug)]
struct OffStore(Store);

impl Drop for OffStore {
    fn drop(&mut self) {
        // It keeps nothing, so there is nothing that could have been lost.
        let _ = self.0.close();
    }
}

/// Returns what keeps a session from being written now.
fn trouble_of(store: &Store, session: Option<&SessionId>) -> Option<Error> {
    let mut failing = store.health().failing.into_iter();
    failing.find(|trouble| Some(&trouble.log.session) == session).map(|trouble| trouble.error)
}

async fn all_of(replies: Vec<Reply>) -> Result<()> {
    for reply in replies {
        reply.await.unwrap_or(Err(Error::Closed))?;
    }
    Ok(())
}

impl Drop for Recorder {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.release_save();
            state.ending = Ending::HandOver;
        }
        self.wake();
        let ended = self.ended.get_mut().unwrap_or_else(PoisonError::into_inner);
        let handed_over = ended.recv_timeout(self.shared.recording.patience);
        if matches!(handed_over, Err(oneshot::RecvTimeoutError::Timeout)) {
            self.shared.state().ending = Ending::Now;
            self.wake();
        } else if let Some(worker) = self.worker.take() {
            // It has ended; how it ended is of no interest to anybody any more.
            let _ = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_ends_with_its_recorder() {
        let recorder = pollster::block_on(Recorder::initialize(None, Recording::default())).unwrap();
        recorder.persist(Entry::parse("{}").unwrap());
        recorder.auto_save(Vec::new(), |_| {});
        let shared = Arc::downgrade(&recorder.shared);
        drop(recorder);
        assert!(shared.upgrade().is_none());
    }
}
