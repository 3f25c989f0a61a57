//! `handoff`: puts one of Claude Code's own sessions where another machine can take it.

use rethread_store::{Error, Replicated, SessionId, Store};
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::family::replicate_family;
use crate::files::size;
use crate::named::NamedSession;
use crate::native::{self, Handoff as Handed};
use crate::place::{quoted, without_password};
use crate::text::count;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Handoff {
    session: NamedSession,
    to: Option<String>,
    answer: Answer,
}

impl From<args::Handoff> for Handoff {
    fn from(typed: args::Handoff) -> Self {
        Self { session: typed.id, to: typed.to, answer: Answer::of(typed.json) }
    }
}

impl Handoff {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let to = context.shared_store(self.to.as_deref())?;
        if context.leaves_secrets_out() {
            let message = "a handoff takes everything as it is, and secrets were to be left out";
            let hint = "`rethread import --claude ID` and `rethread copy ID --to URL` take the conversation without them";
            return Err(Failure::wrongly(message, hint));
        }
        let Some(id) = self.session.native(context)? else {
            let message = format!("Claude Code has no session {} here", self.session.text());
            let hint = "`rethread list --native` shows what it has; `rethread copy` takes stored ones";
            return Err(Failure::failed(message, hint));
        };
        let session = context.native.session(&id)?;
        if let Some(live) = &session.live {
            let error = rethread_transcripts::Error::InUse { session: id, pid: live.pid };
            return Err(error.into());
        }
        let id: SessionId = id.parse()?;
        if let Some(stored) = pollster::block_on(context.store.load(&id))?
            && let Some(holder) = pollster::block_on(stored.driver())?
        {
            return Err(Error::Held { session: id, holder: Box::new(holder) }.into());
        }
        if to.is_none() && !context.store.backend().capabilities().across_hosts {
            let message = "this store is on this machine only";
            return Err(Failure::wrongly(message, "`--to URL` names one that both machines use"));
        }
        let (handed, refused) = match last_known_here(&id, to.as_ref(), context)? {
            Some(last) if last.is_all_of(id.as_str(), context)? => (last, Vec::new()),
            _ => {
                let refused = native::bring_in(&session, context)?.unwrap_or_default();
                let stored = pollster::block_on(context.store.open(&id))?;
                (Handed::pack(&session, &stored, context, ui)?, refused)
            }
        };
        let mut done = Replicated::default();
        if let Some(to) = &to {
            done = replicate_family(&id, &context.store, to, ui)?;
            to.close()?;
        }
        self.tell(&id, &handed, done, context, ui)?;
        if let Some(why) = refused.first() {
            ui.warn(&format!("{} cannot be shown from the store: {why}", count(refused.len(), "entry")));
            return Ok(Done::Partly);
        }
        Ok(Done::Fully)
    }

    fn tell(
        &self,
        id: &SessionId,
        handed: &Handed,
        done: Replicated,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<(), Failure> {
        let bytes = handed.files.iter().map(|file| file.size).sum();
        if self.answer == Answer::Json {
            let json = json!({
                "session_id": id, "files": handed.files.len(), "bytes": bytes,
                "records": done.records, "contents": done.contents,
            });
            return ui.data(json.to_string().as_bytes());
        }
        let files = count(handed.files.len(), "file");
        ui.say(&format!("Session {} is handed over: {files}, {}.", context.short(id), size(bytes)));
        let mut take = format!("rethread take {id}");
        match &self.to {
            Some(url) => take += &format!(" --from {}", quoted(&without_password(url))),
            None => take.extend(context.store_option().map(|option| format!(" {option}"))),
        }
        ui.say(&format!("On the other machine, where the project is: `{take}`."));
        Ok(())
    }
}

/// Returns what was handed over last. What is here and does not go on from that is refused.
fn last_known_here(id: &SessionId, to: Option<&Store>, context: &Context) -> Result<Option<Handed>, Failure> {
    let Some(theirs) = pollster::block_on(to.unwrap_or(&context.store).load(id))? else { return Ok(None) };
    let Some(last) = Handed::of(&theirs)? else { return Ok(None) };
    let is_here = match to {
        Some(_) => match pollster::block_on(context.store.load(id))? {
            Some(ours) => last.is_in(&ours)?,
            None => false,
        },
        // The only store has whatever anybody handed over: what is here has to tell.
        None => !last.is_missed(&theirs, context)?,
    };
    if is_here && last.is_gone_on_from(id.as_str(), context)? {
        return Ok(Some(last));
    }
    let message = format!("session {id} was handed over by {} since it was last here", last.host);
    let take = match to {
        Some(_) => "`rethread take ID --from URL`".to_owned(),
        None => context.command_on("take", id),
    };
    Err(Failure::failed(message, format!("{take} takes that first; nothing was changed")))
}
