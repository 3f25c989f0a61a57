//! Making a plan: what the records say, against what is on disk.

use std::collections::{BTreeMap, BTreeSet};

use crate::contents::Contents;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::fold::{Fold, Folded};
use crate::ignored::IGNORED;
use crate::lines;
use crate::look::{look, look_past};
use crate::path::TreePath;
use crate::plan::{Choices, Conflict, Plan, Reason, Skipped, Step};
use crate::root::Root;
use crate::state::{Present, State};

/// What is being planned, and with what.
pub(crate) struct Planner<'a> {
    pub(crate) root: &'a Root,
    pub(crate) contents: &'a Contents,
    pub(crate) plan: Plan,
    /// Files larger than this are not read.
    pub(crate) limit: u64,
    /// What is no folder now: whatever was in it is gone, though a link may lead elsewhere.
    pub(crate) replaced: BTreeSet<TreePath>,
}

/// Whether a plan counts lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    Counted,
    /// They are known from an earlier plan with the same digest.
    Known,
}

impl Planner<'_> {
    /// Compares what the records add up to with what is on disk.
    pub(crate) async fn make(mut self, fold: Fold, lines: Lines) -> Result<Plan> {
        let choices = self.plan.choices.clone();
        check_names(&choices, &fold)?;
        self.plan.incomplete = fold.incomplete;
        let wanted = fold.left_out.into_iter().filter(|(path, _)| choices.is_wanted(path));
        self.plan.skipped.extend(wanted.map(|(path, reason)| {
            // What a person's own rules leave out is not missed.
            let wanted = reason == IGNORED;
            Skipped { path, reason, wanted }
        }));
        let mut steps = BTreeMap::new();
        for (path, folded) in fold.paths.into_iter().filter(|(path, _)| choices.is_wanted(path)) {
            if choices.is_left(&path) {
                self.plan.skipped.push(Skipped { path, reason: "left out by name".into(), wanted: true });
            } else if let Some(step) = self.step(&path, folded).await? {
                steps.insert(path, step);
            }
        }
        self.add_folders(&mut steps);
        self.keep_full_folders(&mut steps);
        self.plan.steps = steps.into_values().collect();
        if lines == Lines::Counted {
            self.count_lines().await?;
        }
        self.plan.seal();
        Ok(self.plan)
    }

    /// Returns what would happen to a path; nothing if it is as it should be, or in the way.
    async fn step(&mut self, path: &TreePath, folded: Folded) -> Result<Option<Step>> {
        if let State::Skipped { reason } = &folded.target {
            let reason = format!("it was not kept: {reason}");
            self.plan.skipped.push(Skipped { path: path.clone(), reason, wanted: false });
            return Ok(None);
        }
        let seen = look_past(self.root, path, &self.replaced, self.limit);
        if !seen.state.is_folder() {
            self.replaced.insert(path.clone());
        }
        if seen.state.same(&folded.target) {
            return Ok(None);
        }
        let reason = self.in_the_way(&folded, &seen.state).await?;
        let forced = self.plan.choices.is_forced(path);
        if let Some((reason, because)) = reason
            && !(forced && reason.can_be_forced())
        {
            let (path, base, ours) = (path.clone(), folded.target, folded.expected);
            self.plan.conflicts.push(Conflict { path, reason, because, base, ours, theirs: seen.state });
            return Ok(None);
        }
        let assumed = folded.is_assumed(&seen.state) && !seen.state.is_folder();
        let mut step = Step::new(path.clone(), seen.state, folded.target);
        (step.assumed, step.expected, step.print, step.forced) =
            (assumed, folded.expected, seen.print, forced);
        Ok(Some(step))
    }

    /// Returns why a path cannot simply be rewound.
    async fn in_the_way(&self, folded: &Folded, now: &State) -> Result<Option<(Reason, String)>> {
        if let State::Unknown { why } = &folded.target {
            return Ok(Some((Reason::Unknown, format!("nobody knows what it was: {why}"))));
        }
        match now {
            State::Unknown { why } => {
                return Ok(Some((Reason::Unknown, format!("it cannot be read now: {why}"))));
            }
            State::Skipped { reason } => {
                return Ok(Some((Reason::Blocked, format!("what is there now cannot be saved: {reason}"))));
            }
            _ => {}
        }
        if let Some(file) = folded.target.file()
            && !self.contents.has(file).await?
        {
            return Ok(Some((Reason::Missing, "its former content is not in the store".into())));
        }
        if folded.broken.is_some() && !Defect::IgnoreBreaks.is_on() {
            return Ok(Some((
                Reason::EditedBetween,
                "somebody edited it between two changes of the agent's".into(),
            )));
        }
        if folded.outside {
            return Ok(Some((Reason::Outside, "it changed when no tool ran".into())));
        }
        let edited = folded.expected.as_ref().is_some_and(|expected| !expected.same(now));
        if edited && !Defect::IgnoreEdits.is_on() {
            return Ok(Some((Reason::Edited, "it is not as the agent left it".into())));
        }
        Ok(None)
    }

    /// Adds the folders that restored paths need and that are not there.
    fn add_folders(&mut self, steps: &mut BTreeMap<TreePath, Step>) {
        if Defect::RemoveForeignFolders.is_on() {
            let removed = steps.values().filter(|step| step.target == State::Absent);
            for folder in removed.filter_map(|step| step.path.parent()).collect::<Vec<_>>() {
                let now = look(self.root, &folder, 0).state;
                steps.entry(folder.clone()).or_insert_with(|| Step::new(folder, now, State::Absent));
            }
        }
        let needed: BTreeSet<TreePath> = steps
            .values()
            .filter(|step| matches!(step.target, State::Present(_)))
            .flat_map(|step| step.path.ancestors().collect::<Vec<_>>())
            .collect();
        for folder in needed {
            if steps.get(&folder).is_some_and(|step| step.target.is_folder()) {
                continue;
            }
            let seen = look(self.root, &folder, 0);
            let replaced = steps.contains_key(&folder);
            match seen.state {
                State::Present(Present::Folder { .. }) if !replaced => {}
                State::Absent => {
                    let target = State::Present(Present::Folder { mode: None });
                    steps.insert(folder.clone(), Step::new(folder, State::Absent, target));
                }
                theirs => {
                    let because =
                        "something that is no folder is in its place, and not part of this rewind".into();
                    let base = State::Present(Present::Folder { mode: None });
                    self.plan.conflicts.push(Conflict {
                        path: folder,
                        reason: Reason::Blocked,
                        because,
                        base,
                        ours: None,
                        theirs,
                    });
                }
            }
        }
    }

    /// Takes out folders that hold something which stays: only what we know to be empty then is removed.
    fn keep_full_folders(&mut self, steps: &mut BTreeMap<TreePath, Step>) {
        let folders: Vec<TreePath> = steps
            .values()
            .filter(|step| step.now.is_folder() && !step.target.is_folder())
            .map(|step| step.path.clone())
            .collect();
        // The deepest first: whether a folder stays decides about the one that it is in.
        for folder in folders.into_iter().rev() {
            let goes = |name: &TreePath| steps.get(name).is_some_and(|step| step.target == State::Absent);
            let stays = match self.names_in(&folder) {
                Ok(names) => {
                    let stays = |name: &Option<TreePath>| !name.as_ref().is_some_and(goes);
                    names.iter().any(stays).then(|| "it holds something else".to_owned())
                }
                Err(error) => Some(error.to_string()),
            };
            let (Some(reason), Some(step)) = (stays, steps.get(&folder).cloned()) else { continue };
            steps.remove(&folder);
            match step.target {
                // It was not there, and it would not be if it were empty: that is no conflict.
                State::Absent => self.plan.skipped.push(Skipped {
                    path: folder,
                    reason: format!("the folder stays: {reason}"),
                    wanted: true,
                }),
                base => {
                    let (theirs, ours, because) =
                        (step.now, step.expected, format!("a folder is in its place, and {reason}"));
                    self.plan.conflicts.push(Conflict {
                        path: folder,
                        reason: Reason::Blocked,
                        because,
                        base,
                        ours,
                        theirs,
                    });
                }
            }
        }
    }

    /// Returns what is in a folder; `None` for a name that no path of ours can have.
    fn names_in(&self, folder: &TreePath) -> std::io::Result<Vec<Option<TreePath>>> {
        let opened = self.root.open_folder(folder)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&opened)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(TreePath::parse(&[folder.as_bytes(), b"/", name].concat()).ok());
            }
        }
        Ok(names)
    }

    async fn count_lines(&mut self) -> Result<()> {
        for step in &mut self.plan.steps {
            let counted = lines::count(self.root, self.contents, step).await?;
            (step.insertions, step.deletions) = counted.unzip();
        }
        let sum = |lines: fn(&Step) -> Option<u64>, plan: &Plan| plan.steps.iter().filter_map(lines).sum();
        self.plan.insertions = sum(|step| step.insertions, &self.plan);
        self.plan.deletions = sum(|step| step.deletions, &self.plan);
        Ok(())
    }
}

/// A name that means nothing is a mistake of whoever typed it, and a rewind is the wrong place to guess.
fn check_names(choices: &Choices, fold: &Fold) -> Result<()> {
    let known =
        |name: &TreePath| fold.paths.keys().chain(fold.left_out.keys()).any(|path| path.is_within(name));
    let mut named = choices.only.iter().chain(&choices.force).chain(&choices.leave);
    named.find(|name| !known(name)).map_or(Ok(()), |name| Err(Error::NotInPlan(name.clone())))
}
