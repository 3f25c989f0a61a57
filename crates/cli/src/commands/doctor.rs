//! `doctor`: everything damaged or surprising in Claude Code's own sessions, and what to do.

use std::collections::HashSet;
use std::path::PathBuf;

use rethread_transcripts::{Fault, FaultKind, Listing, Session};
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::native::{Examination, Surroundings, quoted};
use crate::text::{count, one_line};
use crate::ui::{Answer, Tone, Ui};

/// How many faults of one session a person gets to see.
const MOST: usize = 12;

#[derive(Debug)]
pub(crate) struct Doctor {
    session: Option<NamedSession>,
    copy: bool,
    answer: Answer,
}

impl From<args::Doctor> for Doctor {
    fn from(typed: args::Doctor) -> Self {
        Self { session: typed.id, copy: typed.copy, answer: Answer::of(typed.json) }
    }
}

impl Doctor {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let Listing { mut sessions, unreadable, .. } = context.native.listing()?;
        let around = Surroundings::of(&sessions, context);
        if let Some(named) = &self.session {
            let Some(id) = named.native(context)? else {
                let hint = context.command("verify");
                return Err(Failure::wrongly(
                    "that session is in the store",
                    format!("{hint} looks at the store"),
                ));
            };
            if self.copy {
                return copy(&id, context, ui);
            }
            sessions.retain(|session| session.session_id == id);
        }
        let (mut ill, all, mut seen) = (0, sessions.len(), HashSet::new());
        for (number, session) in sessions.iter().enumerate() {
            ui.progress("looking at session", number + 1, all);
            // The newest of one id comes first.
            let newest = seen.insert(&session.session_id);
            let findings = Examination::of(session, newest, &around, context);
            ill += usize::from(findings.is_ill());
            match self.answer {
                Answer::Json => tell_programs(session, &findings, ui)?,
                Answer::Text => tell_people(session, &findings, context, ui)?,
            }
        }
        if self.session.is_none() {
            ill += tell_unreadable(&unreadable, self.answer, ui)?;
            tell_stale(self.answer, context, ui)?;
        }
        let unended = if self.session.is_none() { self.unended(context, ui)? } else { 0 };
        if self.answer == Answer::Text {
            let sound = if ill == 0 { "nothing is damaged".into() } else { format!("{ill} of them damaged") };
            ui.say(&format!("Looked at {}: {sound}.", count(all as u64, "session")));
        }
        Ok(if ill + unended > 0 { Done::Partly } else { Done::Fully })
    }

    /// Tells of rewinds that have begun and not ended, whichever session they are of. Returns how many there are.
    fn unended(&self, context: &Context, ui: &mut Ui) -> Result<usize, Failure> {
        let mut all = 0;
        for id in pollster::block_on(context.store.ids())? {
            if pollster::block_on(context.store.backend().is_erased(&id))? {
                continue;
            }
            let rewinds = pollster::block_on(rethread_checkpoint::interrupted(&context.store, &id));
            for rewind in rewinds.map_err(crate::files::failure)? {
                all += 1;
                if self.answer == Answer::Json {
                    let line =
                        json!({ "session_id": id, "unended_rewind": rewind.receipt, "root": rewind.root });
                    ui.data(line.to_string().as_bytes())?;
                    continue;
                }
                let (short, root) = (context.short(&id), rewind.root.display());
                ui.line(Tone::Strong, &format!("{short}  a rewind of {root} has not ended"))?;
                let command = context.command(&format!("checkpoints stored:{short}"));
                ui.line(Tone::Faint, &format!("  {command} finishes it, or takes it back"))?;
            }
        }
        Ok(all)
    }
}

/// Tells of folders that nobody may look into. Returns how many there are.
fn tell_unreadable(folders: &[PathBuf], answer: Answer, ui: &mut Ui) -> Result<usize, Failure> {
    for folder in folders {
        match answer {
            Answer::Json => {
                let line = json!({ "session_id": null, "path": folder.to_string_lossy(), "unreadable": "not allowed" });
                ui.data(line.to_string().as_bytes())?;
            }
            Answer::Text => {
                let folder = one_line(&folder.to_string_lossy(), usize::MAX);
                ui.line(Tone::Strong, &format!("{folder} cannot be looked into"))?;
                ui.line(
                    Tone::Faint,
                    "  what is in it is not listed; `chmod u+rx` on it lets you in, if it is yours",
                )?;
            }
        }
    }
    Ok(folders.len())
}

/// Tells of processes that were killed and are still in Claude Code's register.
fn tell_stale(answer: Answer, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let Ok(claude) = context.native.claude() else { return Ok(()) };
    for stale in claude.stale() {
        match answer {
            Answer::Json => {
                let line = json!({ "session_id": stale.session, "stale_process": stale.pid, "path": stale.path.to_string_lossy() });
                ui.data(line.to_string().as_bytes())?;
            }
            Answer::Text => {
                let id = context.short_of(&stale.session);
                let what = format!("{id}  process {} was killed while it was at work on it", stale.pid);
                ui.line(Tone::Strong, &what)?;
                let clear = format!(
                    "  it counts as ended; `rm {}` makes Claude Code forget it too",
                    quoted(&stale.path)
                );
                ui.line(Tone::Faint, &clear)?;
            }
        }
    }
    Ok(())
}

fn copy(id: &str, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let written = context.native.claude()?.repaired_copy(id)?;
    ui.data(written.session_id.as_bytes())?;
    ui.say(&format!(
        "Copied {} that can be read; the damaged session is as it was.",
        count(written.entries as u64, "entry")
    ));
    Ok(Done::Fully)
}

fn tell_programs(session: &Session, findings: &Examination, ui: &mut Ui) -> Result<(), Failure> {
    let faults = serde_json::to_value(&findings.faults).unwrap_or_default();
    let line = json!({
        "session_id": session.session_id, "path": session.path.to_string_lossy(), "faults": faults, "unreadable": findings.unreadable,
        "notes": findings.notes.iter().map(|note| &note.what).collect::<Vec<_>>(),
    });
    ui.data(line.to_string().as_bytes())
}

fn tell_people(
    session: &Session,
    findings: &Examination,
    context: &Context,
    ui: &mut Ui,
) -> Result<(), Failure> {
    if findings.faults.is_empty() && findings.unreadable.is_none() && findings.notes.is_empty() {
        return Ok(());
    }
    let id = context.short_of(&session.session_id);
    let name = one_line(session.name.as_deref().unwrap_or("-"), usize::MAX);
    ui.line(Tone::Strong, &format!("{id}  {name}"))?;
    for fault in findings.faults.iter().take(MOST) {
        ui.line(Tone::Plain, &format!("  at byte {}: {}", fault.offset, fault.kind))?;
    }
    if let Some(more) = findings.faults.len().checked_sub(MOST + 1) {
        let json = context.command(&format!("doctor {id} --json"));
        ui.line(Tone::Faint, &format!("  and {} more; {json} names all of them", count(more + 1, "fault")))?;
    }
    if let Some(reason) = &findings.unreadable {
        ui.line(Tone::Plain, &format!("  {reason}"))?;
    }
    for note in &findings.notes {
        ui.line(Tone::Plain, &format!("  {}", note.what))?;
        note.advice.iter().try_for_each(|advice| ui.line(Tone::Faint, &format!("  {advice}")))?;
    }
    let has_halves = findings.faults.iter().any(|fault| fault.kind == FaultKind::LoneSurrogate);
    let is_hopeless = |fault: &Fault| matches!(fault.kind, FaultKind::Empty | FaultKind::NothingReadable);
    if findings.faults.iter().any(is_hopeless) {
        let command = context.command(&format!("delete {id}"));
        ui.line(Tone::Faint, &format!("  there is nothing to save; {command} moves it to the trash"))?;
    } else if (findings.is_ill() || has_halves) && findings.unreadable.is_none() {
        let command = context.command(&format!("doctor {id} --copy"));
        ui.line(Tone::Faint, &format!("  {command} writes what can be read as a new session"))?;
    }
    Ok(())
}
