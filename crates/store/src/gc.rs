//! Clearing away what nothing needs any more.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use jiff::Timestamp;

use crate::backend::{Backend, Expect, Key, Space, Target};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::{BlobId, SessionId};
use crate::references;
use crate::repair::Mode;
use crate::store::Store;

const DAY: Duration = Duration::from_secs(24 * 3600);
/// How many blobs are listed at once.
const PAGE: usize = 256;

/// What to clear away.
#[derive(Clone, Debug)]
pub struct Cleaning {
    /// Sessions that have been in the trash for longer are purged; `None`: none are.
    pub trash_after: Option<Duration>,
    /// Content that nothing refers to is put on the list of what goes when it is older than this: a capture stores
    /// content before it records it.
    pub blobs_after: Duration,
    /// How long it stays on that list, readable as ever, before it goes; if somebody puts it or refers to it meanwhile,
    /// it stays.
    pub grace: Duration,
    /// Whether to do it.
    pub mode: Mode,
}

impl Default for Cleaning {
    fn default() -> Self {
        Self { trash_after: None, blobs_after: DAY, grace: DAY, mode: Mode::Apply }
    }
}

/// What was, or would be, cleared away.
#[derive(Clone, Debug, Default)]
pub struct Cleaned {
    /// Sessions purged, or whose interrupted purge was finished, or of which nothing could be read any more because they
    /// were erased.
    pub purged: Vec<SessionId>,
    /// Sessions that could not be read or purged, and why. As long as there are any, no content is removed.
    pub failed: Vec<(SessionId, Error)>,
    /// Content removed, by what it was listed as.
    pub blobs: Vec<BlobId>,
    /// Content that nothing refers to any more, and that goes after its time of grace.
    pub waiting: Vec<BlobId>,
    /// Leftovers of interrupted operations.
    pub leftovers: u64,
}

impl Store {
    /// Clears away interrupted purges, erased sessions, sessions that never began, unreferenced content, leftovers, and, if asked to,
    /// what has been in the trash for long. Runs beside writers.
    pub async fn gc(&self, cleaning: &Cleaning) -> Result<Cleaned> {
        self.gc_telling(cleaning, &|_, _| {}).await
    }

    /// The same, and says how many of all sessions were looked through so far.
    pub async fn gc_telling(
        &self,
        cleaning: &Cleaning,
        tell: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<Cleaned> {
        self.check_format().await?;
        let backend = &*self.inner.backend;
        let now = Timestamp::now();
        let older = |than: Timestamp, age: Duration| is_older(than, age, now);
        let mut cleaned = Cleaned::default();
        let mut live = Vec::new();
        for listed in backend.list(Space::Sessions, None, usize::MAX).await? {
            let Ok(session) = listed.name.parse::<SessionId>() else { continue };
            if backend.is_erased(&session).await? {
                // What it referred to is as unknown as what it said.
                cleaned.purged.push(session);
                continue;
            }
            let fold = match Fold::load(backend, &session).await {
                Ok(fold) => fold,
                Err(error) => {
                    cleaned.failed.push((session, error));
                    continue;
                }
            };
            // An import may still be at work on it; one that died is cleared away like an interrupted purge.
            let arriving = fold.arrival.as_ref().is_some_and(|arrival| !older(arrival.at, HOUR));
            // The file's own time as well: a clock that was wrong when it was deleted must not make it old.
            let expired =
                |at: Timestamp| cleaning.trash_after.is_some_and(|age| older(at.max(listed.modified), age));
            if !arriving && (fold.purging || fold.metadata.trashed_at.is_some_and(expired)) {
                cleaned.purged.push(session.clone());
            }
            live.push(session);
        }
        if cleaning.mode == Mode::Apply {
            for session in std::mem::take(&mut cleaned.purged) {
                match self.purge(&session).await {
                    Ok(_) => cleaned.purged.push(session),
                    Err(error) => cleaned.failed.push((session, error)),
                }
            }
            cleaned.leftovers = backend.sweep().await?;
        }
        let used = self.used_blobs(&live, &mut cleaned.failed, tell).await?;
        if cleaned.failed.is_empty() {
            self.clear_blobs(&used, cleaning, &mut cleaned).await?;
        }
        // What cannot be read may refer to anything, so all content stays then.
        Ok(cleaned)
    }

    /// Removes content that nothing has referred to for long, and puts on the list what nothing refers to now.
    async fn clear_blobs(
        &self,
        used: &HashSet<BlobId>,
        cleaning: &Cleaning,
        cleaned: &mut Cleaned,
    ) -> Result<()> {
        let backend = &*self.inner.backend;
        let now = Timestamp::now();
        let grace = if Defect::CollectAtOnce.is_on() { Duration::ZERO } else { cleaning.grace };
        let (unused, version) = Unused::load(backend).await?;
        let are_sealed = backend.listed_as(&BlobId::of(b"")).iter().any(BlobId::is_sealed);
        let (mut next, mut after) = (Unused::default(), None);
        loop {
            let page = backend.list(Space::Blobs, after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.name.clone());
            for listed in page {
                let Ok(blob) = listed.name.parse::<BlobId>() else { continue };
                // Whoever lists names that it does not say are its own has a wrapper that hides what they are.
                if blob.is_sealed() && !are_sealed {
                    continue;
                }
                if used.contains(&blob) || !is_older(listed.modified, cleaning.blobs_after, now) {
                    continue;
                }
                // Whoever put it since then was about to refer to it: its time begins anew.
                let since = unused.blobs.get(&blob).filter(|since| listed.modified <= **since);
                let since = since.copied().unwrap_or(now);
                if !grace.is_zero() && !is_older(since, grace, now) {
                    next.blobs.insert(blob, since);
                    cleaned.waiting.push(blob);
                    continue;
                }
                if cleaning.mode == Mode::Apply && !backend.remove(&Target::StaleBlob(blob, since)).await? {
                    continue;
                }
                cleaned.blobs.push(blob);
            }
        }
        if cleaning.mode == Mode::Apply && next != unused {
            next.store(backend, version).await?;
        }
        Ok(())
    }

    /// Returns what everything is listed as that may be referred to: any 64 hex digits in a record of a capture or in a
    /// document.
    ///
    /// Knowing less of their shape keeps more: what a newer version writes is safe from an older one.
    async fn used_blobs(
        &self,
        sessions: &[SessionId],
        failed: &mut Vec<(SessionId, Error)>,
        tell: &(dyn Fn(usize, usize) + Send + Sync),
    ) -> Result<HashSet<BlobId>> {
        let backend = &*self.inner.backend;
        let mut used = HashSet::new();
        for (number, session) in sessions.iter().enumerate() {
            tell(number + 1, sessions.len());
            let (referred, damage) = references::of(backend, session).await?;
            if let Some(damage) = damage {
                let (what, reason) = (format!("session {session}"), damage.to_string());
                failed.push((session.clone(), Error::Damaged { what, reason }));
            }
            if !Defect::CollectWhatIsUsed.is_on() {
                used.extend(referred);
            }
        }
        for listed in backend.list(Space::Documents, None, usize::MAX).await? {
            if listed.name == Unused::NAME {
                continue;
            }
            if let Some(document) = backend.get(&listed.name.parse::<Key>()?).await? {
                used.extend(references::hashes(&document.bytes));
            }
        }
        Ok(used.iter().flat_map(|blob| backend.listed_as(blob)).collect())
    }
}

fn is_older(than: Timestamp, age: Duration, now: Timestamp) -> bool {
    now.duration_since(than).unsigned_abs() > age && than < now
}

/// Content that nothing refers to, and since when that is known: the trash of blobs. It stays where it is, so whoever
/// needs it after all finds it.
#[derive(Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Unused {
    blobs: BTreeMap<BlobId, Timestamp>,
}

impl Unused {
    const NAME: &str = "unused";

    /// Reads the list. One that makes no sense is begun anew, which only gives everything more time.
    async fn load(backend: &dyn Backend) -> Result<(Self, Expect)> {
        Ok(match backend.get(&Key::store(Self::NAME)?).await? {
            None => (Self::default(), Expect::Absent),
            Some(document) => {
                let unused = serde_json::from_slice(&document.bytes).unwrap_or_default();
                (unused, Expect::Version(document.version))
            }
        })
    }

    /// Replaces the list, unless somebody else has meanwhile: then theirs counts.
    async fn store(&self, backend: &dyn Backend, expect: Expect) -> Result<()> {
        let bytes = serde_json::to_vec(self).map_err(|error| Error::BadEntry(error.to_string()))?;
        backend.put(&Key::store(Self::NAME)?, &bytes, expect).await.map(drop)
    }
}

/// How long an import may take between two signs of life.
const HOUR: Duration = Duration::from_secs(3600);
