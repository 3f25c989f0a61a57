//! Applying a plan, undoing it, and finishing what a crash interrupted.

use rethread_store::EntryId;

use crate::checkpointer::Checkpointer;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::look::look_past;
use crate::mark::Mark;
use crate::plan::Plan;
use crate::planner::Lines;
use crate::record::{Change, Checkpoint, Ended, Intent, Outcome, Source, What};
use crate::result::Rewound;
use crate::stand::{Stand, replaced, stand};
use crate::state::State;
use crate::work::{Move, Tell, Work};

impl Checkpointer {
    /// Does what a plan says, all of it or nothing. What is replaced is saved first.
    ///
    /// If anything changed since the plan was made, nothing is done and the error says so.
    pub async fn apply(&self, plan: &Plan) -> Result<Rewound> {
        self.apply_telling(plan, &|_, _| {}).await
    }

    /// The same, and says how far it has come.
    pub async fn apply_telling(&self, plan: &Plan, tell: Tell<'_>) -> Result<Rewound> {
        let hold = self.root()?.claim()?;
        self.settle_within(&hold).await?;
        let again = self.plan_with(&plan.to, &plan.choices, Lines::Known).await?;
        if again.digest != plan.digest && !Defect::SkipTheDigest.is_on() {
            return Err(Error::Changed { at: changed(plan, &again) });
        }
        if let Some(first) = again.conflicts.first() {
            return Err(Error::InTheWay { count: again.conflicts.len(), first: first.path.clone() });
        }
        if again.steps.is_empty() {
            return Ok(Rewound::of(plan, None));
        }
        let receipt = EntryId::generate();
        let moves = self.save(&again).await?;
        let mut intent = Checkpoint::new(receipt.clone(), What::Rewind);
        intent.rewind = Some(Intent { to: plan.to.id().clone(), place: self.root()?.place()? });
        intent.changes = moves.iter().map(change).collect();
        if !Defect::SkipTheIntent.is_on() {
            self.record(intent.clone()).await?;
        }
        let work = self.work(&receipt)?;
        let marked = self.mark(&receipt).set(self.hands(), self.root()?.folder());
        let brought = match marked.map_err(Error::io("mark", self.root_path())) {
            Ok(()) => work.bring(&moves, tell).await,
            Err(error) => Err(error),
        };
        if let Err(error) = brought {
            self.take_back(&work, &moves).await?;
            return Err(error);
        }
        if Defect::SkipTheIntent.is_on() {
            self.record(intent).await?;
        }
        self.end(&receipt, Outcome::Done, Vec::new()).await?;
        Ok(Rewound::of(plan, Some(receipt)))
    }

    /// Stores what is about to be replaced.
    async fn save(&self, plan: &Plan) -> Result<Vec<Move>> {
        let paths: Vec<_> = plan.steps.iter().map(|step| step.path.clone()).collect();
        let root = self.root()?;
        let saved = match Defect::SkipTheSave.is_on() {
            true => plan.steps.iter().map(|step| crate::look::look(root, &step.path, u64::MAX)).collect(),
            false => self.contents().keep(root, &paths, u64::MAX).await?,
        };
        let moves = plan.steps.iter().zip(saved).enumerate().map(|(number, (step, seen))| {
            let (path, to) = (step.path.clone(), step.target.clone());
            Move { path, from: seen.state, to, print: seen.print, number }
        });
        let mut moves: Vec<Move> = moves.collect();
        let replaced = replaced(&moves);
        for (step, planned) in moves.iter_mut().zip(&plan.steps) {
            if step.from.same(&planned.now) {
                continue;
            }
            (step.from, step.print) = (look_past(root, &step.path, &replaced, 0).state, None);
            if step.from != State::Absent || planned.now != State::Absent {
                return Err(Error::Changed { at: Some(step.path.clone()) });
            }
        }
        Ok(moves)
    }

    /// Makes every path what it was, as far as nobody else changed it meanwhile, and says so in the log.
    async fn take_back(&self, work: &Work<'_>, moves: &[Move]) -> Result<()> {
        let (mut back, mut left, replaced) = (Vec::new(), Vec::new(), replaced(moves));
        for step in moves {
            let caught = work.clear(step)?;
            let (found, seen) = stand(work.root, step, &replaced)?;
            match found {
                Stand::There | Stand::Midway if !caught => {
                    let (from, to) = (seen.state, step.from.clone());
                    back.push(Move { from, to, print: seen.print, ..step.clone() });
                }
                Stand::Back => {}
                _ => left.push(step.path.clone()),
            }
        }
        work.bring(&back, &|_, _| {}).await?;
        self.end(work.receipt, Outcome::TakenBack, left).await
    }

    /// Finishes a rewind that was interrupted, or takes it back if nothing had happened yet.
    pub(crate) async fn recover(&self, intent: &Checkpoint) -> Result<Recovered> {
        let work = self.work(&intent.id)?;
        let moves: Vec<Move> = intent.changes.iter().enumerate().filter_map(movement).collect();
        let (mut forward, mut left, mut there, replaced) = (Vec::new(), Vec::new(), 0, replaced(&moves));
        for step in &moves {
            let caught = work.clear(step)?;
            let (found, seen) = stand(work.root, step, &replaced)?;
            match found {
                _ if caught => left.push(step.path.clone()),
                Stand::There => there += 1,
                Stand::Back => forward.push(Move { print: seen.print, ..step.clone() }),
                Stand::Midway => {
                    there += 1;
                    forward.push(Move { from: seen.state, print: seen.print, ..step.clone() });
                }
                Stand::Elsewhere => left.push(step.path.clone()),
            }
        }
        let outcome = if there == 0 { Outcome::TakenBack } else { Outcome::Done };
        if outcome == Outcome::Done {
            work.bring(&forward, &|_, _| {}).await?;
        }
        self.end(&intent.id, outcome, left.clone()).await?;
        Ok(Recovered { receipt: intent.id.clone(), outcome, left })
    }

    async fn end(&self, receipt: &EntryId, outcome: Outcome, left: Vec<crate::TreePath>) -> Result<()> {
        let mut ended = Checkpoint::new(EntryId::generate(), What::Ended);
        ended.ended = Some(Ended { receipt: receipt.clone(), outcome, left });
        self.record(ended).await?;
        // Whoever still sees it sees that the rewind has ended.
        let _ = Mark::clear(self.hands(), self.root()?.folder());
        Ok(())
    }

    fn work<'a>(&'a self, receipt: &'a EntryId) -> Result<Work<'a>> {
        Ok(Work { root: self.root()?, hands: self.hands(), contents: self.contents(), receipt })
    }
}

/// A rewind that a crash had interrupted, and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recovered {
    /// Its receipt.
    pub receipt: EntryId,
    /// Whether it was finished or taken back.
    pub outcome: Outcome,
    /// Paths that somebody changed after the crash; they were left as they are.
    pub left: Vec<crate::TreePath>,
}

fn change(step: &Move) -> Change {
    let (path, before, after) = (step.path.clone(), Some(step.from.clone()), Some(step.to.clone()));
    Change { path, before, after, source: Source::Rewind }
}

/// Reads a change of a receipt back; what is not certain was never going to be touched.
fn movement((number, change): (usize, &Change)) -> Option<Move> {
    let (from, to) = (change.before.clone()?, change.after.clone()?);
    let certain = State::is_certain(&from) && State::is_certain(&to);
    certain.then(|| Move { path: change.path.clone(), from, to, print: None, number })
}

/// Returns the first path that two plans disagree about.
fn changed(plan: &Plan, again: &Plan) -> Option<crate::TreePath> {
    let same = |one: &crate::Step, other: &crate::Step| {
        (&one.path, &one.now, &one.target) == (&other.path, &other.now, &other.target)
    };
    let known = |step: &&crate::Step| !plan.steps.iter().any(|other| same(step, other));
    let gone = |step: &&crate::Step| !again.steps.iter().any(|other| same(step, other));
    again.steps.iter().find(known).or_else(|| plan.steps.iter().find(gone)).map(|step| step.path.clone())
}
