//! Mending a damaged session: plan, back up, fix, prove.

use crate::backend::{Known, LogKey, LogName, Rewrite};
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::SessionId;
use crate::metadata::Metadata;
use crate::note::Note;
use crate::stamp::{Kind, Line, Stamp};
use crate::store::Store;
use crate::verify::{Problem, Report};

/// Whether to do it or only to say what would be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Say what would be done.
    Plan,
    /// Do it.
    Apply,
}

/// What a repair would do, or did.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What was wrong.
    pub before: Report,
    /// The logs that are written anew.
    pub logs: Vec<LogName>,
    /// Whether the cached metadata is made again.
    pub metadata: bool,
    /// What became of each log; empty for a plan.
    pub rewrites: Vec<(LogName, Rewrite)>,
    /// What is still wrong; `None` for a plan.
    pub after: Option<Report>,
}

impl Store {
    /// Mends a session, or says what that would do. The files as they were are kept in the quarantine.
    ///
    /// Every record that could be read before can be read afterwards, byte for byte, at its position: that is checked
    /// before this returns. Records found inside glued lines come back; a lost one leaves a note in its place.
    pub async fn repair(&self, id: &SessionId, mode: Mode) -> Result<Repair> {
        self.check_format().await?;
        let (before, contents) = self.verify_with_contents(id).await?;
        let damaged = |log: &LogName| before.problems.iter().any(|problem| is_damage_of(problem, *log));
        let logs: Vec<LogName> = LogName::ALL.into_iter().filter(damaged).collect();
        let metadata = !logs.is_empty() || before.problems.contains(&Problem::Metadata);
        let mut repair = Repair { before, logs, metadata, rewrites: Vec::new(), after: None };
        if mode == Mode::Plan {
            return Ok(repair);
        }
        let known = self.known(id).await?;
        for &name in &repair.logs {
            let known = if name == LogName::Messages { known.clone() } else { Known::default() };
            let done = self.inner.backend.rewrite(&LogKey::new(id.clone(), name), &known).await?;
            repair.rewrites.push((name, done));
        }
        self.inner.writer.forget(id);
        if repair.metadata {
            self.rebuild_metadata(id).await?;
        }
        let (after, kept) = self.verify_with_contents(id).await?;
        if let Some(((log, position), _)) =
            contents.iter().find(|(place, hash)| kept.get(place) != Some(hash))
        {
            let backup = repair.rewrites.iter().find_map(|(_, rewrite)| rewrite.backup.clone());
            let place = backup
                .map_or(String::new(), |path| format!("; the files as they were are in {}", path.display()));
            let reason = format!("the repair changed record {position} of its {}{place}", log.as_str());
            return Err(Error::Damaged { what: format!("session {id}"), reason });
        }
        repair.after = Some(after);
        Ok(repair)
    }
}

impl Store {
    /// Returns what the cached metadata still knows: how the session began, and how long its log was.
    async fn known(&self, id: &SessionId) -> Result<Known> {
        let Some(cached) = Fold::cached(&*self.inner.backend, id).await? else {
            return Ok(Known::default());
        };
        let at = cached.metadata.created_at;
        let mut set = Metadata::new(id.clone(), at).changes_to(&cached.metadata);
        // The entries say that themselves.
        set.remove("updated_at");
        let depth = cached.origin.as_ref().map_or(0, |origin| origin.depth);
        let entry = Note::Created { at, set, origin: cached.origin, arrival: None }.to_entry()?;
        let id = entry.id().clone();
        let stamp = Stamp { position: 0, parent: None, depth, kind: Kind::Note, id, left: 0, unsettled: 0 };
        Ok(Known { first: Some(Line::new(&entry, stamp)), next: cached.next })
    }
}

fn is_damage_of(problem: &Problem, log: LogName) -> bool {
    matches!(problem, Problem::Damage(damaged, _) if *damaged == log)
}
