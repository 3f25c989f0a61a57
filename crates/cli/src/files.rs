//! The files of a session: where they are, and how to speak of what happens to them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rethread_checkpoint::{Checkpointer, Error, Outcome, Settings, Switch, TreePath};
use rethread_store::Session;

use crate::context::Context;
use crate::failure::Failure;
use crate::text::count;
use crate::ui::Ui;

/// Opens a session's checkpoints beneath a folder, else beneath its working directory, and tells of rewinds that were
/// interrupted.
pub(crate) fn open(
    session: &Session,
    root: Option<&Path>,
    context: &Context,
    ui: &mut Ui,
) -> Result<Checkpointer, Failure> {
    let root = match root {
        Some(root) => root.to_owned(),
        None => {
            let cwd = pollster::block_on(session.metadata())?.cwd;
            let message = format!("session {} has no working directory", context.short(session.id()));
            cwd.map(PathBuf::from).ok_or_else(|| Failure::wrongly(message, "`--root DIR` names one"))?
        }
    };
    let mut settings = Settings::default();
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
            Some(format!("`rethread checkpoints {session}` shows what there is"))
        }
        Error::InTheWay { .. } => Some("`--force PATH` overwrites one, `--leave PATH` leaves it out".into()),
        Error::Changed { .. } => Some("type it again".into()),
        Error::Off => Some("RETHREAD_CHECKPOINTS=off is set; without it there are checkpoints".into()),
        Error::NotInPlan(_) => Some("`--dry-run` shows the paths that there are".into()),
        Error::NoContent { path, .. } => Some(format!("`--leave {path}` goes without it")),
        Error::Busy { .. } => Some("wait for it, and type it again".into()),
        Error::Unfinished { session, store, root, .. } => Some(format!(
            "`rethread --store {store} checkpoints {session}` finishes it; if that session is gone for good, \
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
