//! Whole-tree captures: what changed beneath the root since the last one, whoever changed it.

use rethread_store::EntryId;

use crate::cache;
use crate::capture::Moment;
use crate::checkpointer::Checkpointer;
use crate::error::Result;
use crate::gathering::Gathering;
use crate::record::{Checkpoint, LeftOut, Source, What};
use crate::tracker::STALE;

/// How many changes go into one record.
const MOST_CHANGES: usize = 20_000;

/// What happened since the capture before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// Tools ran; what changed is theirs, though a person's save at that moment cannot be told apart.
    Tools,
    /// No tool ran: what changed, somebody else did.
    Idle,
}

impl Checkpointer {
    /// Records what changed anywhere beneath the root since the last whole-tree capture. The first one of a session
    /// records what is there.
    ///
    /// What `.gitignore` and `.rethreadignore` name is left out, every `.git` and the store itself too.
    pub async fn tree(&self, moment: Moment, window: Window) -> Result<Checkpoint> {
        self.tree_telling(moment, window, &|_| {}).await
    }

    /// The same, and says how many paths were looked at more closely so far.
    pub async fn tree_telling(
        &self,
        moment: Moment,
        window: Window,
        tell: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Checkpoint> {
        let mut record = self.begin(What::Tree, moment).await?;
        if !self.is_on() {
            return Ok(record);
        }
        let captured = self.capture_tree(&mut record, window, tell).await;
        captured.map(|()| record).inspect_err(|error| self.note_missed(format!("the whole tree: {error}")))
    }

    async fn capture_tree(
        &self,
        record: &mut Checkpoint,
        window: Window,
        tell: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<()> {
        let _hold = self.root()?.share()?;
        let taken = self.inner().tracker.take();
        let mut tracker = match taken {
            Some(tracker) => tracker,
            None => self.load_tracker().await?,
        };
        self.with_log(|log| {
            let later = log.records.iter().filter(|record| record.position >= tracker.position);
            let happened =
                later.filter(|record| self.is_here(record)).filter_map(|record| log.happened(record));
            happened.for_each(|record| tracker.known.learn(&record.changes));
            tracker.position = log.next();
        });
        let source = if window == Window::Tools { Source::Window } else { Source::Outside };
        let mut gathering = Gathering::new(self, source, tracker.baseline);
        tracker.known = gathering.walk(tracker.known, tell).await?;
        tracker.stale += gathering.stale;
        record.changes = gathering.changes.into_values().collect();
        let before =
            std::mem::replace(&mut tracker.known.left_out, gathering.left_out.keys().cloned().collect());
        let new =
            gathering.left_out.into_iter().filter(|(path, _)| !tracker.baseline || !before.contains(path));
        record.left_out = new.map(|(path, reason)| LeftOut { path, reason }).collect();
        if !tracker.baseline {
            record.tree = Some(self.list(&tracker.known).await?);
        }
        self.record_tree(record).await?;
        let first = !std::mem::replace(&mut tracker.baseline, true);
        if first || tracker.stale >= STALE {
            cache::write(self, &tracker);
            tracker.stale = 0;
        }
        self.inner().tracker = Some(tracker);
        Ok(())
    }

    /// Records a capture, in several records if it is very large.
    async fn record_tree(&self, record: &mut Checkpoint) -> Result<()> {
        let all = std::mem::take(&mut record.changes);
        let first = all.iter().take(MOST_CHANGES).cloned().collect();
        *record = self.record(Checkpoint { changes: first, ..record.clone() }).await?;
        for part in all.chunks(MOST_CHANGES).skip(1) {
            let part = part.to_vec();
            let more = Checkpoint {
                changes: part,
                left_out: Vec::new(),
                tree: None,
                missed: Vec::new(),
                ..record.clone()
            };
            self.record(Checkpoint { id: EntryId::generate(), ..more }).await?;
        }
        record.changes = all;
        Ok(())
    }
}
