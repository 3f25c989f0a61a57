//! Reading a session as it grows: each entry once, in order.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::backend::{Backend, From, LogKey, LogName, Position};
use crate::chain::Record;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::stamp::Kind;

/// How often the log is looked at: a look is two system calls.
const PERIOD: Duration = Duration::from_millis(20);
/// How often a quiet session is checked to be still there.
const STILL_THERE: Duration = Duration::from_secs(1);
const READ_AHEAD: usize = 1 << 20;
/// How many entries wait for a slow reader before the log is left alone.
const AHEAD: usize = 256;

/// Where to begin following.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the first entry of the session's own log.
    Beginning,
    /// With the next one to come.
    Now,
    /// At a position.
    Position(Position),
}

/// The entries of a session as they come. Ends when it is dropped.
#[derive(Debug)]
pub struct Follow {
    entries: async_channel::Receiver<Result<Record>>,
    _alive: Arc<()>,
}

impl Follow {
    /// Waits for the next entry. `None` after an error: the session is gone or cannot be read.
    pub async fn next(&self) -> Option<Result<Record>> {
        self.entries.recv().await.ok()
    }

    /// Waits on this thread for the next entry.
    pub fn next_blocking(&self) -> Option<Result<Record>> {
        self.entries.recv_blocking().ok()
    }
}

impl Session {
    /// Follows what is appended to this session's own log, on all branches, by anybody.
    pub async fn follow(&self, start: Start) -> Result<Follow> {
        let log = self.log(LogName::Messages);
        let backend = self.store.inner.backend.clone();
        let from = match start {
            Start::Beginning => 0,
            Start::Position(position) => position,
            Start::Now => backend.read(&log, From::Last, 1).await?.next,
        };
        let (sender, entries) = async_channel::bounded(AHEAD);
        let alive = Arc::new(());
        let weak = Arc::downgrade(&alive);
        let path = format!("followers of {log}");
        std::thread::Builder::new()
            .name("rethread-follow".into())
            .spawn(move || run(&*backend, &log, from, &sender, &weak))
            .map_err(Error::io("start a thread for", path))?;
        Ok(Follow { entries, _alive: alive })
    }
}

fn run(
    backend: &dyn Backend,
    log: &LogKey,
    mut from: Position,
    sender: &async_channel::Sender<Result<Record>>,
    alive: &Weak<()>,
) {
    let mut checked = Instant::now();
    while alive.strong_count() > 0 {
        match pollster::block_on(fresh(backend, log, from)) {
            Ok((records, next)) => {
                let quiet = next == from;
                from = next;
                for record in records {
                    if sender.send_blocking(Ok(record)).is_err() {
                        return;
                    }
                }
                if quiet && checked.elapsed() > STILL_THERE {
                    checked = Instant::now();
                    if matches!(pollster::block_on(backend.stat(&log.session)), Ok(None)) {
                        // The reader may be gone too; then nobody needs to know.
                        let _ = sender.send_blocking(Err(Error::Gone(log.session.clone())));
                        return;
                    }
                }
                if quiet {
                    std::thread::sleep(PERIOD);
                }
            }
            Err(error) => {
                let _ = sender.send_blocking(Err(error));
                return;
            }
        }
    }
}

async fn fresh(backend: &dyn Backend, log: &LogKey, from: Position) -> Result<(Vec<Record>, Position)> {
    if !backend.changed(log, from).await? {
        return Ok((Vec::new(), from));
    }
    let chunk = backend.read(log, From::Position(from), READ_AHEAD).await?;
    let entries = chunk.lines.iter().filter(|line| line.stamp().kind == Kind::Entry);
    let records = entries.map(|line| Record {
        entry: line.entry(),
        session: log.session.clone(),
        position: line.stamp().position,
        depth: line.stamp().depth,
    });
    Ok((records.collect(), chunk.next))
}
