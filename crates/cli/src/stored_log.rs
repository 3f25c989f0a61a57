//! A log as it is stored: every line with its stamp, and what could not be read between them.

use rethread_store::backend::{Backend, Damage, From, LogKey, Position};
use rethread_store::{Flaw, Line, Record, Result};

const READ_AHEAD: usize = 4 << 20;

/// A log, read whole.
#[derive(Debug, Default)]
pub(crate) struct StoredLog {
    pub(crate) lines: Vec<Line>,
    pub(crate) damage: Vec<Damage>,
}

impl StoredLog {
    pub(crate) async fn read(backend: &dyn Backend, log: &LogKey) -> Result<Self> {
        let (mut whole, mut from) = (Self::default(), 0);
        loop {
            let chunk = backend.read(log, From::Position(from), READ_AHEAD).await?;
            whole.lines.extend(chunk.lines);
            whole.damage.extend(chunk.damage);
            if chunk.next == from {
                whole.damage.extend(chunk.tail.filter(is_lost));
                return Ok(whole);
            }
            from = chunk.next;
        }
    }

    /// Returns the line at a position.
    pub(crate) fn at(&self, position: Position) -> Option<&Line> {
        let found = self.lines.binary_search_by_key(&position, |line| line.stamp().position);
        found.ok().map(|index| &self.lines[index])
    }

    /// Returns the lines as entries of one session.
    pub(crate) fn records(&self, log: &LogKey) -> impl Iterator<Item = Record> {
        self.lines.iter().map(|line| Record {
            entry: line.entry(),
            session: log.session.clone(),
            position: line.stamp().position,
            depth: line.stamp().depth,
        })
    }
}

/// An end that is merely cut may be a write under way; whole lines that are no records never are.
fn is_lost(tail: &Damage) -> bool {
    !matches!(tail.flaw, Flaw::Cut | Flaw::Nul)
}
