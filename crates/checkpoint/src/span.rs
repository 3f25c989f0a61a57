//! What a part of a session changed, path by path, as its captures tell.

use std::collections::{BTreeMap, HashMap};

use rethread_store::EntryId;
use serde::Serialize;

use crate::checkpointer::Checkpointer;
use crate::error::{Error, Result};
use crate::lines;
use crate::look::{SMALL, look};
use crate::path::TreePath;
use crate::record::{Change, Checkpoint, Source};
use crate::root::Root;
use crate::state::State;

/// A part of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// The turn of a user message.
    Turn(EntryId),
    /// One tool call.
    Tool(String),
    /// One capture, by itself.
    Checkpoint(EntryId),
    /// Everything since a checkpoint or the beginning of a message's turn, up to what is on disk now.
    Since(EntryId),
}

/// What a part of a session changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Changes {
    /// Each path that is not as it was before.
    pub paths: Vec<Changed>,
    /// Why this may not be all of it.
    pub incomplete: Vec<String>,
}

/// What happened to one path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Changed {
    /// Where.
    pub path: TreePath,
    /// What it was.
    pub before: State,
    /// What it became.
    pub after: State,
    /// Who changed it last, as far as that can be told.
    pub source: Source,
    /// Nobody looked after the change: this is what was found there later.
    pub assumed: bool,
}

/// What is known of one path while records are gone through.
#[derive(Debug)]
struct Passage {
    before: State,
    after: Option<State>,
    source: Source,
    assumed: bool,
}

/// Up to when a path is followed.
#[derive(Clone, Copy, Debug)]
enum End {
    Captured,
    Now,
}

impl Checkpointer {
    /// Returns what a part of the session changed. What others did while no tool ran is not its doing.
    pub async fn changes(&self, span: &Span) -> Result<Changes> {
        self.settle().await?;
        let root = self.root()?;
        let records = self.live().await?;
        let first = match span {
            Span::Since(point) => Some(self.find(&records, point).await?),
            _ => None,
        };
        let is_part = |(at, record): (usize, &Checkpoint)| match span {
            Span::Turn(message) => record.message.as_ref() == Some(message),
            Span::Tool(call) => record.tool_use.contains(call),
            Span::Checkpoint(id) => record.id == *id,
            Span::Since(_) => first.is_some_and(|first| at >= first),
        };
        if first.is_none() && !records.iter().enumerate().any(is_part) {
            return match span {
                Span::Checkpoint(id) => Err(self.no_such_point(id)),
                // A turn, or a call, that nothing was captured of.
                _ => Ok(Changes::default()),
            };
        }
        let (mut passages, mut incomplete) = (BTreeMap::<TreePath, Passage>::new(), Vec::new());
        let mut seen: HashMap<&TreePath, &State> = HashMap::new();
        for (at, record) in records.iter().enumerate() {
            let part = is_part((at, record));
            if part {
                incomplete.extend(record.missed.iter().map(|missed| format!("not captured: {missed}")));
                incomplete.extend(record.unreadable.iter().cloned());
            }
            for change in &record.changes {
                let earlier = change.before.as_ref().or_else(|| seen.get(&change.path).copied());
                match passages.get_mut(&change.path) {
                    Some(passage) if part => passage.go_on(change),
                    // The first look after a change that nobody looked after at once.
                    Some(passage) if passage.after.is_none() => {
                        (passage.after, passage.assumed) = (earlier.cloned(), true);
                    }
                    None if part && (change.source != Source::Outside || first.is_some()) => {
                        let unsaid = || State::Unknown { why: "what it was before was not recorded".into() };
                        let passage = Passage {
                            before: earlier.cloned().unwrap_or_else(unsaid),
                            after: change.after.clone(),
                            source: change.source,
                            assumed: false,
                        };
                        passages.insert(change.path.clone(), passage);
                    }
                    _ => {}
                }
                if let Some(state) = change.after.as_ref().or(change.before.as_ref()) {
                    seen.insert(&change.path, state);
                }
            }
        }
        passages.retain(|path, _| !self.is_forbidden(path));
        let end = if first.is_some() { End::Now } else { End::Captured };
        let paths = passages.into_iter().map(|(path, passage)| passage.end(root, path, end));
        let paths = paths.filter(|changed| !changed.before.same(&changed.after)).collect();
        Ok(Changes { paths, incomplete })
    }

    /// Returns a change as a unified diff; nothing for what has no lines, or too many.
    pub async fn diff_of(&self, changed: &Changed) -> Result<Option<String>> {
        let (Some(old), Some(new)) =
            (self.text(changed, &changed.before).await?, self.text(changed, &changed.after).await?)
        else {
            return Ok(None);
        };
        Ok(lines::unified_diff(&changed.path.to_string(), old.as_deref(), new.as_deref()))
    }

    /// Returns the content of a path as it was, `Some(None)` where nothing was; `None` where there is no text.
    async fn text(&self, changed: &Changed, state: &State) -> Result<Option<Option<Vec<u8>>>> {
        if *state == State::Absent {
            return Ok(Some(None));
        }
        match self.contents().small(&changed.path, state).await {
            Ok(content) => Ok(content.map(Some)),
            // What is there now may never have been captured.
            Err(Error::NoContent { .. }) => {
                let seen = look(self.root()?, &changed.path, SMALL);
                Ok(seen.bytes.filter(|_| seen.state.same(state)).map(Some))
            }
            Err(error) => Err(error),
        }
    }
}

impl Passage {
    fn go_on(&mut self, change: &Change) {
        (self.after, self.assumed) = (change.after.clone(), false);
        if change.source != Source::Outside {
            self.source = change.source;
        }
    }

    fn end(self, root: &Root, path: TreePath, end: End) -> Changed {
        let Self { before, after, source, assumed } = self;
        let (after, assumed) = match (after, end) {
            (Some(after), End::Captured) => (after, assumed),
            (after, _) => {
                let now = look(root, &path, u64::MAX).state;
                let is_known = after.is_some_and(|after| after.same(&now));
                (now, !is_known)
            }
        };
        Changed { path, before, after, source, assumed }
    }
}
