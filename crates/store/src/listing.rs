//! Finding sessions: newest first, filtered, a page at a time.

use std::time::Duration;

use jiff::Timestamp;

use crate::backend::{Expect, Key, Listed, Space};
use crate::catalog::{Catalog, Row};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::SessionId;
use crate::metadata::Metadata;
use crate::resume::Scope;
use crate::session::Session;
use crate::side_by_side::side_by_side;
use crate::store::{Store, canonical, project_of};

/// A log that was written to since may not be durable yet: what was learnt of it is not kept.
const QUIET: Duration = Duration::from_secs(2);

/// From how many new records on it is worth remembering what they said.
const GROWN: u64 = 32;

/// Which sessions to list. The default: those that a person started and did not put away.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Filter {
    /// Only those of a place.
    pub scope: Option<Scope>,
    /// Archived ones.
    pub archived: Show,
    /// Those in the trash.
    pub trashed: Show,
    /// Children and digests.
    pub children: Show,
    /// Only those with this label.
    pub tag: Option<String>,
    /// Only those with this text in their name, first prompt or id, whatever the case.
    pub text: Option<String>,
    /// Only forks of this session.
    pub parent: Option<SessionId>,
    /// Go on after this session, the last one of the page before.
    pub after: Option<Mark>,
    /// How many at most; 0 for all.
    pub limit: usize,
}

impl Filter {
    /// Lists every session there is.
    pub fn everything() -> Self {
        Self { archived: Show::Also, trashed: Show::Also, children: Show::Also, ..Self::default() }
    }

    /// Lists what is in the trash.
    pub fn trash() -> Self {
        Self { trashed: Show::Only, ..Self::everything() }
    }
}

/// What to do with one kind of session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Show {
    /// Leave them out.
    #[default]
    Hide,
    /// List them among the others.
    Also,
    /// List no others.
    Only,
}

impl Show {
    fn admits(self, is: bool) -> bool {
        match self {
            Show::Hide => !is,
            Show::Also => true,
            Show::Only => is,
        }
    }
}

/// A place in the listing: stays right while sessions come and go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When the session was last written to.
    pub updated_at: Timestamp,
    /// Its id.
    pub session_id: SessionId,
}

impl Mark {
    /// Returns a session's place.
    pub fn of(metadata: &Metadata) -> Self {
        Self { updated_at: metadata.updated_at, session_id: metadata.session_id.clone() }
    }
}

/// A page of sessions, newest first.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    /// The sessions.
    pub sessions: Vec<Metadata>,
    /// Sessions that could not be read, and why: they are never just left out.
    pub unreadable: Vec<(SessionId, Error)>,
    /// Where the next page begins; `None` on the last one.
    pub next: Option<Mark>,
}

impl Store {
    /// Lists sessions, newest first.
    pub async fn list(&self, filter: &Filter) -> Result<Listing> {
        self.check_format().await?;
        let backend = &*self.inner.backend;
        let wanted = Wanted::new(filter);
        let mut listing = Listing::default();
        let everything = backend.list(Space::Sessions, None, usize::MAX).await?;
        let document = backend.get(&Key::catalog()).await?;
        let catalog =
            document.as_ref().map_or_else(Catalog::default, |document| Catalog::read(&document.bytes));
        let (mut rows, mut fresh) = (Vec::with_capacity(everything.len()), Vec::new());
        let (mut found, mut from) = (0, 0);
        let quiet = Timestamp::now() - QUIET;
        for listed in everything {
            if let Some(row) = catalog.find(&listed, &mut from) {
                rows.push(row.clone());
                found += 1;
                continue;
            }
            let Ok(session) = listed.name.parse::<SessionId>() else {
                continue;
            };
            match self.read_listed(&session, &listed).await {
                Ok(metadata) if listed.modified < quiet => rows.extend(Row::new(&listed, metadata.as_ref())),
                Ok(metadata) => fresh.extend(Row::new(&listed, metadata.as_ref())),
                Err(error) => listing.unreadable.push((session, error)),
            }
        }
        if catalog.is_stale(found, rows.len())
            && let Some(document) = Catalog::to_document(rows.clone())
        {
            // Only a cache; on a read-only disk every listing looks for itself.
            let _ = backend.put(&Key::catalog(), &document, Expect::Any).await;
        }
        rows.append(&mut fresh);
        rows.retain(|row| row.is_session() && wanted.may_admit(row));
        rows.sort_unstable_by(|one, other| {
            (other.updated_at, other.name()).cmp(&(one.updated_at, one.name()))
        });
        let after = filter.after.as_ref().map(|mark| (mark.updated_at, mark.session_id.as_str()));
        rows.retain(|row| after.is_none_or(|after| (row.updated_at, row.name()) < after));
        let read = |row: &Row<'_>| row.metadata().filter(|metadata| wanted.admits(metadata));
        if filter.limit == 0 {
            listing.sessions = side_by_side(&rows, read);
            return Ok(listing);
        }
        for metadata in rows.iter().filter_map(read) {
            if listing.sessions.len() == filter.limit {
                listing.next = listing.sessions.last().map(Mark::of);
                break;
            }
            listing.sessions.push(metadata);
        }
        Ok(listing)
    }

    /// Returns the session with the newest entry in a place, leaving out children, digests and archived ones.
    pub async fn latest(&self, scope: &Scope) -> Result<Option<Session>> {
        let filter = Filter { scope: Some(scope.clone()), limit: 1, ..Filter::default() };
        let listing = self.list(&filter).await?;
        Ok(listing
            .sessions
            .into_iter()
            .next()
            .map(|metadata| Session::new(self.clone(), metadata.session_id)))
    }

    /// Returns the ids that begin with some text, at most `limit`, trash included.
    pub async fn ids_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<SessionId>> {
        self.check_format().await?;
        let listed = self.inner.backend.list(Space::Sessions, None, usize::MAX).await?;
        let ids = listed.into_iter().map(|listed| listed.name).filter(|name| name.starts_with(prefix));
        Ok(ids.filter_map(|name| name.parse().ok()).take(limit).collect())
    }

    async fn read_listed(&self, session: &SessionId, listed: &Listed) -> Result<Option<Metadata>> {
        let backend = &*self.inner.backend;
        self.check_erased(session).await?;
        let fold = match Fold::cached(backend, session).await? {
            Some(fold) if !listed.change.is_empty() && fold.change == listed.change => fold,
            cached => self.read_grown(session, cached).await?,
        };
        if fold.next == 0 {
            return self.check_unreadable(session).await.map(|()| None);
        }
        if fold.purging {
            return Ok(None);
        }
        Ok(Some(fold.metadata(Some(listed.modified))))
    }
}

impl Store {
    /// Reads what was added to a log since its metadata was cached, or since it was last listed.
    async fn read_grown(&self, session: &SessionId, cached: Option<Fold>) -> Result<Fold> {
        let backend = &*self.inner.backend;
        let listed = Fold::listed(backend, session).await?;
        // Of two that reach as far, the last one counts: only the cache is made anew by a repair.
        let newest = [listed, cached].into_iter().flatten().max_by_key(|fold| fold.next);
        let before = newest.as_ref().map_or(0, |fold| fold.next);
        let fold = Fold::load_from(backend, session, newest).await?;
        if fold.next > before.saturating_add(GROWN) {
            // Whoever wrote it may still be at it, or be dead: the next listing need not read all of that again.
            let _ = backend.put(&Key::listed(session), &fold.to_document(), Expect::Any).await;
        }
        Ok(fold)
    }
}

/// A filter with its paths and texts made ready.
struct Wanted<'a> {
    filter: &'a Filter,
    cwd: Option<String>,
    project: Option<String>,
    text: Option<String>,
}

impl<'a> Wanted<'a> {
    fn new(filter: &'a Filter) -> Self {
        let (mut cwd, mut project) = (None, None);
        match &filter.scope {
            Some(Scope::Directory(path)) => cwd = Some(canonical(path).display().to_string()),
            Some(Scope::Project(path)) => project = Some(project_of(&canonical(path)).display().to_string()),
            None => {}
        }
        Self { filter, cwd, project, text: filter.text.as_ref().map(|text| text.to_lowercase()) }
    }

    /// Returns whether a session may be wanted, as far as that can be told without reading all about it.
    fn may_admit(&self, row: &Row<'_>) -> bool {
        let filter = self.filter;
        filter.archived.admits(row.archived)
            && filter.trashed.admits(row.trashed)
            && (filter.children.admits(row.child) || Defect::PickChildren.is_on())
            && self.cwd.as_ref().is_none_or(|cwd| row.cwd.as_ref().is_some_and(|its| its == cwd))
            && self
                .project
                .as_ref()
                .is_none_or(|project| row.project.as_ref().is_some_and(|its| its == project))
    }

    fn admits(&self, metadata: &Metadata) -> bool {
        let filter = self.filter;
        let has_text = |text: &String| {
            let places = [
                metadata.name.as_deref(),
                metadata.first_prompt.as_deref(),
                Some(metadata.session_id.as_str()),
            ];
            places.into_iter().flatten().any(|place| place.to_lowercase().contains(text))
        };
        filter.tag.as_ref().is_none_or(|tag| metadata.tags.contains(tag))
            && filter.parent.as_ref().is_none_or(|parent| metadata.parent_id.as_ref() == Some(parent))
            && self.text.as_ref().is_none_or(has_text)
    }
}
