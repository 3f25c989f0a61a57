//! `take`: goes on here with a session that another machine handed over.

use std::path::PathBuf;

use rethread_store::Session;
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::family::replicate_family;
use crate::named::NamedSession;
use crate::native::{Handoff, quoted};
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Take {
    session: NamedSession,
    from: Option<String>,
    cwd: Option<PathBuf>,
    answer: Answer,
}

impl From<args::Take> for Take {
    fn from(typed: args::Take) -> Self {
        Self { session: typed.id, from: typed.from, cwd: typed.cwd, answer: Answer::of(typed.json) }
    }
}

impl Take {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let from = context.shared_store(self.from.as_deref())?;
        let shared = from.as_ref().unwrap_or(&context.store);
        let found = pollster::block_on(self.session.find_in(shared, context));
        let id = found.map_err(|failure| context.of_other(self.from.as_deref(), failure))?;
        let theirs = pollster::block_on(shared.open(&id))?;
        let handoff = handed_over(&theirs)?;
        let cwd = self.here(&handoff)?;
        // Nothing is copied unless it can be taken, and nothing is written unless it could be copied.
        let copy = || match &from {
            Some(from) => {
                replicate_family(&id, from, &context.store, ui)?;
                Ok(())
            }
            None => Ok(()),
        };
        let transcript = handoff.unpack(&theirs, &cwd, context, copy)?;
        if let Some(from) = &from {
            from.close()?;
        }
        match self.answer {
            Answer::Json => {
                let (cwd, transcript) = (cwd.to_string_lossy(), transcript.to_string_lossy());
                let json = json!({
                    "session_id": id, "cwd": cwd, "transcript": transcript, "host": handoff.host,
                    "was_at": handoff.cwd.to_string_lossy(),
                });
                ui.data(json.to_string().as_bytes())?;
            }
            Answer::Text => {
                let (host, cwd) = (&handoff.host, cwd.display());
                let short = context.short(&id);
                ui.say(&format!("Session {short}, handed over by {host}, is here now and works in {cwd}."));
                ui.say(&format!("{} goes on with it.", context.command(&format!("resume {short}"))));
            }
        }
        Ok(Done::Fully)
    }

    /// Returns where the session's project is on this machine.
    fn here(&self, handoff: &Handoff) -> Result<PathBuf, Failure> {
        let was = &handoff.cwd;
        let wanted = self.cwd.as_ref().unwrap_or(was);
        match wanted.canonicalize() {
            Ok(folder) if folder.is_dir() => Ok(folder),
            _ if self.cwd.is_some() => {
                let message = format!("{} is no folder", wanted.display());
                Err(Failure::wrongly(message, "`--cwd DIR` says where the project is on this machine"))
            }
            _ => {
                let message = match was.as_os_str().is_empty() {
                    true => "the session does not say where it worked".to_owned(),
                    false => format!("the project was at {}, which is not on this machine", was.display()),
                };
                Err(Failure::wrongly(message, format!("`--cwd {}` says where it is", quoted(&example()))))
            }
        }
    }
}

fn example() -> PathBuf {
    std::env::current_dir().unwrap_or_else(|_| "DIR".into())
}

fn handed_over(theirs: &Session) -> Result<Handoff, Failure> {
    Handoff::of(theirs)?.ok_or_else(|| {
        let message = format!("session {} is in that store, but nobody handed it over", theirs.id());
        let hint =
            "`rethread handoff ID --to URL` does, where it is; `rethread copy` takes what is stored of it";
        Failure::failed(message, hint)
    })
}
