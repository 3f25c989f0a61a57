//! The log of a session that checkpoints are recorded in. What its records mean is the checkpoint crate's affair.

use crate::backend::{Durability, LogName};
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::ticket::Ack;
use crate::writer::{Draft, Patience, Request};

impl Session {
    /// Records a capture of files, and waits until that is as durable as this place can make it, or until there is
    /// trouble: a tool or a rewind waits for the answer.
    pub async fn append_checkpoint(&self, entry: Entry) -> Result<Ack> {
        let backend = self.store.backend();
        let (size, limit) = (entry.as_bytes().len(), backend.capabilities().max_record);
        if size > limit {
            return Err(Error::TooLarge { size, limit });
        }
        let log = self.log(LogName::Checkpoints);
        let drafts = vec![Draft::entry(entry)];
        let request = Request { drafts, patience: Patience::UntilTrouble, ..Request::default() };
        let ack = self.store.request(&log, request).await?.await?;
        // A store may be told to sync late; what a rewind relies on cannot wait for that.
        if ack.durability < Durability::Synced.min(backend.capabilities().durability) {
            backend.settle(&log).await?;
        }
        Ok(ack)
    }
}
