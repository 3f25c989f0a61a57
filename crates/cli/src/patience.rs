//! Waiting for writes that may never get through: the store tries for ever, a person at a prompt does not.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rethread_store::backend::{Backend as _, From as FromPlace, Position};
use rethread_store::{Error, Event, Result, Store, Trouble};

/// How long writes may fail before they are given up. Closing then tries for a little longer.
const FOR_DISKS: Duration = Duration::from_millis(500);
/// How long another process may go on holding a lock, after the store itself has begun to complain.
const FOR_LOCKS: Duration = Duration::from_secs(5);
/// The same where it is not one that holds it, but others that get through with what they have, one after the other.
const FOR_TURNS: Duration = Duration::from_secs(60);
const PERIOD: Duration = Duration::from_millis(50);

/// Watches a store's writes, and gives up when they fail for too long.
#[derive(Debug)]
pub(crate) struct Patience {
    store: Store,
    given_up: async_channel::Receiver<Error>,
    events: async_channel::Receiver<Event>,
    watch: Option<JoinHandle<()>>,
}

/// How waiting ended.
pub(crate) enum Ended<T> {
    /// What was waited for is done.
    Done(T),
    /// Writes have failed for too long.
    GivenUp(Error),
}

impl Patience {
    /// Starts to watch.
    pub(crate) fn with(store: &Store) -> Result<Self> {
        let (tell, given_up) = async_channel::bounded(1);
        let events = store.events();
        let (heard, watched) = (events.clone(), store.clone());
        let watch = move || {
            while let Ok(event) = heard.recv_blocking() {
                if let Event::Failing(trouble) = event
                    && let Some(error) = lasting(&watched, &trouble, &heard)
                {
                    // When nobody listens any more, nobody waits either.
                    let _ = tell.send_blocking(error);
                    return;
                }
            }
        };
        let watch = std::thread::Builder::new()
            .name("rethread-patience".into())
            .spawn(watch)
            .map_err(Error::io("start a thread for", "watching writes"))?;
        Ok(Self { store: store.clone(), given_up, events, watch: Some(watch) })
    }

    /// Waits for something to be written. When patience ends the store is closed, and what got through by then
    /// still counts.
    pub(crate) fn wait<T, E: From<Error>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        let mut work = pin!(work);
        match pollster::block_on(self.race(work.as_mut())) {
            Ended::Done(done) => done,
            Ended::GivenUp(error) => {
                // The reason is known; closing answers everybody who still waits.
                let _ = self.store.close();
                match pollster::block_on(poll_fn(|context| Poll::Ready(work.as_mut().poll(context)))) {
                    Poll::Ready(Ok(done)) => Ok(done),
                    Poll::Ready(Err(_)) | Poll::Pending => Err(error.into()),
                }
            }
        }
    }

    /// Waits for whichever comes first: the work's end or that of patience.
    pub(crate) async fn race<T>(&self, work: impl Future<Output = T>) -> Ended<T> {
        let (mut work, mut given_up) = (pin!(work), pin!(self.given_up.recv()));
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Ended::Done(done));
            }
            match given_up.as_mut().poll(context) {
                Poll::Ready(Ok(error)) => Poll::Ready(Ended::GivenUp(error)),
                Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

impl Drop for Patience {
    /// Waits for the thread: it has the store, and whoever ends before it would leave a database open.
    fn drop(&mut self) {
        self.events.close();
        // One that panicked holds nothing any more.
        let _ = self.watch.take().map(JoinHandle::join);
    }
}

/// Returns what is wrong if it lasts longer than our patience, `None` if it passes or nobody listens any more.
fn lasting(store: &Store, first: &Trouble, events: &async_channel::Receiver<Event>) -> Option<Error> {
    let begun = Instant::now();
    let (mut until, mut end) = (begun + patience(&first.error), end_of(store, first));
    while let Some(trouble) = store.health().failing.into_iter().next().filter(|_| !events.is_closed()) {
        if Instant::now() >= until {
            let now = end_of(store, &trouble);
            if now.is_none() || now == end || begun.elapsed() >= FOR_TURNS {
                return Some(trouble.error);
            }
            (until, end) = (Instant::now() + FOR_LOCKS, now);
        }
        std::thread::sleep(PERIOD);
    }
    None
}

/// Returns where a log ends whose lock others have; `None` if that is not what is wrong.
fn end_of(store: &Store, trouble: &Trouble) -> Option<Position> {
    let Error::Busy { .. } = trouble.error else { return None };
    Some(pollster::block_on(store.backend().read(&trouble.log, FromPlace::Last, 1)).ok()?.next)
}

fn patience(error: &Error) -> Duration {
    match error {
        Error::Busy { .. } => FOR_LOCKS,
        // Waiting does not change what one may do.
        Error::ReadOnly { .. } => Duration::ZERO,
        Error::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => Duration::ZERO,
        _ => FOR_DISKS,
    }
}
