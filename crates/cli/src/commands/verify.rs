//! `verify`: reads every byte and says what is damaged.

use rethread_checkpoint::{Interrupted, Looked, Lost};
use rethread_store::{Error, Report, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::files::failure;
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Verify {
    session: Option<NamedSession>,
    answer: Answer,
}

impl From<args::Verify> for Verify {
    fn from(typed: args::Verify) -> Self {
        Self { session: typed.id, answer: Answer::of(typed.json) }
    }
}

impl Verify {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let (ids, asked_for_one) = match &self.session {
            Some(named) => (vec![pollster::block_on(named.find(context))?], true),
            None => (pollster::block_on(context.store.ids())?, false),
        };
        let (mut tally, mut looked) = (Tally::default(), Looked::default());
        for (index, id) in ids.iter().enumerate() {
            ui.progress("verifying session", index + 1, ids.len());
            match pollster::block_on(context.store.verify(id)) {
                Ok(report) => {
                    let files = Files::of(id, &mut looked, context)?;
                    self.show(&report, &files, context, ui)?;
                    tally.add(&report, &files);
                }
                // A folder without any record is no session; `gc` clears it away.
                Err(Error::SessionNotFound(_)) if !asked_for_one => {}
                // That is what was wanted, so nothing is wrong.
                Err(Error::Erased(_)) if !asked_for_one => {
                    let gc = context.command("gc");
                    ui.say(&format!(
                        "Session {} was erased; {gc} clears away what is left.",
                        context.short(id)
                    ));
                }
                Err(error) if asked_for_one || matches!(error, Error::NewerFormat { .. }) => {
                    return Err(error.into());
                }
                Err(error) => {
                    ui.warn(&format!(
                        "session {} cannot be read: {}",
                        context.short(id),
                        context.describe(&error)
                    ));
                    tally.sessions += 1;
                    tally.damaged.push(id.clone());
                }
            }
        }
        tally.tell(self.answer, context, ui)
    }

    fn show(&self, report: &Report, files: &Files, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
        if self.answer == Answer::Json {
            let problems = report.problems.iter().map(ToString::to_string);
            let problems: Vec<String> = problems.chain(files.lost.iter().map(in_words)).collect();
            let interrupted: Vec<_> = files.interrupted.iter().map(|rewind| &rewind.receipt).collect();
            let json = serde_json::json!({
                "session_id": report.session,
                "ok": report.is_ok() && files.is_ok(),
                "records": report.records,
                "lost": report.lost,
                "problems": problems,
                "interrupted": interrupted,
            });
            return ui.data(json.to_string().as_bytes());
        }
        let id = context.short(&report.session);
        for lost in &files.lost {
            ui.line(Tone::Plain, &format!("{id}: {}", in_words(lost)))?;
        }
        for rewind in &files.interrupted {
            let command = context.command(&format!("checkpoints stored:{id}"));
            ui.line(
                Tone::Plain,
                &format!(
                    "{id}: rewind {} beneath {} has not ended; {command} finishes it, or takes it back",
                    rewind.receipt,
                    rewind.root.display()
                ),
            )?;
        }
        for problem in &report.problems {
            ui.line(
                Tone::Plain,
                &format!("{id}: {}", context.shortened(&problem.to_string(), &report.session)),
            )?;
        }
        Ok(())
    }
}

/// What is wrong with the files that a session's checkpoints are about.
struct Files {
    lost: Vec<Lost>,
    interrupted: Vec<Interrupted>,
}

impl Files {
    fn of(id: &SessionId, looked: &mut Looked, context: &Context) -> Result<Self, Failure> {
        let lost = pollster::block_on(rethread_checkpoint::verify(&context.store, id, looked));
        let interrupted = pollster::block_on(rethread_checkpoint::interrupted(&context.store, id));
        Ok(Self { lost: lost.map_err(failure)?, interrupted: interrupted.map_err(failure)? })
    }

    fn is_ok(&self) -> bool {
        self.lost.is_empty() && self.interrupted.is_empty()
    }
}

fn in_words(lost: &Lost) -> String {
    let content = match &lost.paths[..] {
        [] => "the list of a whole tree".to_owned(),
        [only] => format!("content of {only}"),
        [first, rest @ ..] => format!("content of {first} and {}", count(rest.len(), "other path")),
    };
    format!("checkpoint {}: {content}, blob {}: {}", lost.checkpoint, lost.blob, lost.reason)
}

/// What was found in all.
#[derive(Default)]
struct Tally {
    sessions: usize,
    /// Sessions whose files need a look, though their logs are whole.
    files: usize,
    records: u64,
    lost: u64,
    damaged: Vec<SessionId>,
}

impl Tally {
    fn add(&mut self, report: &Report, files: &Files) {
        self.sessions += 1;
        self.files += usize::from(report.is_ok() && !files.is_ok());
        self.records += report.records;
        self.lost += report.lost;
        if !report.is_ok() {
            self.damaged.push(report.session.clone());
        }
    }

    fn tell(&self, answer: Answer, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let Some(damaged) = self.damaged.first() else {
            if self.files > 0 {
                ui.say(&format!(
                    "The logs are whole; the files of {} need a look.",
                    count(self.files, "session")
                ));
                return Ok(Done::Partly);
            }
            if answer == Answer::Text {
                let (sessions, records) = (count(self.sessions, "session"), count(self.records, "record"));
                ui.line(Tone::Plain, &format!("{sessions}, {records}: all whole"))?;
                if self.lost > 0 {
                    let lost = count(self.lost, "record");
                    ui.line(Tone::Faint, &format!("{lost} lost earlier, as notes of a repair say"))?;
                }
            }
            return Ok(Done::Fully);
        };
        let (bad, all) = (self.damaged.len(), self.sessions);
        ui.say(&match (bad, all) {
            (1, 1) => format!("Session {} is damaged.", context.short(damaged)),
            _ => format!("{bad} of {} are damaged.", count(all, "session")),
        });
        ui.hint(&format!("{} says what can be done", context.command_on("repair", damaged)));
        Ok(Done::Partly)
    }
}
