//! `rewind`: takes files back, and takes that back.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use rethread_checkpoint::{Action, Checkpointer, Choices, Error, Plan, Point, Rewound};
use rethread_store::backend::{LogKey, LogName};
use rethread_store::{EntryId, Filter, Session};
use serde_json::Value;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::{self, failure};
use crate::fork_point::ForkPoint;
use crate::keeper_place::KeeperPlace;
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Rewind {
    session: Option<NamedSession>,
    to: Point,
    fork: bool,
    dry_run: bool,
    only: Vec<PathBuf>,
    force: Vec<PathBuf>,
    leave: Vec<PathBuf>,
    root: args::Root,
    answer: Answer,
}

impl From<args::Rewind> for Rewind {
    fn from(typed: args::Rewind) -> Self {
        let to = match (typed.to, typed.turn, typed.undo) {
            (Some(id), _, _) => Point::At(id),
            (None, Some(message), _) => Point::Turn(message),
            (None, None, Some(receipt)) => Point::Undo(receipt),
            (None, None, None) => unreachable!("one of them is required"),
        };
        let (only, force, leave) = (typed.only, typed.force, typed.leave);
        let answer = Answer::of(typed.json);
        Self {
            session: typed.session,
            to,
            fork: typed.fork,
            dry_run: typed.dry_run,
            only,
            force,
            leave,
            root: typed.root,
            answer,
        }
    }
}

impl Rewind {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = match &self.session {
            Some(named) => pollster::block_on(named.open(context))?,
            None => pollster::block_on(of_receipt(self.to.id(), context))?,
        };
        if !self.dry_run {
            refuse_while_a_turn_runs(&session, context)?;
        }
        let checkpoints = files::open(&session, &self.root, context, ui)?;
        let choices = Choices {
            only: files::beneath(&checkpoints, &self.only)?,
            force: files::beneath(&checkpoints, &self.force)?,
            leave: files::beneath(&checkpoints, &self.leave)?,
        };
        let before = self.before(&checkpoints, &session, context)?;
        let done = self.rewind(&checkpoints, &choices, ui);
        let is_done = matches!(&done, Ok((_, rewound)) if rewound.receipt.is_some());
        let (offer, forked) = match before.filter(|_| is_done) {
            Some(before) if self.fork => (None, Some(before.fork(&session, context))),
            before => (before, None),
        };
        // The files are as they were by now, and whoever asked must hear how that is taken back.
        match (done, self.answer) {
            (Ok((plan, rewound)), Answer::Text) => {
                let told = self.tell(&plan, &rewound, &session, context, ui)?;
                if let Some(fork) = forked {
                    ui.data(fork?.as_bytes())?;
                }
                if let Some(before) = offer {
                    let command = before.command(&session, context);
                    ui.hint(&format!(
                        "{command} takes the conversation back as far, into a session of its own"
                    ));
                }
                Ok(told)
            }
            (Ok((_, rewound)), Answer::Json) => {
                let fork = forked.as_ref().and_then(|forked| forked.as_ref().ok());
                let told = json(&rewound, fork.map(String::as_str), ui)?;
                forked.transpose()?;
                Ok(told)
            }
            (Err(Error::Store(error)), _) => Err(error.into()),
            (Err(error), Answer::Json) => json(&Rewound::refused(&error), None, ui),
            (Err(error), Answer::Text) => Err(failure(error)),
        }
    }

    /// Returns where the conversation can be forked. Whether there is anything to fork is known before a file is touched.
    fn before(
        &self,
        checkpoints: &Checkpointer,
        session: &Session,
        context: &Context,
    ) -> Result<Option<ForkPoint>, Failure> {
        let Point::At(id) = &self.to else { return Ok(None) };
        let all = pollster::block_on(checkpoints.checkpoints()).map_err(failure)?;
        let checkpoint = all.into_iter().find(|checkpoint| checkpoint.id == *id);
        let message = checkpoint.map_or(Some(id.clone()), |checkpoint| checkpoint.message);
        let before = match message {
            Some(message) => ForkPoint::before(&message, session, context)?,
            None => None,
        };
        match before {
            None if self.fork => Err(Failure::failed(
                "nothing of the conversation stands before that, so there is nothing to fork",
                "rewind without --fork, and begin a new session",
            )),
            before => Ok(before),
        }
    }

    fn rewind(
        &self,
        checkpoints: &Checkpointer,
        choices: &Choices,
        ui: &mut Ui,
    ) -> Result<(Plan, Rewound), Error> {
        let plan = pollster::block_on(checkpoints.plan(&self.to, choices))?;
        if self.dry_run || !plan.is_ready() {
            let rewound = Rewound::of(&plan, None);
            return Ok((plan, rewound));
        }
        let ui = Mutex::new(ui);
        let tell = |done, all| {
            ui.lock().unwrap_or_else(PoisonError::into_inner).progress("Restoring", done, all);
        };
        let rewound = pollster::block_on(checkpoints.apply_telling(&plan, &tell))?;
        Ok((plan, rewound))
    }

    fn tell(
        &self,
        plan: &Plan,
        rewound: &Rewound,
        session: &Session,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<Done, Failure> {
        for step in &plan.steps {
            let letter = match step.action {
                Action::Restore => "M",
                Action::Create => "A",
                Action::Remove => "D",
            };
            let notes = [
                (step.forced, "forced"),
                (step.assumed, "assumed to be the agent's"),
                (step.several_names, "its other names keep their content"),
            ];
            let notes: Vec<&str> = notes.into_iter().filter(|(is, _)| *is).map(|(_, note)| note).collect();
            let notes = if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) };
            ui.line(Tone::Plain, &format!("  {letter}  {}{notes}", step.path))?;
        }
        for conflict in &plan.conflicts {
            ui.line(Tone::Strong, &format!("  !  {}  {}", conflict.path, conflict.because))?;
        }
        for skipped in &plan.skipped {
            ui.line(Tone::Faint, &format!("  -  {}  {}", skipped.path, skipped.reason))?;
        }
        plan.incomplete.iter().for_each(|why| ui.warn(&format!("this may not be everything: {why}")));
        if let Some(error) = &rewound.error {
            return Err(Failure::failed(
                format!("nothing was changed: {error}"),
                format!(
                    "{} overwrites, and `--leave` instead of `--force` leaves out",
                    self.command(session, context, &forces(plan))
                ),
            ));
        }
        let what = summary(plan, self.dry_run || rewound.receipt.is_none());
        ui.say(&what);
        match (&rewound.receipt, self.dry_run, plan.steps.is_empty()) {
            (_, true, false) => ui.say("Run again without --dry-run to apply."),
            (Some(receipt), ..) => {
                ui.say(&format!("{} takes it back.", context.command(&format!("rewind --undo {receipt}"))));
            }
            _ => {}
        }
        Ok(if rewound.complete { Done::Fully } else { Done::Partly })
    }

    fn command(&self, session: &Session, context: &Context, rest: &str) -> String {
        let point = match &self.to {
            Point::At(id) => format!("--to {id}"),
            Point::Turn(id) => format!("--turn {id}"),
            Point::Undo(id) => format!("--undo {id}"),
        };
        context.command(&format!("rewind {} {point}{rest}", context.short(session.id())))
    }
}

/// What an agent does meanwhile would be taken back half, and the rest of it for a person's. Where no keeper runs, it drives
/// nothing.
fn refuse_while_a_turn_runs(session: &Session, context: &Context) -> Result<(), Failure> {
    let path = format!("/sessions/{}", session.id());
    let card = KeeperPlace::find()?.ask(async |client| client.get::<Value>(&path).await);
    match card.as_ref().ok().and_then(|card| card["state"].as_str()) {
        Some("running" | "waiting") => {
            let command = context.command(&format!("interrupt {}", context.short(session.id())));
            Err(Failure::failed("a turn of this session runs", format!("{command} ends it; then rewind")))
        }
        _ => Ok(()),
    }
}

fn forces(plan: &Plan) -> String {
    plan.conflicts.iter().map(|conflict| format!(" --force {}", conflict.path)).collect()
}

fn summary(plan: &Plan, would: bool) -> String {
    let number = |action: Action| plan.steps.iter().filter(|step| step.action == action).count();
    let parts = [
        (number(Action::Restore), if would { "restore" } else { "restored" }),
        (number(Action::Create), if would { "bring back" } else { "brought back" }),
        (number(Action::Remove), if would { "remove" } else { "removed" }),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, verb)| format!("{verb} {}", count(*number, "path")))
        .collect();
    if parts.is_empty() {
        return "Nothing to do: everything is as it was.".into();
    }
    let lines = format!("{} added, {} removed", count(plan.insertions, "line"), plan.deletions);
    match would {
        true => format!("Would {}: {lines}.", parts.join(", ")),
        false => {
            let done = parts.join(", ");
            format!("{}{}: {lines}.", done[..1].to_uppercase(), &done[1..])
        }
    }
}

fn json(rewound: &Rewound, forked: Option<&str>, ui: &mut Ui) -> Result<Done, Failure> {
    let mut answer = serde_json::to_value(rewound).unwrap_or_default();
    if let (Some(answer), Some(fork)) = (answer.as_object_mut(), forked) {
        answer.insert("fork".into(), fork.into());
    }
    ui.data(answer.to_string().as_bytes())?;
    Ok(if rewound.error.is_none() && rewound.complete { Done::Fully } else { Done::Partly })
}

/// Finds the session that a receipt belongs to, beginning with those used last.
async fn of_receipt(receipt: &EntryId, context: &Context) -> Result<Session, Failure> {
    let listing = context.store.list(&Filter::everything()).await?;
    for metadata in listing.sessions {
        let log = LogKey::new(metadata.session_id.clone(), LogName::Checkpoints);
        if context.store.backend().find(&log, receipt).await?.is_some() {
            return Ok(context.store.open(&metadata.session_id).await?);
        }
    }
    let hint = format!("{} shows the receipts of a session", context.command("checkpoints SESSION"));
    Err(Failure::failed(format!("there is no receipt {receipt}"), hint))
}
