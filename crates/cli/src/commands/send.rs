//! `send`: says something to a session, through the keeper.

use serde_json::{Value, json};

use super::watch::{Over, Until, follow, here};
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, named};
use crate::keeper_place::{KeeperPlace, session_id};
use crate::named::NamedSession;
use crate::text::one_line;
use crate::ui::{Answer, Ui};

#[derive(Debug)]
pub(crate) struct Send {
    session: NamedSession,
    text: String,
    queue: bool,
    watch: bool,
    answer: Answer,
}

impl From<args::Send> for Send {
    fn from(typed: args::Send) -> Self {
        let answer = Answer::of(typed.json);
        Self { session: typed.id, text: typed.text, queue: typed.queue, watch: typed.watch, answer }
    }
}

impl Send {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = session_id(&self.session, context)?;
        let place = KeeperPlace::find()?;
        // Where the watching begins is known before anything is said.
        let from = if self.watch { Some(here(&place)?) } else { None };
        let id = uuid::Uuid::new_v4().to_string();
        let body = json!({
            "client_message_id": id, "mode": if self.queue { "queue" } else { "start" },
            "parts": [{ "type": "text", "text": self.text }],
        });
        let path = format!("/sessions/{session}/turns");
        let accepted: Value = place.ask(async |client| client.post(&path, &body).await)?;
        match (from, accepted["queued"] == true) {
            (Some(from), _) => {
                return match follow(&place, &session, from, Until::Turn(id), self.answer, ui)? {
                    Over::Completed => Ok(Done::Fully),
                    // That was said, and what was asked for was not done.
                    Over::Interrupted => Ok(Done::Partly),
                    Over::Failed(why) => Err(failed(&why, &session, context)),
                };
            }
            (None, _) if self.answer == Answer::Json => ui.data(accepted.to_string().as_bytes())?,
            (None, true) => ui.say("It waits for its turn."),
            (None, false) => {
                let command = context.command(&format!("watch {}", context.short_of(&session)));
                ui.say(&format!("Sent; {command} follows it."));
            }
        }
        Ok(Done::Fully)
    }
}

fn failed(why: &str, session: &str, context: &Context) -> Failure {
    let show = context.command(&format!("show {}", context.short_of(session)));
    let hint = format!("{show} has what was said until then, `rethread logs` may say more");
    let message = format!("the turn failed: {}", one_line(why, usize::MAX));
    Failure::known(named("turn-failed", "Bad Gateway", 502), message, Some(hint))
}
