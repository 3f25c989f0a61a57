//! Rethread as a contestant: stores on a folder, and sessions made quickly for what is measured later.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rethread_store::backend::Durability;
use rethread_store::{Disk, FileBackend, NewSession, Options, RealDisk, Session, SessionId, Store, Ticket};

use crate::careless_disk::CarelessDisk;
use crate::corpus::entries;
use crate::failure::Outcome;

/// Where sessions are that are begun here.
pub(crate) const DIRECTORY: &str = "/home/ada/parser";

/// Opens the store of a folder.
pub(crate) fn store(folder: &Path, durability: Durability) -> Store {
    store_on(Arc::new(RealDisk), folder, durability)
}

/// Opens the store of a folder on some other disk.
pub(crate) fn store_on(disk: Arc<dyn Disk>, folder: &Path, durability: Durability) -> Store {
    Store::new(FileBackend::on(disk, folder), Options { durability, ..Options::default() })
}

/// Opens the store of a folder such that nothing is ever synced.
pub(crate) fn careless_store(folder: &Path) -> Store {
    store_on(Arc::new(CarelessDisk), folder, Durability::Off)
}

/// Begins a session.
pub(crate) fn create(store: &Store, id: &str) -> Outcome<Session> {
    let new = NewSession::at(DIRECTORY).id(id.parse()?);
    Ok(pollster::block_on(store.create(new))?)
}

/// Begins a session with entries.
pub(crate) fn create_with(store: &Store, id: &str, lines: &[Bytes]) -> Outcome<Session> {
    let session = create(store, id)?;
    append(&session, lines)?;
    Ok(session)
}

/// Appends entries, and waits for all of them at the end.
pub(crate) fn append(session: &Session, lines: &[Bytes]) -> Outcome<()> {
    let tickets: Vec<Ticket> = pollster::block_on(async {
        let mut tickets = Vec::with_capacity(lines.len());
        for entry in entries(lines)? {
            tickets.push(session.append(entry).await?);
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(tickets)
    })?;
    tickets.into_iter().try_for_each(|ticket| ticket.wait().map(drop))?;
    Ok(())
}

/// Returns a session that is there.
pub(crate) fn open(store: &Store, session: &str) -> Outcome<Session> {
    Ok(pollster::block_on(store.open(&session.parse::<SessionId>()?))?)
}
