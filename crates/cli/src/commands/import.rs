//! `import`: a session that was exported, or the sessions of a store of another layout.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use rethread_store::{Error, FolderImport, FolderOutcome, FolderSession, SessionId};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::NamedSession;
use crate::native;
use crate::text::count;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Import {
    path: PathBuf,
    new: Option<SessionId>,
    /// Claude Code's own sessions instead; all if none is named.
    claude: Option<Vec<NamedSession>>,
    answer: Answer,
}

impl From<args::Import> for Import {
    fn from(typed: args::Import) -> Self {
        let (path, answer) = (typed.path.unwrap_or_default(), Answer::of(typed.json));
        Self { path, new: typed.new, claude: typed.claude, answer }
    }
}

impl Import {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if let Some(named) = &self.claude {
            let mut ids = Vec::with_capacity(named.len());
            for named in named {
                ids.push(named.native(context)?.ok_or_else(|| {
                    let hint = format!("{} shows what there is", context.command("list --native"));
                    Failure::failed("Claude Code has no such session", hint)
                })?);
            }
            return native::import(&ids, self.answer, context, ui);
        }
        if self.path == Path::new("-") {
            let spooled = spool().map_err(Error::io("read", "standard input"))?;
            return self.bundle(spooled.path(), context, ui).map_err(|failure| match failure {
                Failure::Store(Error::BadImport { reason, .. }) => {
                    Failure::Store(Error::BadImport { path: "standard input".into(), reason })
                }
                failure => failure,
            });
        }
        if !self.path.try_exists().unwrap_or(true) {
            let hint = format!("{} writes a file to import", context.command("export ID -o FILE"));
            return Err(Failure::failed(format!("there is no {}", self.path.display()), hint));
        }
        if self.path.is_dir() {
            return self.folder(context, ui);
        }
        self.bundle(&self.path, context, ui)
    }

    fn bundle(&self, path: &Path, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let imported = context.write(context.store.import_bundle(path, self.new.clone()))?;
        match self.answer {
            Answer::Text => ui.data(imported.session_id.as_str().as_bytes())?,
            Answer::Json => {
                let json = serde_json::json!({
                    "session_id": imported.session_id, "outcome": "imported", "records": imported.records,
                    "inherited": imported.inherited, "lost": imported.lost, "files": imported.files,
                    "skipped": imported.skipped,
                });
                ui.data(json.to_string().as_bytes())?;
            }
        }
        let records = count(imported.records + imported.inherited, "record");
        ui.say(&format!("Imported session {}, {records}.", context.short(&imported.session_id)));
        if imported.without_files {
            ui.warn(
                "the contents that its checkpoints refer to did not come with it: files cannot be rewound",
            );
        }
        if imported.skipped > 0 {
            let lines = count(imported.skipped, "line");
            ui.warn(&format!("{lines} of a kind that this version does not know were left out"));
        }
        if imported.lost > 0 {
            ui.warn(&format!("{} had been lost before it was exported", count(imported.lost, "record")));
        }
        Ok(if imported.skipped > 0 { Done::Partly } else { Done::Fully })
    }

    fn folder(&self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if self.new.is_some() {
            let message = format!("{} is a folder, whose sessions keep their ids", self.path.display());
            return Err(Failure::wrongly(message, "leave out --id"));
        }
        let mut show = |progress: rethread_store::Progress| {
            ui.progress("importing session", progress.number, progress.of);
        };
        let import = context.write(context.store.import_folder(&self.path, &mut show))?;
        tell(&import, self.answer, context, ui)
    }
}

fn tell(import: &FolderImport, answer: Answer, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let (mut imported, mut there, mut done) = (0_u64, 0_u64, Done::Fully);
    for session in &import.sessions {
        if answer == Answer::Json {
            tell_programs(session, context, ui)?;
        }
        match &session.outcome {
            FolderOutcome::Imported { session_id, .. } => {
                imported += 1;
                if answer == Answer::Text {
                    ui.data(session_id.as_str().as_bytes())?;
                }
            }
            FolderOutcome::Exists(_) => there += 1,
            FolderOutcome::Refused(error) => {
                done = Done::Partly;
                ui.warn(&context.describe(error));
            }
            _ => {}
        }
    }
    for issue in import.sessions.iter().flat_map(|session| &session.issues).chain(&import.issues) {
        done = Done::Partly;
        ui.warn(&issue.to_string());
    }
    let already = match there {
        0 => String::new(),
        1 => "; 1 was here already".into(),
        _ => format!("; {there} were here already"),
    };
    ui.say(&format!("Imported {}{already}.", count(imported, "session")));
    Ok(done)
}

fn tell_programs(session: &FolderSession, context: &Context, ui: &mut Ui) -> Result<(), Failure> {
    let (id, outcome, error) = match &session.outcome {
        FolderOutcome::Imported { session_id, .. } => (Some(session_id), "imported", None),
        FolderOutcome::Exists(session_id) => (Some(session_id), "exists", None),
        FolderOutcome::Refused(error) => (None, "refused", Some(context.describe(error))),
        _ => (None, "unknown", None),
    };
    let issues: Vec<String> = session.issues.iter().map(ToString::to_string).collect();
    let json = serde_json::json!({
        "session_id": id, "outcome": outcome, "error": error, "issues": issues,
    });
    ui.data(json.to_string().as_bytes())
}

/// Keeps standard input where it can be read more than once.
fn spool() -> io::Result<tempfile::NamedTempFile> {
    let mut spooled = tempfile::NamedTempFile::new()?;
    io::copy(&mut io::stdin().lock(), &mut spooled)?;
    spooled.flush()?;
    Ok(spooled)
}
