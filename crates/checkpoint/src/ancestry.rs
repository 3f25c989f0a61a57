//! Which other sessions' checkpoints a session has a part in.

use std::collections::HashSet;

use rethread_store::{EntryId, Session, SessionId};

use crate::error::Result;
use crate::log::Log;
use crate::record::Checkpoint;

/// How long a row of subagents of subagents may be.
const GENERATIONS: usize = 64;

/// Returns the session in whose log a session's checkpoints are: its own, or for a subagent its parent's, so that the
/// turn that spawned it is rewound with all that came of it.
pub(crate) async fn owner(session: &Session) -> Result<Session> {
    let mut owner = session.clone();
    for _ in 0..GENERATIONS {
        let metadata = owner.metadata().await?;
        let (true, Some(parent)) = (metadata.child, metadata.parent_id) else { break };
        match session.store().load(&parent).await {
            Ok(Some(parent)) => owner = parent,
            // Its parent is in the trash or gone, and takes no records any more.
            _ => break,
        }
    }
    Ok(owner)
}

/// Returns what the sessions that a fork comes from recorded in the turns that it inherits.
pub(crate) async fn inherited(session: &Session) -> Result<Vec<Checkpoint>> {
    if !session.store().backend().capabilities().keeps {
        return Ok(Vec::new());
    }
    let metadata = session.metadata().await?;
    if metadata.parent_id.is_none() || metadata.detached {
        return Ok(Vec::new());
    }
    let mut chain: Vec<(SessionId, HashSet<EntryId>)> = Vec::new();
    for record in session.messages().await?.records {
        if record.session == *session.id() {
            break;
        }
        let id = record.entry.id().clone();
        match chain.last_mut().filter(|(of, _)| *of == record.session) {
            Some((_, ids)) => drop(ids.insert(id)),
            None => chain.push((record.session, HashSet::from([id]))),
        }
    }
    let mut inherited = Vec::new();
    for (ancestor, messages) in chain {
        let records = Log::read(session.store().backend(), &ancestor).await?.live();
        let belongs =
            |record: &Checkpoint| record.message.as_ref().is_some_and(|message| messages.contains(message));
        // A record that names no message belongs to what came after it.
        let end = records.iter().rposition(belongs).map_or(0, |last| last + 1);
        let ours = |record: &Checkpoint| record.message.is_none() || belongs(record);
        inherited.extend(records.into_iter().take(end).filter(ours));
    }
    Ok(inherited)
}
