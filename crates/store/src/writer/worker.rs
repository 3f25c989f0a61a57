//! What a writer thread does with one batch of one log.

use crate::backend::{Append, Backend, Damage, Durability, From, LogKey, LogName, holds};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::ticket::Ack;

use super::compose::{Composed, compose, compose_more};
use super::head::{Head, birth};
use super::operation::Operation;
use super::queue::Batch;

/// How often a batch is composed anew because others were faster, before it goes back to the queue.
const ATTEMPTS: usize = 100;

/// What earlier batches of a log have left unsynced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unsynced {
    Nothing,
    Something,
    Overdue,
}

/// What became of a batch.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What is now known of the log; `None`: look again.
    pub(crate) head: Option<Head>,
    /// What must be tried again, and why.
    pub(crate) retry: Option<(Batch, Error)>,
    /// Operations that nothing was tried of: they go back to the front of the queue.
    pub(crate) postponed: Vec<Operation>,
    pub(crate) found: Vec<Damage>,
    /// Something was written that is not synced.
    pub(crate) unsynced: bool,
    /// What was written has waited for its sync long enough.
    pub(crate) overdue: bool,
    /// Something was written at all.
    pub(crate) wrote: bool,
    /// What to tell whom, once the books are kept: whoever is told may look at them.
    pub(crate) answers: Vec<(Operation, Result<Ack>)>,
}

/// Waits a moment for those who come while a batch is made, and are to be in it; none if nobody else comes.
pub(crate) type Latecomers<'a> = dyn FnMut() -> Vec<Operation> + 'a;

/// Writes one batch.
pub(crate) async fn write(
    backend: &dyn Backend,
    log: &LogKey,
    head: Option<Head>,
    batch: Batch,
    durability: Durability,
    unsynced: Unsynced,
    latecomers: &mut Latecomers<'_>,
) -> Outcome {
    let Batch { mut operations, mut composed } = batch;
    let mut outcome = Outcome {
        unsynced: unsynced != Unsynced::Nothing,
        overdue: unsynced == Unsynced::Overdue,
        ..Outcome::default()
    };
    let is_birth = composed.is_none() && operations.first().is_some_and(Operation::is_birth);
    let mut fresh = head.is_none() && !is_birth;
    let mut head = match head {
        Some(head) => head,
        // Should somebody have been faster, the log is elsewhere by now.
        None if is_birth => Head::unborn(backend, log),
        None => match load_settled(backend, log, unsynced).await {
            Ok(head) => head,
            Err(error) => return outcome.failed(operations, composed, error),
        },
    };
    if head.gone {
        match is_still(backend, log, &mut head).await {
            Ok(_) => head.gone = false,
            Err(error) => {
                outcome.head = Some(head);
                return outcome.failed(operations, composed, error);
            }
        }
    }
    for _ in 0..ATTEMPTS {
        if composed.is_none()
            && operations.iter().any(Operation::needs_fold)
            && let Err(error) = head.ensure_fold(backend, log).await
        {
            return outcome.failed(operations, None, error);
        }
        if composed.is_none()
            && operations.iter().any(Operation::needs_seen)
            && let Err(error) = head.ensure_seen(backend, log).await
        {
            return outcome.failed(operations, None, error);
        }
        if head.entry_at.is_some() && operations.iter().any(Operation::has_note) {
            // The log's own time is when its last entry was written, and the note is about to change it.
            if let Ok(Some(listed)) = backend.stat(&log.session).await {
                head.entry_at = Some(listed.modified);
            }
        }
        let expected = head.clone();
        let retried = composed.is_some();
        let mut lines = match composed.take() {
            Some(composed) => {
                composed.lines.iter().for_each(|line| head.apply(line));
                composed
            }
            None => {
                let mut lines = compose(log, &mut head, &mut operations);
                outcome.take_in(log, &mut head, &mut operations, &mut lines, latecomers);
                lines
            }
        };
        if !fresh && !retried && lines.outcomes.iter().any(Result::is_err) {
            // Nobody is refused on hearsay: the session may have been restored, or purged and begun again.
            fresh = true;
            match load(backend, log).await {
                Ok(loaded) => head = Head { settled: expected.settled.min(loaded.next), ..loaded },
                Err(error) => return outcome.failed(operations, None, error),
            }
            continue;
        }
        if lines.lines.is_empty() {
            // That something is there, or is as somebody wants it, is said of what is there now: others may have changed it
            // since, or removed it with the session.
            if lines.left_out && !fresh && !head.unkept && !Defect::TrustWhatWasSeen.is_on() {
                match is_still(backend, log, &mut head).await {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(error) => {
                        head.gone = matches!(error, Error::Gone(_));
                        outcome.head = Some(head);
                        return outcome.failed(operations, None, error);
                    }
                }
            }
            // What is there may be another process's, and not be durable yet.
            if lines.left_out
                && durability == Durability::Synced
                && let Err(error) = backend.settle(log).await
            {
                outcome.head = Some(head);
                return outcome.failed(operations, None, error);
            }
            outcome.head = Some(head);
            outcome.finish(backend, log, operations, lines, durability).await;
            return outcome;
        }
        let appended = match &expected.birth {
            Some(first) if lines.at > 0 && !Defect::ForgetTheBirth.is_on() => {
                backend.append_to(log, first, lines.at, &lines.lines, durability).await
            }
            _ => backend.append(log, lines.at, &lines.lines, durability).await,
        };
        match appended {
            Ok(Append::Done { durability, mut found }) => {
                outcome.found.append(&mut found);
                outcome.unsynced |= durability == Durability::Written;
                outcome.wrote = true;
                outcome.head = Some(head.written(durability));
                lines.commit();
                outcome.finish(backend, log, operations, lines, durability).await;
                return outcome;
            }
            Ok(Append::Part { count, durability, mut found }) => {
                outcome.found.append(&mut found);
                outcome.unsynced |= durability == Durability::Written;
                outcome.wrote = true;
                // The rest waits for room at the front of the queue.
                head = expected;
                lines.lines[..count].iter().for_each(|line| head.apply(line));
                outcome.head = Some(head.written(durability));
                let finished = lines.cut(count);
                outcome.postponed.splice(0..0, operations.split_off(finished));
                lines.commit();
                outcome.finish(backend, log, operations, lines, durability).await;
                return outcome;
            }
            Ok(Append::Moved { next }) => {
                head = expected;
                match moved(backend, log, &mut head, next, retried.then_some(&lines)).await {
                    Ok(Moved::Ours) => {
                        outcome.wrote = true;
                        outcome.head = Some(head);
                        lines.commit();
                        outcome.finish(backend, log, operations, lines, durability).await;
                        return outcome;
                    }
                    Ok(Moved::Others) => {}
                    // If these very lines failed before, they may be in: they must be tried again just so.
                    Err(error) => {
                        head.gone = matches!(error, Error::Gone(_));
                        outcome.head = Some(head);
                        return outcome.failed(operations, retried.then_some(lines), error);
                    }
                }
            }
            Err(error) => {
                let unwritten = !retried && ends_at(backend, log, lines.at).await;
                if unwritten && operations.len() > 1 && matches!(error, Error::NoSpace { .. }) {
                    // A smaller batch may still fit.
                    head = expected;
                    outcome.postponed.splice(0..0, operations.split_off(operations.len() / 2));
                    continue;
                }
                // What may have been written all the same is tried again with these very lines.
                outcome.head = Some(expected);
                return outcome.failed(operations, (!unwritten).then_some(lines), error);
            }
        }
    }
    outcome.failed(operations, None, Error::Contended(log.to_string()))
}

impl Outcome {
    /// Composes for latecomers as they come, so that it is done when the last of them is there.
    fn take_in(
        &mut self,
        log: &LogKey,
        head: &mut Head,
        operations: &mut Vec<Operation>,
        lines: &mut Composed,
        latecomers: &mut Latecomers<'_>,
    ) {
        // Nobody overtakes those who were put back.
        while self.postponed.is_empty() {
            let mut late = latecomers();
            if late.is_empty() {
                return;
            }
            let easy = late.iter().take_while(|operation| operation.is_easy_for(head)).count();
            let rest = late.split_off(easy);
            compose_more(log, head, &mut late, lines);
            operations.append(&mut late);
            self.postponed.extend(rest);
        }
    }

    /// Notes how it went for everybody. Who asked for a barrier waits for the sync as well.
    async fn finish(
        &mut self,
        backend: &dyn Backend,
        log: &LogKey,
        operations: Vec<Operation>,
        composed: Composed,
        durability: Durability,
    ) {
        let mut barrier = Ok(());
        if self.unsynced
            && (self.overdue || operations.iter().any(Operation::is_barrier))
            && !Defect::FlushWithoutSync.is_on()
        {
            barrier = backend.settle(log).await;
            self.unsynced = barrier.is_err();
            if let (Ok(()), Some(head)) = (&barrier, &mut self.head) {
                head.settled = head.next;
            }
        }
        for (operation, outcome) in operations.into_iter().zip(composed.outcomes) {
            let answer = match &barrier {
                Err(error) if operation.is_barrier() => Err(error.clone()),
                _ => outcome.map(|records| Ack { records, durability }),
            };
            self.answers.push((operation, answer));
        }
    }

    fn failed(mut self, operations: Vec<Operation>, composed: Option<Composed>, error: Error) -> Self {
        if error.is_passing() {
            self.retry = Some((Batch { operations, composed }, error));
        } else {
            self.answers.extend(operations.into_iter().map(|operation| (operation, Err(error.clone()))));
        }
        self
    }
}

/// Loads what is known of a log anew. What is unsynced is synced first: nobody remembers where it began.
async fn load_settled(backend: &dyn Backend, log: &LogKey, unsynced: Unsynced) -> Result<Head> {
    if unsynced != Unsynced::Nothing {
        backend.settle(log).await?;
    }
    load(backend, log).await
}

async fn load(backend: &dyn Backend, log: &LogKey) -> Result<Head> {
    let head = Head::load(backend, log).await?;
    if head.next == 0 && log.name != LogName::Messages && backend.capabilities().keeps {
        let session = LogKey::new(log.session.clone(), LogName::Messages);
        if Head::load(backend, &session).await?.next == 0 {
            return Err(Error::SessionNotFound(log.session.clone()));
        }
    }
    Ok(head)
}

enum Moved {
    /// The lines are there already: an earlier try had got through after all.
    Ours,
    /// Somebody else was faster.
    Others,
}

/// Takes in what others appended. A batch that failed before may be what they appended: then it is done after all.
async fn moved(
    backend: &dyn Backend,
    log: &LogKey,
    head: &mut Head,
    next: u64,
    failed: Option<&Composed>,
) -> Result<Moved> {
    // A session that is only being begun cannot be gone: somebody took its folder away before it had a record in it.
    if next == 0 && (head.next > 0 || log.name != LogName::Messages) {
        return Err(Error::Gone(log.session.clone()));
    }
    // Where there was nothing before, whatever is there now was begun since, perhaps by this very batch.
    if head.next > 0 && birth(backend, log).await? != head.birth {
        return Err(Error::Gone(log.session.clone()));
    }
    let ours = match failed {
        // Where the backend knows its own, it would have said so.
        Some(composed) if !backend.capabilities().knows_its_own => {
            holds(backend, log, composed.at, &composed.lines).await?
        }
        _ => false,
    };
    if ours {
        backend.settle(log).await?;
    }
    let known = head.next;
    if next > known {
        head.catch_up(backend, log).await?;
        if head.next == known {
            *head = Head::load_whole(backend, log).await?;
        }
    } else {
        // The log was cut or replaced by hand: what was known of it is worth nothing.
        *head = Head::load(backend, log).await?;
    }
    match ours {
        true => Ok(Moved::Ours),
        // Nobody can have been faster if nothing is there: try again a little later.
        false if head.next == known && next > known => Err(Error::Contended(log.to_string())),
        false => Ok(Moved::Others),
    }
}

/// Returns whether a log is as it is known to be; if not, takes in how it is.
async fn is_still(backend: &dyn Backend, log: &LogKey, head: &mut Head) -> Result<bool> {
    let next = backend.read(log, From::Last, 1).await?.next;
    if next != head.next {
        moved(backend, log, head, next, None).await?;
        return Ok(false);
    }
    match birth(backend, log).await? == head.birth {
        true => Ok(true),
        false => Err(Error::Gone(log.session.clone())),
    }
}

/// Returns whether a log certainly ends where a batch would have begun.
async fn ends_at(backend: &dyn Backend, log: &LogKey, position: u64) -> bool {
    backend.read(log, From::Last, 1).await.is_ok_and(|end| end.next == position)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::Map;

    use super::*;
    use crate::entry::Entry;
    use crate::memory::MemoryBackend;
    use crate::note::Note;
    use crate::writer::operation::{Draft, Patience};

    fn operation(drafts: Vec<Draft>) -> Operation {
        Operation { size: 0, drafts, lane: None, nonce: None, patience: Patience::Endless, reply: None }
    }

    fn entry(id: &str) -> Operation {
        operation(vec![Draft::entry(&Entry::parse(format!(r#"{{"uuid":"{id}"}}"#)).unwrap())])
    }

    #[test]
    fn latecomers_are_in_the_batch_in_their_order_up_to_one_for_whom_the_log_must_be_read() {
        let (backend, log) = (MemoryBackend::default(), LogKey::new("s".parse().unwrap(), LogName::Messages));
        let created = Note::Created { at: Timestamp::now(), set: Map::new(), origin: None, arrival: None };
        let begin = operation(vec![Draft::Note(created)]);
        let change = operation(vec![Draft::Change(Box::new(|metadata| metadata.name = Some("x".into())))]);
        let mut late = vec![vec![entry("b")], vec![entry("c"), change, entry("d")], vec![entry("never")]];
        late.reverse();
        let batch = Batch { operations: vec![begin, entry("a")], composed: None };
        let mut latecomers = || late.pop().unwrap_or_default();
        let work = write(&backend, &log, None, batch, Durability::Synced, Unsynced::Nothing, &mut latecomers);
        let outcome = pollster::block_on(work);
        assert_eq!(outcome.answers.len(), 4);
        assert!(outcome.answers.iter().all(|(_, answer)| answer.is_ok()));
        assert_eq!(outcome.postponed.len(), 2);
        assert!(outcome.postponed[0].has_note() && !outcome.postponed[1].has_note());
        assert_eq!(late.len(), 1, "nobody overtakes");
        let chunk = pollster::block_on(backend.read(&log, From::Position(1), 9999)).unwrap();
        let ids: Vec<_> = chunk.lines.iter().map(|line| line.stamp().id.as_str().to_owned()).collect();
        assert_eq!(ids, ["a", "b", "c"]);
    }
}
