//! Checkpoints: captures and rewinds of trees, against git with a shadow repository.

mod forest;
pub(crate) mod huge;
mod rewinding;
mod shadow_git;
mod touched;
mod weight;
mod whole;

use std::path::{Path, PathBuf};

use rethread_checkpoint::{Checkpointer, Settings};
use rethread_store::backend::Durability;

use crate::area::Trial;
use crate::failure::Outcome;
use crate::ours;

/// Everything that is tried of checkpoints.
pub(crate) const TRIALS: &[Trial] = &[
    Trial { name: "touched", run: touched::run },
    Trial { name: "whole", run: whole::run },
    Trial { name: "first", run: |bench| Ok(vec![whole::first(bench)?]) },
    Trial { name: "rewind", run: rewinding::run },
    Trial { name: "weight", run: |bench| Ok(vec![weight::run(bench)?]) },
    Trial { name: "huge", run: |bench| Ok(vec![huge::run(bench)?]) },
];

/// Opens the checkpoints of a session that works in a folder.
fn open(store: &Path, root: &Path) -> Outcome<Checkpointer> {
    let store = ours::store(store, Durability::Synced);
    let id = "s".parse()?;
    let session = match pollster::block_on(store.load(&id))? {
        Some(session) => session,
        None => pollster::block_on(store.create(rethread_store::NewSession::at(root).id(id)))?,
    };
    let mut settings = Settings::default();
    settings.cache = session
        .store()
        .backend()
        .path(&log(&session))
        .and_then(|log| Some(log.ancestors().nth(3)?.join("cache")));
    Ok(pollster::block_on(Checkpointer::open(&session, root, settings))?)
}

fn log(session: &rethread_store::Session) -> rethread_store::backend::LogKey {
    rethread_store::backend::LogKey::new(session.id().clone(), rethread_store::backend::LogName::Checkpoints)
}

/// Finds the program as people call it, which `make bench` builds beside this one.
fn program() -> Outcome<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("rethread");
    match path.try_exists()? {
        true => Ok(path),
        false => Err("the program `rethread` is not built; `make bench` builds it".into()),
    }
}
