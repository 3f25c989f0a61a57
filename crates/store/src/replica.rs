//! A session in another store: the same records at the same positions, and the contents they refer to.
//!
//! Logs only grow, so a copy is brought up to date by adding what it lacks, and one that was interrupted goes on where it
//! ended. Whatever was added to the copy by others since is never touched: then the two went apart, which is an error.

mod compared;

use std::io::{Seek as _, SeekFrom, Write as _};
use std::ops::Range;

use tempfile::SpooledTempFile;

use self::compared::{Compared, Sum};
use crate::backend::{Append, Backend, Durability, From, LogKey, LogName, Position};
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::{BlobId, SessionId};
use crate::references;
use crate::stamp::{Kind, Line};
use crate::store::Store;

/// How much of a log is read and written at once.
const BATCH: usize = 1 << 20;
/// How much of a content is read at once.
const PIECE: u64 = 1 << 20;
/// How much of a content is held in memory.
const IN_MEMORY: usize = 8 << 20;

/// In which order logs are copied: the conversation first, for a log without one is no session, and might be cleared
/// away.
const LOGS: [LogName; 3] = [LogName::Messages, LogName::Checkpoints, LogName::Transcript];

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replicated {
    /// Sessions of which something was copied: the one that was asked for, and those that it inherits from.
    pub sessions: u64,
    /// Records of logs.
    pub records: u64,
    /// Contents of files.
    pub contents: u64,
}

impl Store {
    /// Brings another store's copy of a session up to date, and those of the sessions that it inherits from first. With a
    /// redactor there, secrets are left behind.
    ///
    /// `progress` hears of every batch. What this returns is durable there.
    pub async fn replicate(
        &self,
        id: &SessionId,
        to: &Store,
        progress: &mut (dyn FnMut(Replicated) + Send),
    ) -> Result<Replicated> {
        self.check_format().await?;
        to.claim_format().await?;
        self.check_erased(id).await?;
        let mut lineage = vec![id.clone()];
        let mut done = Replicated::default();
        while let Some(session) = lineage.last().cloned() {
            let fold = Fold::load(&*self.inner.backend, &session).await?;
            if fold.next == 0 || fold.purging {
                return Err(Error::SessionNotFound(session));
            }
            match fold.origin {
                Some(origin) if !lineage.contains(&origin.session) => lineage.push(origin.session),
                _ => break,
            }
        }
        // All are compared before any is added to: what is refused leaves both as they are.
        let mut copies = Vec::new();
        for session in lineage.iter().rev() {
            let compared = Compared::load(&*to.inner.backend, session).await;
            let copy = Copy { from: self, to, session };
            copies.push((copy.common_of_each(&compared).await?, compared, copy));
        }
        for (common, compared, copy) in copies {
            copy.bring_up_to_date(common, compared, &mut done, progress).await?;
        }
        Ok(done)
    }
}

/// One session on its way.
struct Copy<'a> {
    from: &'a Store,
    to: &'a Store,
    session: &'a SessionId,
}

impl Copy<'_> {
    /// Returns up to where each log is the same in both.
    async fn common_of_each(&self, compared: &Compared) -> Result<[Common; LOGS.len()]> {
        let mut all: [Common; LOGS.len()] = Default::default();
        for (name, common) in LOGS.into_iter().zip(&mut all) {
            *common = self.common(&LogKey::new(self.session.clone(), name), compared).await?;
        }
        Ok(all)
    }

    async fn bring_up_to_date(
        &self,
        common: [Common; LOGS.len()],
        mut compared: Compared,
        done: &mut Replicated,
        progress: &mut (dyn FnMut(Replicated) + Send),
    ) -> Result<()> {
        let before = *done;
        for (name, mut common) in LOGS.into_iter().zip(common) {
            self.log(&LogKey::new(self.session.clone(), name), &mut common, done, progress).await?;
            if let Some(sum) = &common.sum {
                compared.set(name, common.next, sum);
            }
        }
        if *done != before {
            done.sessions += 1;
            compared.store(&*self.to.inner.backend, self.session).await?;
        }
        self.to.inner.writer.forget(self.session);
        Ok(())
    }

    async fn log(
        &self,
        log: &LogKey,
        common: &mut Common,
        done: &mut Replicated,
        progress: &mut (dyn FnMut(Replicated) + Send),
    ) -> Result<()> {
        loop {
            let chunk = self.from.inner.backend.read(log, From::Position(common.next), BATCH).await?;
            if let Some(damage) = chunk.damage.iter().find(|damage| !damage.lost.is_empty()) {
                return Err(Error::Damaged { what: log.to_string(), reason: damage.to_string() });
            }
            let lines: Vec<Line> = chunk.lines.iter().map(|line| self.redacted(line)).collect();
            if lines.is_empty() {
                return Ok(());
            }
            if log.name == LogName::Checkpoints {
                self.contents(&lines, done).await?;
            }
            common.next = self.add(log, common.next, &lines).await?;
            if let Some(sum) = &mut common.sum {
                lines.iter().for_each(|line| sum.add(line));
            }
            done.records += lines.len() as u64;
            progress(*done);
        }
    }

    /// Returns up to where the two are the same.
    ///
    /// Before anything is added, every record that both have is compared: a line says nothing of the one before it, so two
    /// logs that went apart and then took in the same entry end alike. What was compared before is not read from the other
    /// store again: it says what those records add up to, and if ours add up to the same, and the first and the last of
    /// them are the same in both, only what came after them is compared. Logs only grow, so they still are what they were;
    /// a repair, which may mark one as lost, takes the sum away.
    ///
    /// Where nothing is to be added, the first and the last are enough to tell whether they are one session.
    async fn common(&self, log: &LogKey, compared: &Compared) -> Result<Common> {
        let theirs = self.to.inner.backend.read(log, From::Last, 1).await?.next;
        let ours = self.from.inner.backend.read(log, From::Last, 1).await?.next;
        let next = theirs.min(ours);
        if ours > theirs {
            let (from, mut sum) = self.known(log, next, compared).await?.unwrap_or_default();
            self.compare(log, from..next, BATCH, &mut sum).await?;
            return Ok(Common { next, sum: Some(sum) });
        }
        self.compare_ends(log, next).await?;
        Ok(Common { next, sum: None })
    }

    /// Returns up to where the two are known to be the same, and what the records before that add up to; `None` if that is
    /// not known, or not true of ours.
    async fn known(
        &self,
        log: &LogKey,
        end: Position,
        compared: &Compared,
    ) -> Result<Option<(Position, Sum)>> {
        let Some(mark) = compared.mark(log.name).filter(|mark| mark.next <= end) else { return Ok(None) };
        let (mut at, mut sum) = (0, Sum::default());
        while at < mark.next {
            let lines = self.from.inner.backend.read(log, From::Position(at), BATCH).await?.lines;
            let wanted = lines.iter().take_while(|line| line.stamp().position < mark.next);
            let before = at;
            for line in wanted {
                if line.stamp().position != at {
                    return Ok(None);
                }
                sum.add(&self.redacted(line));
                at += 1;
            }
            if at == before {
                return Ok(None);
            }
        }
        if !mark.fits(&sum) {
            return Ok(None);
        }
        match self.compare_ends(log, mark.next).await {
            // Whoever compares everything finds where.
            Err(Error::Diverged { .. }) => Ok(None),
            compared => compared.map(|()| Some((mark.next, sum))),
        }
    }

    /// Makes sure that both have the same first record, and the same last one before a position.
    async fn compare_ends(&self, log: &LogKey, next: Position) -> Result<()> {
        for position in [0, next.saturating_sub(1)].into_iter().filter(|_| next > 0) {
            self.compare(log, position..position + 1, 1, &mut Sum::default()).await?;
        }
        Ok(())
    }

    /// Makes sure that both have the same records in a range, and adds them up.
    async fn compare(
        &self,
        log: &LogKey,
        range: Range<Position>,
        at_once: usize,
        sum: &mut Sum,
    ) -> Result<()> {
        let mut at = range.start;
        while at < range.end {
            let ours = self.from.inner.backend.read(log, From::Position(at), at_once).await?.lines;
            let theirs = self.to.inner.backend.read(log, From::Position(at), at_once).await?.lines;
            let both = ours.iter().zip(&theirs).take_while(|(ours, _)| ours.stamp().position < range.end);
            let mut compared = 0;
            for (ours, theirs) in both {
                if ours.stamp().position != at || self.redacted(ours) != *theirs {
                    return Err(self.diverged(at));
                }
                sum.add(theirs);
                (at, compared) = (at + 1, compared + 1);
            }
            if compared == 0 {
                return Err(self.diverged(at));
            }
        }
        Ok(())
    }

    fn diverged(&self, position: Position) -> Error {
        Error::Diverged { session: self.session.clone(), position }
    }

    async fn add(&self, log: &LogKey, at: Position, lines: &[Line]) -> Result<Position> {
        match self.to.inner.backend.append(log, at, lines, Durability::Synced).await? {
            Append::Done { .. } => Ok(at + lines.len() as Position),
            Append::Moved { next } => Err(self.diverged(next.min(at))),
            Append::Part { .. } => {
                let path = self.to.inner.backend.path(log).unwrap_or_else(|| log.to_string().into());
                Err(Error::NoSpace { action: "append to", path })
            }
        }
    }

    /// Copies what records of checkpoints refer to and the other store has not.
    async fn contents(&self, lines: &[Line], done: &mut Replicated) -> Result<()> {
        let (from, to) = (&*self.from.inner.backend, &*self.to.inner.backend);
        for blob in lines.iter().flat_map(|line| references::hashes(&line.body()).collect::<Vec<_>>()) {
            if !to.refresh_blob(&blob).await? && content(from, to, &blob).await? {
                done.contents += 1;
            }
        }
        Ok(())
    }

    fn redacted(&self, line: &Line) -> Line {
        if self.to.keeps_secrets() {
            return line.clone();
        }
        let entry = line.entry();
        let clean = match line.stamp().kind {
            Kind::Note => self.to.redacted_note(entry.clone()),
            _ => self.to.redacted(entry.clone()),
        };
        if clean == entry { line.clone() } else { Line::new(&clean, line.stamp().clone()) }
    }
}

/// Up to where two logs are the same.
#[derive(Debug, Default)]
struct Common {
    next: Position,
    /// What the records before that add up to; `None` if not all of them were looked at.
    sum: Option<Sum>,
}

/// Copies one content. `false`: there is none; any 64 digits of a record look like a reference.
async fn content(from: &dyn Backend, to: &dyn Backend, blob: &BlobId) -> Result<bool> {
    let failed = || Error::io("write", "a temporary file");
    let mut spool = SpooledTempFile::new(IN_MEMORY);
    let mut at = 0;
    loop {
        let Some(piece) = from.get_blob(blob, at..at + PIECE).await? else { return Ok(false) };
        spool.write_all(&piece).map_err(failed())?;
        at += piece.len() as u64;
        if (piece.len() as u64) < PIECE {
            break;
        }
    }
    spool.seek(SeekFrom::Start(0)).map_err(failed())?;
    to.put_blob(blob, &mut spool).await?;
    Ok(true)
}
