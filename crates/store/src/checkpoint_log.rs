//! The log of a session that checkpoints are recorded in. What its records mean is the checkpoint crate's affair.

use crate::backend::{Durability, LogName};
use crate::entry::Entry;
use crate::error::Result;
use crate::session::Session;
use crate::ticket::Ack;
use crate::writer::Draft;

impl Session {
    /// Records a capture of files, and waits until that is as durable as this place can make it.
    pub async fn append_checkpoint(&self, entry: Entry) -> Result<Ack> {
        let ack = self.submit(LogName::Checkpoints, vec![Draft::entry(entry)]).await?.await?;
        let backend = self.store.backend();
        // A store may be told to sync late; what a rewind relies on cannot wait for that.
        if ack.durability < Durability::Synced.min(backend.capabilities().durability) {
            backend.settle(&self.log(LogName::Checkpoints)).await?;
        }
        Ok(ack)
    }
}
