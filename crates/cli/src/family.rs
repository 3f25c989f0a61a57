//! A session and whatever belongs to it: its subagents' sessions, theirs, and so on.

use rethread_store::{Filter, Replicated, SessionId, Show, Store};

use crate::failure::Failure;
use crate::ui::Ui;

/// Returns a session and all that belong to it, each after the one that it belongs to.
fn family_of(id: &SessionId, store: &Store) -> Result<Vec<SessionId>, Failure> {
    let mut filter = Filter::everything();
    filter.children = Show::Only;
    let listing = pollster::block_on(store.list(&filter))?;
    let mut family = vec![id.clone()];
    // What the official SDKs store through a keeper knows of it by its name alone. One that cannot be read is no less a
    // part: copying it says why.
    if let Some(name) = id.as_str().strip_prefix("sdk.") {
        let beginning = format!("sub.{name}.");
        let unreadable = listing.unreadable.iter().map(|(id, _)| id);
        let all = listing.sessions.iter().map(|it| &it.session_id).chain(unreadable);
        family.extend(all.filter(|child| child.as_str().starts_with(&beginning)).cloned());
    }
    let mut next = 0;
    while let Some(parent) = family.get(next).cloned() {
        let is_child = |it: &&rethread_store::Metadata| it.parent_id.as_ref() == Some(&parent);
        let children = listing.sessions.iter().filter(is_child).map(|it| &it.session_id);
        let new: Vec<SessionId> = children.filter(|child| !family.contains(child)).cloned().collect();
        family.extend(new);
        next += 1;
    }
    Ok(family)
}

/// Copies a session and all that belong to it.
pub(crate) fn replicate_family(
    id: &SessionId,
    from: &Store,
    to: &Store,
    ui: &mut Ui,
) -> Result<Replicated, Failure> {
    let mut all = Replicated::default();
    for session in family_of(id, from)? {
        let before = all.records;
        let mut tell = |so_far: Replicated| ui.progress_so_far("copying records", before + so_far.records);
        let done = pollster::block_on(from.replicate(&session, to, &mut tell))?;
        all.sessions += done.sessions;
        all.records += done.records;
        all.contents += done.contents;
    }
    Ok(all)
}
