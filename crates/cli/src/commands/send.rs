//! `send`: says something to a session, through the keeper.

use serde_json::{Value, json};

use super::watch::{Until, follow, here};
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, session_id};
use crate::named::NamedSession;
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
            (Some(from), _) => follow(&place, &session, from, Until::Turn(id), self.answer, ui)?,
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
