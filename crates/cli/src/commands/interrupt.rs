//! `interrupt`: ends the turn that runs.

use serde_json::{Value, json};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, session_id};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Interrupt {
    session: NamedSession,
}

impl From<args::Interrupt> for Interrupt {
    fn from(typed: args::Interrupt) -> Self {
        Self { session: typed.id }
    }
}

impl Interrupt {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let path = format!("/sessions/{}/interrupt", session_id(&self.session, context)?);
        let answer: Value = KeeperPlace::find()?.ask(async |client| client.post(&path, &json!({})).await)?;
        match answer["interrupted"] == true {
            true => ui.say("The turn ends."),
            false => ui.say("No turn runs."),
        }
        Ok(Done::Fully)
    }
}
