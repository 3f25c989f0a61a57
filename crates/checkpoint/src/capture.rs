//! Capturing what a tool is about to change, and what it left behind.

use std::collections::BTreeSet;
use std::path::Path;

use rethread_store::EntryId;

use crate::checkpointer::Checkpointer;
use crate::error::{Error, Result};
use crate::expand;
use crate::look::look;
use crate::path::TreePath;
use crate::record::{Change, Checkpoint, Source, What};
use crate::state::State;
use crate::work::Tell;

/// When a capture is made, and on whose behalf.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The checkpoint's id; a new one if none is given.
    pub id: Option<EntryId>,
    /// The user message whose turn it is.
    pub message: Option<EntryId>,
    /// The tool calls that run, or ran, since the capture before.
    pub tool_use: Vec<String>,
}

impl Moment {
    /// Returns a moment in the turn of a user message.
    pub fn of(message: EntryId) -> Self {
        Self { message: Some(message), ..Self::default() }
    }

    /// Adds a tool call.
    pub fn tool(mut self, id: impl Into<String>) -> Self {
        self.tool_use.push(id.into());
        self
    }

    /// Names the checkpoint.
    pub fn id(mut self, id: EntryId) -> Self {
        self.id = Some(id);
        self
    }
}

impl Checkpointer {
    /// Records what paths are before a tool changes them. Everything is durable when this returns: only then may the
    /// tool run.
    ///
    /// Paths are absolute or relative to the root. A folder stands for everything in it. What cannot be captured is
    /// recorded as such, and makes every plan across it incomplete.
    pub async fn before(&self, moment: Moment, paths: &[impl AsRef<Path>]) -> Result<Checkpoint> {
        self.named(What::Before, moment, paths, &|_, _| {}).await
    }

    /// The same, and says how far it has come: a folder may hold a lot.
    pub async fn before_telling(
        &self,
        moment: Moment,
        paths: &[impl AsRef<Path>],
        tell: Tell<'_>,
    ) -> Result<Checkpoint> {
        self.named(What::Before, moment, paths, tell).await
    }

    /// Records what a tool left behind, so that later edits by others are told apart.
    pub async fn after(&self, moment: Moment, paths: &[impl AsRef<Path>]) -> Result<Checkpoint> {
        self.named(What::After, moment, paths, &|_, _| {}).await
    }

    /// The same, and says how far it has come.
    pub async fn after_telling(
        &self,
        moment: Moment,
        paths: &[impl AsRef<Path>],
        tell: Tell<'_>,
    ) -> Result<Checkpoint> {
        self.named(What::After, moment, paths, tell).await
    }

    async fn named(
        &self,
        what: What,
        moment: Moment,
        paths: &[impl AsRef<Path>],
        tell: Tell<'_>,
    ) -> Result<Checkpoint> {
        let mut record = self.begin(what, moment).await?;
        if !self.is_on() {
            return Ok(record);
        }
        let captured = self.capture(&mut record, paths, tell).await;
        let captured = match captured {
            Ok(()) => self.record(record).await,
            Err(error) => Err(error),
        };
        captured.inspect_err(|error| {
            let names: Vec<_> = paths.iter().map(|path| path.as_ref().display().to_string()).collect();
            self.note_missed(format!("{}: {error}", names.join(", ")));
        })
    }

    async fn capture(
        &self,
        record: &mut Checkpoint,
        paths: &[impl AsRef<Path>],
        tell: Tell<'_>,
    ) -> Result<()> {
        let _hold = self.root()?.share()?;
        let mut wanted = BTreeSet::new();
        for path in paths {
            match TreePath::beneath(self.root_path(), path.as_ref()) {
                Ok(path) if !self.is_forbidden(&path) => {
                    record.missed.extend(expand::folder(self, &path, &mut wanted)?);
                }
                Ok(path) => record.missed.push(format!("{path} belongs to the store and is never captured")),
                Err(error) => record.missed.push(error.to_string()),
            }
        }
        self.add_missing_folders(&mut wanted)?;
        let paths: Vec<TreePath> = wanted.into_iter().collect();
        let limit = self.settings().named_limit;
        let seen = self.contents().keep_telling(self.root()?, &paths, limit, tell).await?;
        let change = |(path, state): (TreePath, State)| match record.what {
            What::Before => Change { path, before: Some(state), after: None, source: Source::Named },
            _ => Change { path, before: None, after: Some(state), source: Source::Named },
        };
        record.changes = paths.into_iter().zip(seen.into_iter().map(|seen| seen.state)).map(change).collect();
        if let Some(tracker) = &mut self.inner().tracker {
            tracker.known.learn(&record.changes);
        }
        Ok(())
    }

    /// Adds the folders that a tool will have to make: a rewind removes those it knows to have been absent.
    fn add_missing_folders(&self, paths: &mut BTreeSet<TreePath>) -> Result<()> {
        let root = self.root()?;
        for path in paths.clone() {
            for folder in path.ancestors() {
                if paths.contains(&folder) || look(root, &folder, 0).state != State::Absent {
                    break;
                }
                paths.insert(folder);
            }
        }
        Ok(())
    }

    /// Begins a record, once it is certain that its id is new.
    pub(crate) async fn begin(&self, what: What, moment: Moment) -> Result<Checkpoint> {
        if self.is_on() {
            self.settle().await?;
        }
        let id = match moment.id {
            Some(id) if self.with_log(|log| log.records.iter().any(|record| record.id == id)) => {
                return Err(Error::Taken(id));
            }
            Some(id) => id,
            None => EntryId::generate(),
        };
        let mut record = Checkpoint::new(id, what);
        (record.message, record.tool_use) = (moment.message, moment.tool_use);
        Ok(record)
    }
}
