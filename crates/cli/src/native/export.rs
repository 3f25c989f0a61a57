//! A stored session as one of Claude Code's own.

use std::path::PathBuf;

use rethread_store::SessionId;
use rethread_transcripts::Written;

use crate::context::Context;
use crate::failure::Failure;

/// Writes a stored session as one of Claude Code's own.
pub(crate) fn export(id: &SessionId, context: &Context) -> Result<(Written, PathBuf), Failure> {
    let session = pollster::block_on(context.store.open(id))?;
    let metadata = pollster::block_on(session.metadata())?;
    let here = || std::env::current_dir().unwrap_or_default();
    let cwd = metadata.cwd.map_or_else(here, PathBuf::from);
    let written = pollster::block_on(rethread_bridge::export(&session, context.native.claude()?, &cwd))?;
    Ok((written, cwd))
}
