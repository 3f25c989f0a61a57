//! `repair`: mends a damaged session, or says how.

use rethread_store::{Mode, Report, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Repair {
    session: NamedSession,
    mode: Mode,
    answer: Answer,
}

impl From<args::Repair> for Repair {
    fn from(typed: args::Repair) -> Self {
        let mode = if typed.yes { Mode::Apply } else { Mode::Plan };
        Self { session: typed.id, mode, answer: Answer::of(typed.json) }
    }
}

impl Repair {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let id = pollster::block_on(self.session.find(context))?;
        let repair = context.write(context.store.repair(&id, self.mode))?;
        if self.answer == Answer::Json {
            return json(&repair, ui);
        }
        if repair.before.is_ok() {
            ui.line(Tone::Plain, &format!("Session {} is whole; nothing to repair.", context.short(&id)))?;
            return Ok(Done::Fully);
        }
        if repair.logs.is_empty() && !repair.metadata {
            problems("Nothing can be repaired in", &repair.before, context, ui)?;
            ui.hint(&format!("{} takes away what can be read", context.command_on("export", &id)));
            return Ok(Done::Partly);
        }
        match &repair.after {
            None => self.plan(&repair, context, ui),
            Some(after) => self.applied(&repair, after, context, ui),
        }
    }

    fn plan(&self, repair: &rethread_store::Repair, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        problems("Would mend", &repair.before, context, ui)?;
        if !repair.logs.is_empty() {
            ui.line(
                Tone::Plain,
                "Every record that can be read stays, a lost one leaves a note in its place,",
            )?;
            ui.line(Tone::Plain, "and the files as they are now are kept in the quarantine.")?;
        }
        let id = context.short(&repair.before.session);
        ui.hint(&format!("{} does it", context.command(&format!("repair {id} --yes"))));
        Ok(Done::Fully)
    }

    fn applied(
        &self,
        repair: &rethread_store::Repair,
        after: &Report,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<Done, Failure> {
        problems("Mended", &repair.before, context, ui)?;
        for (log, rewrite) in &repair.rewrites {
            let (kept, lost) = (count(rewrite.kept, "record"), count(rewrite.lost.len(), "record"));
            let salvaged = match rewrite.salvaged {
                0 => String::new(),
                salvaged => format!(", {salvaged} put back"),
            };
            ui.line(Tone::Plain, &format!("{}: {kept} kept{salvaged}, {lost} lost", log.as_str()))?;
            if let Some(backup) = &rewrite.backup {
                ui.line(Tone::Plain, &format!("  as it was: {}", backup.display()))?;
            }
        }
        if after.is_ok() {
            return Ok(Done::Fully);
        }
        problems("Still wrong in", after, context, ui)?;
        Ok(Done::Partly)
    }
}

fn json(repair: &rethread_store::Repair, ui: &mut Ui) -> Result<Done, Failure> {
    let in_words = |report: &Report| report.problems.iter().map(ToString::to_string).collect::<Vec<_>>();
    let rewrites: Vec<_> = repair
        .rewrites
        .iter()
        .map(|(log, rewrite)| {
            serde_json::json!({
                "log": log.as_str(), "kept": rewrite.kept, "salvaged": rewrite.salvaged, "lost": rewrite.lost,
                "backup": rewrite.backup,
            })
        })
        .collect();
    let json = serde_json::json!({
        "session_id": repair.before.session,
        "applied": repair.after.is_some(),
        "problems": in_words(&repair.before),
        "logs": repair.logs.iter().map(|log| log.as_str()).collect::<Vec<_>>(),
        "metadata": repair.metadata,
        "rewrites": rewrites,
        "left": repair.after.as_ref().map(in_words),
    });
    ui.data(json.to_string().as_bytes())?;
    let can = !repair.logs.is_empty() || repair.metadata;
    let whole = repair.before.is_ok() || repair.after.as_ref().map_or(can, Report::is_ok);
    Ok(if whole { Done::Fully } else { Done::Partly })
}

fn problems(heading: &str, report: &Report, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let id: &SessionId = &report.session;
    ui.line(Tone::Plain, &format!("{heading} session {}:", context.short(id)))?;
    report.problems.iter().try_for_each(|problem| {
        ui.line(Tone::Plain, &format!("  {}", context.shortened(&problem.to_string(), id)))
    })
}
