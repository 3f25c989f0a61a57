//! `open`: an address that logs a browser in, once.

use serde_json::{Value, json};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, session_id};
use crate::named::NamedSession;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Open {
    session: Option<NamedSession>,
}

impl From<args::Open> for Open {
    fn from(typed: args::Open) -> Self {
        Self { session: typed.id }
    }
}

impl Open {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = self.session.map(|named| session_id(&named, context)).transpose()?;
        let place = KeeperPlace::find()?;
        if let Some(session) = &session {
            place.knows(session)?;
        }
        let boot: Value = place.ask(async |client| client.post("/auth/boot", &json!({})).await)?;
        let mut url = boot["url"].as_str().unwrap_or_default().to_owned();
        if let Some(session) = session {
            url += &format!("&session={session}");
        }
        place.label(ui);
        ui.data(url.as_bytes())?;
        ui.aside("It works once, within a minute.");
        Ok(Done::Fully)
    }
}
