//! The log of a session that checkpoints are recorded in. What its records mean is the checkpoint crate's affair.

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::backend::{Durability, From, LogKey, LogName};
use crate::chain::Record;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::SessionId;
use crate::session::Session;
use crate::ticket::Ack;
use crate::writer::{Draft, Patience, Request};

const READ_AHEAD: usize = 1 << 20;
/// How many copies go in together: a batch of them fits the queue.
const COPIES: usize = 128;

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
        let drafts = vec![Draft::entry(&entry)];
        let request = Request { drafts, patience: Patience::UntilTrouble, ..Request::default() };
        let ack = self.store.request(&log, request).await?.await?;
        // A store may be told to sync late; what a rewind relies on cannot wait for that.
        if ack.durability < Durability::Synced.min(backend.capabilities().durability) {
            self.store.settle(&log).await?;
        }
        Ok(ack)
    }

    /// Copies what the sessions that an inherited history is in recorded of files in its turns. Twice does no harm: a
    /// record is known by its id.
    pub(crate) async fn inherit_checkpoints(&self, history: &[Record]) -> Result<()> {
        for copies in self.inherited_checkpoints(history).await?.chunks(COPIES) {
            let drafts = copies.iter().map(Draft::entry).collect();
            self.submit(LogName::Checkpoints, drafts).await?.await?;
        }
        Ok(())
    }

    /// Returns those copies.
    pub(crate) async fn inherited_checkpoints(&self, history: &[Record]) -> Result<Vec<Entry>> {
        let mut turns: Vec<(SessionId, HashSet<&str>)> = Vec::new();
        for record in history.iter().filter(|record| record.session != self.id) {
            match turns.last_mut().filter(|(session, _)| *session == record.session) {
                Some((_, messages)) => drop(messages.insert(record.entry.id().as_str())),
                None => turns.push((record.session.clone(), HashSet::from([record.entry.id().as_str()]))),
            }
        }
        let mut copies = Vec::new();
        for (session, messages) in turns {
            copies.extend(self.checkpoints_of(&session, &messages).await?);
        }
        Ok(copies)
    }

    /// Returns copies of the records that belong to some turns of a session. One that names no message belongs to
    /// what came after it.
    async fn checkpoints_of(&self, session: &SessionId, messages: &HashSet<&str>) -> Result<Vec<Entry>> {
        let (backend, log) = (self.store.backend(), LogKey::new(session.clone(), LogName::Checkpoints));
        let (mut copies, mut from, mut end) = (Vec::new(), 0, 0);
        loop {
            let chunk = backend.read(&log, From::Position(from), READ_AHEAD).await?;
            for line in &chunk.lines {
                let Ok(mut record) = serde_json::from_slice::<Map<String, Value>>(&line.body()) else {
                    continue;
                };
                let message = record.get("message").and_then(Value::as_str).map(str::to_owned);
                if message.as_deref().is_some_and(|message| !messages.contains(message)) {
                    continue;
                }
                record.entry("inherited").or_insert_with(|| session.as_str().into());
                copies.push(Entry::of(&record)?);
                if message.is_some() {
                    end = copies.len();
                }
            }
            if chunk.next == from {
                copies.truncate(end);
                return Ok(copies);
            }
            from = chunk.next;
        }
    }
}
