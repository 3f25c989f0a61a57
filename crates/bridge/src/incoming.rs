//! Claude Code's own sessions, copied into a store, again and again: only what is new is added.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use rethread_store::{Entry, Fork, ForkKind, Metadata, NewSession, Session as Stored, SessionId, Store};
use rethread_transcripts::{Chain, Session, Sidechain, Subagent, Transcript};
use serde_json::{Value, json};

use crate::branches::Branches;
use crate::error::Result;

/// What a stored session remembers of its origin.
const MARK: &str = "claude_transcript";

/// A session that was brought in.
#[derive(Debug)]
pub struct Brought {
    /// The session in the store.
    pub stored: Stored,
    /// There was something new.
    pub is_new: bool,
    /// Why entries of it were refused.
    pub refused: Vec<rethread_store::Error>,
}

/// Brings a store's copy of a session up to date.
pub async fn bring_in(native: &Session, store: &Store) -> Result<Brought> {
    let id: SessionId = native.session_id.parse()?;
    let (mark, there) = (mark(native), store.load(&id).await?);
    if let Some(there) = &there
        && there.metadata().await?.extra.get(MARK) == Some(&mark)
    {
        return Ok(Brought { stored: there.clone(), is_new: false, refused: Vec::new() });
    }
    let stored = match there {
        Some(there) => there,
        None => store.create(NewSession::at(native.cwd.clone().unwrap_or_default()).id(id)).await?,
    };
    let transcript = Transcript::open(&native.path)?;
    let refused = bring_in_to(native, &transcript, &stored).await?;
    Ok(Brought { stored, is_new: true, refused })
}

/// Brings everything of a session into a stored one. Returns why entries of it were refused.
pub(crate) async fn bring_in_to(
    native: &Session,
    transcript: &Transcript,
    stored: &Stored,
) -> Result<Vec<rethread_store::Error>> {
    // Taken before anything is read: what comes meanwhile is new the next time.
    let (mark, mut describe) = (mark(native), description(native));
    let change = move |metadata: &mut Metadata| {
        describe(metadata);
        metadata.extra.insert(MARK.into(), mark.clone());
    };
    let mut refused = Vec::new();
    for subagent in &Subagent::all_of(&native.path) {
        bring_in_subagent(subagent, stored, &mut refused).await?;
    }
    // Old versions wrote what subagents said into the session's own file.
    for sidechain in transcript.sidechains() {
        bring_in_sidechain(&sidechain, transcript, stored, &mut refused).await?;
    }
    // The active branch last, so that it is the active one here too.
    let active = transcript.active();
    let mut branches = Branches::of(stored).await?;
    for chain in transcript.branches().into_iter().filter(|chain| *chain != active) {
        // What is refused here is refused once more as a part of the whole.
        let entries = entries(transcript, &chain, stored, &mut Vec::new())?;
        if !branches.have(&entries) {
            branches.save(&entries, |_| ()).await?;
        }
    }
    let entries = entries(transcript, &active, stored, &mut refused)?;
    branches.save(&entries, change).await?;
    Ok(refused)
}

/// Returns what a stored session is to say of one of Claude Code's own, as it is now.
pub(crate) fn description(native: &Session) -> impl FnMut(&mut Metadata) + Send + 'static {
    let about = native.clone();
    move |metadata: &mut Metadata| {
        metadata.name = about.custom_title.clone().or_else(|| metadata.name.clone());
        metadata.model = about.model.clone().or_else(|| metadata.model.clone());
        metadata.archived = about.archived;
        metadata.tags = about.tag.iter().cloned().collect();
    }
}

/// Returns what is different when there is something new: in the transcript, beside it, or with a subagent, who may go on
/// when the session itself does not.
fn mark(session: &Session) -> Value {
    let subagents = Subagent::all_of(&session.path);
    let subagents: Vec<Value> = subagents.iter().map(|it| json!([it.agent_id, state(&it.path)])).collect();
    json!([
        session.size,
        session.updated_at.as_nanosecond().to_string(),
        session.archived,
        session.custom_title,
        subagents
    ])
}

/// Returns what is different when a file was written to.
pub(crate) fn state(path: &Path) -> Option<Value> {
    let metadata = fs::metadata(path).ok()?;
    let since = metadata.modified().ok()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Some(json!([metadata.len(), since.as_nanos().to_string()]))
}

/// Brings in what a subagent said, as a child of its session.
pub(crate) async fn bring_in_subagent(
    subagent: &Subagent,
    parent: &Stored,
    refused: &mut Vec<rethread_store::Error>,
) -> Result<()> {
    let id: SessionId = format!("agent-{}", subagent.agent_id).parse()?;
    let kind = subagent.agent_type.clone().unwrap_or_else(|| "subagent".into());
    let child = child(parent, id, kind, subagent.description.clone()).await?;
    let transcript = Transcript::open(&subagent.path)?;
    let entries = entries(&transcript, &transcript.active(), &child, refused)?;
    Branches::of(&child).await?.save(&entries, |_| ()).await
}

async fn bring_in_sidechain(
    sidechain: &Sidechain,
    transcript: &Transcript,
    parent: &Stored,
    refused: &mut Vec<rethread_store::Error>,
) -> Result<()> {
    let id: SessionId = format!("agent-{}", sidechain.uuid).parse()?;
    let child = child(parent, id, "subagent".into(), None).await?;
    let entries = entries(transcript, &sidechain.chain, &child, refused)?;
    Branches::of(&child).await?.save(&entries, |_| ()).await
}

/// Returns the stored session of a subagent, begun if need be.
async fn child(parent: &Stored, id: SessionId, kind: String, name: Option<String>) -> Result<Stored> {
    if let Some(child) = parent.store().load(&id).await? {
        return Ok(child);
    }
    let mut fork = Fork::of_kind(ForkKind::Child).id(id).agent(kind);
    fork.name = name;
    Ok(parent.fork(fork).await?)
}

/// Returns the entries of a chain as a store takes them, and why it refuses others.
pub(crate) fn entries(
    transcript: &Transcript,
    chain: &Chain,
    stored: &Stored,
    refused: &mut Vec<rethread_store::Error>,
) -> Result<Vec<Entry>> {
    let limit = stored.store().backend().capabilities().max_record;
    let mut entries = Vec::with_capacity(chain.len());
    let mut reader = transcript.read(chain);
    while let Some(entry) = reader.next().transpose()? {
        let size = entry.raw().len();
        if size > limit {
            refused.push(rethread_store::Error::TooLarge { size, limit });
            continue;
        }
        // A store takes text only; what is none in an entry is shown as such everywhere.
        let text = || String::from_utf8_lossy(entry.raw()).into_owned().into_bytes();
        match Entry::parse(entry.raw().to_vec()).or_else(|_| Entry::parse(text())) {
            Ok(entry) => entries.push(entry),
            Err(error) => refused.push(error),
        }
    }
    Ok(entries)
}
