//! `resume`: goes on with a session in Claude Code.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, without_number};
use crate::named::NamedSession;
use crate::native::{export, quoted};
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Resume {
    session: NamedSession,
    print: bool,
    program: PathBuf,
}

impl From<args::Resume> for Resume {
    fn from(typed: args::Resume) -> Self {
        Self { session: typed.id, print: typed.print, program: typed.program }
    }
}

impl Resume {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let (id, cwd) = self.find(context, ui)?;
        if self.print {
            let told = context.native.environment().into_iter();
            let told: String =
                told.map(|(name, value)| format!("{name}={} ", quoted(Path::new(&value)))).collect();
            let program = quoted(&self.program);
            ui.data(format!("cd {} && {told}{program} --resume {id}", quoted(&cwd)).as_bytes())?;
            return Ok(Done::Fully);
        }
        ui.flush()?;
        let mut command = Command::new(&self.program);
        command.arg("--resume").arg(&id).current_dir(&cwd).envs(context.native.environment());
        // Only comes back if it could not begin.
        let error = command.exec().to_string();
        let message = format!("cannot run {}: {}", self.program.display(), without_number(&error));
        Err(Failure::failed(message, "`rethread resume ID --print` prints the command"))
    }

    /// Finds the session, written out if need be, and where to go on with it.
    fn find(&self, context: &Context, ui: &mut Ui) -> Result<(String, PathBuf), Failure> {
        let Some(id) = self.session.native(context)? else {
            let id = pollster::block_on(self.session.find(context))?;
            if context.native.claude()?.find(id.as_str()).is_ok() {
                let hint = context.command(&format!("resume native:{id}"));
                let message = format!("Claude Code has a session {id} of its own");
                return Err(Failure::failed(message, format!("{hint} goes on with that")));
            }
            let (written, cwd) = export(&id, context)?;
            ui.say(&format!("Wrote session {} to {}.", context.short(&id), written.path.display()));
            return Ok((written.session_id, there_or_here(Some(cwd), ui)));
        };
        let session = context.native.session(&id)?;
        if let Some(live) = &session.live {
            let (message, short) =
                (format!("session {id} is in use by process {}", live.pid), context.short_of(&id));
            let command = |verb: &str| context.command(&format!("{verb} {short}"));
            let hint = format!("{} follows it, {} continues a copy", command("tail"), command("fork"));
            return Err(Failure::failed(message, hint));
        }
        Ok((id, there_or_here(session.cwd, ui)))
    }
}

/// Returns a session's directory, or where we are if that is not there: Claude Code finds the session from anywhere, and
/// goes on wherever it is.
fn there_or_here(cwd: Option<PathBuf>, ui: &mut Ui) -> PathBuf {
    match cwd {
        Some(cwd) if cwd.is_absolute() && cwd.is_dir() => return cwd,
        Some(cwd) => ui.warn(&format!("{} is not there any more; going on here", cwd.display())),
        None => ui.warn("the session does not say where it worked; going on here"),
    }
    std::env::current_dir().unwrap_or_else(|_| Path::new(".").to_owned())
}
