//! What a session's checkpoints keep of files, content by content.

use std::collections::HashSet;

use rethread_store::{BlobId, SessionId, Store};

use crate::contents::Contents;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::path::TreePath;
use crate::state::State;
use crate::tracker::listed;

/// Contents that were read before: they are shared, and none is read twice.
#[derive(Debug, Default)]
pub struct Read(HashSet<BlobId>);

/// Hands over every content that a session's checkpoints keep and that was not read before, with a path that had it: at most
/// its first `most` bytes. Those that are missing or damaged are left to [`verify`](crate::verify).
pub async fn read_contents(
    store: &Store,
    session: &SessionId,
    read: &mut Read,
    most: usize,
    take: &mut (dyn FnMut(&TreePath, &[u8]) + Send),
) -> Result<()> {
    let contents = Contents::of(store.backend());
    for record in Log::read(store.backend(), session).await?.live() {
        for change in &record.changes {
            for state in change.before.iter().chain(&change.after) {
                one(&contents, &change.path, state, read, most, take).await?;
            }
        }
        if let Some(baseline) = &record.tree {
            // One whose list is lost is told of by `verify`, too.
            for (path, state) in listed(&contents, baseline).await.unwrap_or_default() {
                one(&contents, &path, &state, read, most, take).await?;
            }
        }
    }
    Ok(())
}

async fn one(
    contents: &Contents,
    path: &TreePath,
    state: &State,
    read: &mut Read,
    most: usize,
    take: &mut (dyn FnMut(&TreePath, &[u8]) + Send),
) -> Result<()> {
    let Some(file) = state.file().filter(|file| read.0.insert(file.hash)) else { return Ok(()) };
    let mut content = Vec::new();
    let whole = contents.read(path, file, |piece| {
        content.extend_from_slice(&piece[..piece.len().min(most - content.len())]);
        Ok(())
    });
    match whole.await {
        Err(Error::NoContent { .. }) => return Ok(()),
        whole => whole?,
    }
    take(path, &content);
    Ok(())
}
