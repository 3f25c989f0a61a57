//! Claude Code's own sessions, copied into a store, again and again: only what is new is added.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use rethread_store::{
    BlobId, Entry, Fork, ForkKind, Metadata, NewSession, Session as Stored, SessionId, Store,
};
use rethread_transcripts::{Chain, Session, Sidechain, Subagent, Transcript};
use serde_json::{Value, json};

use crate::branches::Branches;
use crate::error::Result;
use crate::steps::Steps;

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
    let (mut branches, mut steps) = (Branches::of(stored).await?, Steps::default());
    for chain in transcript.branches().filter(|chain| *chain != active) {
        bring_in_branch(&chain, &mut steps, transcript, stored, &mut branches).await?;
    }
    let entries = entries(transcript, &active, stored, &mut refused)?;
    branches.save(&entries, change).await?;
    Ok(refused)
}

/// Brings in a conversation that is not the active one. Only the steps are read that no other took before: where somebody
/// went back a thousand times, reading all of them for each would take hours.
async fn bring_in_branch(
    chain: &Chain,
    steps: &mut Steps,
    transcript: &Transcript,
    stored: &Stored,
    branches: &mut Branches<'_>,
) -> Result<()> {
    let gone = steps.go(chain);
    // What is refused here is refused once more as a part of the whole.
    let end = entries_or_refusals(transcript, &chain.from(gone), stored)?;
    let after = steps.stored_before(gone).cloned();
    steps.note(gone, end.iter().map(|entry| Some(entry.as_ref().ok()?.id().clone())));
    let end: Vec<Entry> = end.into_iter().flatten().collect();
    if let Some(after) = after
        && branches.add_end(&after, &end).await?
    {
        return Ok(());
    }
    let entries = entries(transcript, chain, stored, &mut Vec::new())?;
    if branches.have(&entries) { Ok(()) } else { branches.save(&entries, |_| ()).await }
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
    let taken = entries_or_refusals(transcript, chain, stored)?.into_iter();
    Ok(taken.filter_map(|entry| entry.map_err(|error| refused.push(error)).ok()).collect())
}

fn entries_or_refusals(
    transcript: &Transcript,
    chain: &Chain,
    stored: &Stored,
) -> Result<Vec<rethread_store::Result<Entry>>> {
    let (mut reader, mut entries) = (transcript.read(chain), Vec::with_capacity(chain.len()));
    while let Some(entry) = reader.next().transpose()? {
        entries.push(taken(&entry, stored));
    }
    Ok(entries)
}

/// Returns an entry of a transcript as a store takes it.
pub(crate) fn taken(
    native: &rethread_transcripts::Entry<'_>,
    stored: &Stored,
) -> rethread_store::Result<Entry> {
    let (size, limit) = (native.raw().len(), stored.store().backend().capabilities().max_record);
    if size > limit {
        return Err(rethread_store::Error::TooLarge { size, limit });
    }
    // A store takes text only; what is none in an entry is shown as such everywhere.
    let text = || String::from_utf8_lossy(native.raw()).into_owned().into_bytes();
    let entry = Entry::parse(native.raw().to_vec()).or_else(|_| Entry::parse(text()))?;
    if entry.as_str().contains(entry.id().as_str()) {
        return Ok(entry);
    }
    // One whose own id no store takes got a new one, and would be a new entry each time.
    let Some(uuid) = native.text("uuid") else { return Ok(entry) };
    let id = uuid.parse().or_else(|_| BlobId::of(uuid.as_bytes()).to_string().parse())?;
    Ok(entry.with_id(id))
}
