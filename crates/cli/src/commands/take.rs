//! `take`: goes on here with a session that another machine handed over.

use std::path::PathBuf;

use rethread_store::{SessionId, Store};
use serde_json::json;

use super::handoff::replicate_family;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
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
        let id = pollster::block_on(self.session.find_in(shared, context))?;
        // Before anything is copied: it may be no session to take, and the person may have to say where to.
        let handoff = handed_over(&id, shared)?;
        let cwd = self.here(&handoff)?;
        if let Some(from) = &from {
            replicate_family(&id, from, &context.store, ui)?;
            from.close()?;
        }
        let stored = pollster::block_on(context.store.open(&id))?;
        let transcript = handoff.unpack(&stored, cwd.clone(), context)?;
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

fn handed_over(id: &SessionId, shared: &Store) -> Result<Handoff, Failure> {
    let stored = pollster::block_on(shared.open(id))?;
    Handoff::of(&stored)?.ok_or_else(|| {
        let message = format!("session {id} is in that store, but nobody handed it over");
        let hint =
            "`rethread handoff ID --to URL` does, where it is; `rethread copy` takes what is stored of it";
        Failure::failed(message, hint)
    })
}
