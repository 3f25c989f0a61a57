//! What an attached fork inherits, from the oldest entry on, without holding it all.

use super::check_lost;
use super::write::Sink;
use crate::backend::{Backend, From, LogKey, LogName, Position};
use crate::chain::Walk;
use crate::error::Result;
use crate::fold::{Fold, Leaf};
use crate::id::SessionId;
use crate::stamp::{Kind, Line};
use crate::store::Store;

const READ_AHEAD: usize = 1 << 20;

/// Where the inherited entries stand.
///
/// A conversation can only be walked from its end, and a bundle begins with its beginning. So it is walked once to
/// learn the places, which are few numbers: neighbours in a log are one run.
pub(super) struct Inherited {
    session: SessionId,
    /// Newest first.
    runs: Vec<Run>,
    depth: u64,
}

/// Entries that follow each other in one log and in the conversation.
struct Run {
    session: SessionId,
    first: Position,
    depth: u64,
    length: u64,
}

impl Inherited {
    pub(super) async fn of(store: &Store, id: &SessionId, fold: &Fold, depth: u64) -> Result<Self> {
        let leaf = Leaf { position: None, depth };
        let mut walk = Walk::new(store.inner.backend.clone(), id, fold.clone(), leaf);
        let mut runs: Vec<Run> = Vec::new();
        while let Some(record) = walk.next().await? {
            match runs.last_mut() {
                Some(run)
                    if run.session == record.session
                        && run.first == record.position + 1
                        && run.depth == record.depth + 1 =>
                {
                    (run.first, run.depth, run.length) = (record.position, record.depth, run.length + 1);
                }
                _ => runs.push(Run {
                    session: record.session,
                    first: record.position,
                    depth: record.depth,
                    length: 1,
                }),
            }
        }
        Ok(Self { session: id.clone(), runs, depth })
    }

    /// Writes one line for each depth, also for what is lost.
    pub(super) async fn write(&mut self, store: &Store, sink: &mut Sink<'_>) -> Result<()> {
        let mut depth = 0;
        let mut window = Window::default();
        for run in self.runs.iter().rev() {
            check_lost(&self.session, run.depth.saturating_sub(depth))?;
            for lost in depth + 1..run.depth {
                sink.lost_inherited(lost)?;
            }
            let log = LogKey::new(run.session.clone(), LogName::Messages);
            for number in 0..run.length {
                match window.get(&*store.inner.backend, &log, run.first + number).await? {
                    Some(line) => sink.inherited(line)?,
                    None => sink.lost_inherited(run.depth + number)?,
                }
            }
            depth = run.depth + run.length - 1;
        }
        check_lost(&self.session, self.depth.saturating_sub(depth))?;
        for lost in depth + 1..=self.depth {
            sink.lost_inherited(lost)?;
        }
        Ok(())
    }
}

/// The records that were read last.
#[derive(Default)]
struct Window {
    log: Option<LogKey>,
    lines: Vec<Line>,
    from: Position,
    next: Position,
}

impl Window {
    async fn get(
        &mut self,
        backend: &dyn Backend,
        log: &LogKey,
        position: Position,
    ) -> Result<Option<&Line>> {
        if self.log.as_ref() != Some(log) || !(self.from..self.next).contains(&position) {
            let chunk = backend.read(log, From::Position(position), READ_AHEAD).await?;
            *self = Self { log: Some(log.clone()), lines: chunk.lines, from: position, next: chunk.next };
        }
        let found = self.lines.binary_search_by_key(&position, |line| line.stamp().position);
        Ok(found.ok().map(|index| &self.lines[index]).filter(|line| line.stamp().kind != Kind::Note))
    }
}
