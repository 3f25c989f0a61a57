//! The files of a session: where they are, and how to speak of what happens to them.

use std::collections::BTreeSet;
use std::path::PathBuf;

use rethread_checkpoint::{Checkpointer, Error, Outcome, Settings, Switch, TreePath, noted_folders};
use rethread_store::Session;
use rethread_transcripts::Links;

use crate::args;
use crate::context::Context;
use crate::failure::Failure;
use crate::text::count;
use crate::ui::Ui;

/// Opens a session's checkpoints beneath a folder, else beneath its working directory, and tells of rewinds that were
/// interrupted.
pub(crate) fn open(
    session: &Session,
    typed: &args::Root,
    context: &Context,
    ui: &mut Ui,
) -> Result<Checkpointer, Failure> {
    let mut settings = Settings::default();
    settings.formerly.clone_from(&typed.formerly);
    let root = match &typed.root {
        Some(root) => root.clone(),
        None => {
            let metadata = pollster::block_on(session.metadata())?;
            let noted = noted_folders(&metadata);
            // One that was handed over works where Claude Code says, and not where it once began.
            let here = if noted.is_empty() { None } else { native_cwd(session, context) };
            settings.formerly.extend(noted);
            let message = format!("session {} has no working directory", context.short(session.id()));
            let cwd = here.or_else(|| metadata.cwd.map(PathBuf::from));
            cwd.ok_or_else(|| Failure::wrongly(message, "`--root DIR` names one"))?
        }
    };
    settings.cache = context.folder().map(|folder| folder.join("cache"));
    if std::env::var_os("RETHREAD_CHECKPOINTS").is_some_and(|value| value == "off") {
        settings.switch = Switch::Off;
    }
    let opened = pollster::block_on(Checkpointer::open(session, &root, settings)).map_err(failure)?;
    for recovered in opened.recovered() {
        let outcome = match recovered.outcome {
            Outcome::Done => "was finished",
            Outcome::TakenBack => "was taken back",
        };
        ui.warn(&format!("a rewind that had been interrupted {outcome}: receipt {}", recovered.receipt));
        for path in recovered.left {
            ui.warn(&format!("{path} was changed after that, and left as it is"));
        }
    }
    Ok(opened)
}

/// Returns where Claude Code's own session of the same id works.
fn native_cwd(session: &Session, context: &Context) -> Option<PathBuf> {
    let claude = context.native.claude().ok()?;
    let path = claude.find(session.id().as_str()).ok()?;
    claude.look(&path, Links::Follow).ok()?.cwd
}

/// Returns paths as they were typed, beneath the root.
pub(crate) fn beneath(checkpoints: &Checkpointer, paths: &[PathBuf]) -> Result<BTreeSet<TreePath>, Failure> {
    let full = paths.iter().map(|path| std::path::absolute(path).unwrap_or_else(|_| path.clone()));
    let within = full.map(|path| TreePath::beneath(checkpoints.root_path(), &path));
    within.collect::<Result<_, _>>().map_err(failure)
}

/// Returns an error as a person reads it, with what to do next.
pub(crate) fn failure(error: Error) -> Failure {
    use std::error::Error as _;
    let hint = match &error {
        Error::Store(error) => return Failure::Store(error.clone()),
        Error::NoSuchPoint { session, .. } | Error::NoSuchReceipt { session, .. } => {
            Some(format!("`rethread checkpoints stored:{session}` shows what there is"))
        }
        Error::InTheWay { .. } => Some("`--force PATH` overwrites one, `--leave PATH` leaves it out".into()),
        Error::Changed { .. } => Some("type it again".into()),
        Error::Off => Some("RETHREAD_CHECKPOINTS=off is set; without it there are checkpoints".into()),
        Error::NotInPlan(_) => Some("`--dry-run` shows the paths that there are".into()),
        Error::NoContent { path, .. } => Some(format!("`--leave {path}` goes without it")),
        Error::Busy { .. } => Some("wait for it, and type it again".into()),
        Error::Unfinished { session, store, root, .. } => Some(format!(
            "`rethread --store {store} checkpoints stored:{session}` finishes it; if that session is gone for good, \
             remove {}",
            root.join(".rethread-rewind").display()
        )),
        Error::Taken(_) => Some("`--id` names another one".into()),
        _ => None,
    };
    let mut message = error.to_string();
    if let Some(cause) = error.source() {
        message = format!("{message}: {}", crate::failure::without_number(&cause.to_string()));
    }
    match error {
        Error::BadPath { .. } | Error::NotInPlan(_) => Failure::Wrongly { message, hint },
        _ => Failure::Failed { message, hint },
    }
}

/// Returns a number of bytes as a person reads it.
pub(crate) fn size(bytes: u64) -> String {
    let (mut size, mut unit) = (bytes as f64, "B");
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if size < 1024.0 {
            break;
        }
        (size, unit) = (size / 1024.0, larger);
    }
    if unit == "B" { count(bytes, "byte") } else { format!("{size:.1} {unit}") }
}
