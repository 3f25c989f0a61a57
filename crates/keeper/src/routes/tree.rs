//! The branches of a conversation.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use rethread_store::{Branched, EntryId, Record};
use rethread_transcripts::Transcript;
use serde::Serialize;
use utoipa::ToSchema;

use super::sessions::find_fresh;
use super::transcript::transcript;
use crate::extract::SessionName;
use crate::keeper::Keeper;
use crate::problem::Problem;

/// The branches of a conversation, and its relatives.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tree {
    branches: Vec<TreeBranch>,
    /// The session that it was forked from.
    parent: Option<String>,
    /// The sessions that were forked from it.
    forks: Vec<String>,
}

/// One branch.
#[derive(Serialize, ToSchema)]
pub(crate) struct TreeBranch {
    /// Its last message.
    leaf: Option<String>,
    /// It is the one that would be resumed.
    active: bool,
    messages: u64,
    /// The last message that it shares with the active one.
    leaves_at: Option<String>,
}

/// The branches and forks of a session
#[utoipa::path(get, path = "/sessions/{id}/tree", params(("id" = String, Path, example = "8f529643-98e0-4045-abbb-6f2887e6ce71")), responses((status = 200, body = Tree), (status = "default", body = Problem, content_type = "application/problem+json")))]
pub(crate) async fn tree(
    State(keeper): State<Arc<Keeper>>,
    name: SessionName,
) -> Result<Json<Tree>, Problem> {
    let known = find_fresh(&keeper, &name).await?;
    let (parent, forks) = (known.card.parent.clone(), known.card.forks.clone());
    if known.native.is_none() {
        let session = keeper.store().open(&name.id.parse()?).await?;
        let active = session.messages().await?.records;
        let branches = stored_branches(&active, &session.all_branches().await?);
        return Ok(Json(Tree { branches, parent, forks }));
    }
    let (_, transcript) = transcript(&keeper, &name).await?;
    let branches = tokio::task::spawn_blocking(move || branches(&transcript));
    let branches = branches.await.map_err(|error| Problem::failed(&error))??;
    Ok(Json(Tree { branches, parent, forks }))
}

fn branches(transcript: &Transcript) -> Result<Vec<TreeBranch>, Problem> {
    let active: Vec<_> = transcript.active().spans().collect();
    let id_at = |chain: &rethread_transcripts::Chain, at: usize| -> Result<Option<String>, Problem> {
        let mut reader = transcript.read(chain);
        let mut number = 0;
        while let Some(entry) = reader.next() {
            let entry = entry?;
            if number == at {
                return Ok(entry.view().uuid.map(std::borrow::Cow::into_owned));
            }
            number += 1;
        }
        Ok(None)
    };
    let mut all = Vec::new();
    for chain in transcript.branches() {
        let spans: Vec<_> = chain.spans().collect();
        let shared = spans.iter().zip(&active).take_while(|(one, other)| one == other).count();
        let is_active = spans.last() == active.last();
        let leaf = chain.last(1);
        let leaf = id_at(&leaf, leaf.len().saturating_sub(1))?;
        let leaves_at = match (is_active, shared) {
            (true, _) | (_, 0) => None,
            (false, shared) => id_at(&chain, shared - 1)?,
        };
        all.push(TreeBranch { leaf, active: is_active, messages: chain.message_count(), leaves_at });
    }
    Ok(all)
}

/// Returns the branches of a stored session: the active one, and those that end elsewhere.
fn stored_branches(active: &[Record], all: &[Branched]) -> Vec<TreeBranch> {
    let parents: HashMap<&EntryId, Option<&EntryId>> =
        all.iter().map(|branched| (branched.record.entry.id(), branched.parent.as_ref())).collect();
    let followed: HashSet<&EntryId> = parents.values().copied().flatten().collect();
    let in_active: HashSet<&EntryId> = active.iter().map(|record| record.entry.id()).collect();
    let branch = |record: &Record, active: bool, leaves_at: Option<&EntryId>| TreeBranch {
        leaf: Some(record.entry.id().to_string()),
        active,
        messages: record.depth,
        leaves_at: leaves_at.map(ToString::to_string),
    };
    let mut branches: Vec<TreeBranch> =
        active.last().map(|last| branch(last, true, None)).into_iter().collect();
    for Branched { record, .. } in all {
        let id = record.entry.id();
        if !followed.contains(id) && !in_active.contains(id) {
            let before = |id: &&'_ EntryId| parents.get(*id).copied().flatten();
            let shared =
                std::iter::successors(before(&id), before).take(all.len()).find(|id| in_active.contains(id));
            branches.push(branch(record, false, shared));
        }
    }
    branches
}
