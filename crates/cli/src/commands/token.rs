//! `token`: what programs show that use the keeper's session store, and nothing else of it.

use rethread_keeper::TokenGrant;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::age::age;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Token {
    typed: args::Token,
}

impl From<args::Token> for Token {
    fn from(typed: args::Token) -> Self {
        Self { typed }
    }
}

#[derive(Deserialize)]
struct Page {
    items: Vec<TokenGrant>,
}

impl Token {
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let place = KeeperPlace::find()?;
        match &self.typed.name {
            None => self.list(&place, ui),
            Some(name) if self.typed.revoke => {
                place.ask(async |client| client.delete::<()>(&format!("/tokens/{name}")).await)?;
                ui.say(&format!("The token {name} is over."));
                Ok(Done::Fully)
            }
            Some(name) => {
                let body = json!({ "name": name, "namespace": self.typed.namespace });
                let made: Value = place.ask(async |client| client.post("/tokens", &body).await)?;
                ui.data(made["token"].as_str().unwrap_or_default().as_bytes())?;
                let namespace = made["grant"]["namespace"].as_str().unwrap_or_default();
                ui.aside(&format!(
                    "It opens the namespace {namespace} of the session store. It is shown this once."
                ));
                Ok(Done::Fully)
            }
        }
    }

    fn list(&self, place: &KeeperPlace, ui: &mut Ui) -> Result<Done, Failure> {
        let page: Page = place.ask(async |client| client.get("/tokens").await)?;
        if Answer::of(self.typed.json) == Answer::Json {
            let lines = page.items.iter().map(|grant| serde_json::to_vec(grant).unwrap_or_default());
            lines.into_iter().try_for_each(|line| ui.data(&line))?;
            return Ok(Done::Fully);
        }
        let now = jiff::Timestamp::now();
        for TokenGrant { name, namespace, created_at } in &page.items {
            ui.line(Tone::Plain, &format!("{name}  {}  namespace {namespace}", age(*created_at, now)))?;
        }
        if page.items.is_empty() {
            ui.say("There are no tokens.");
        }
        ui.hint("`rethread token NAME` makes one, `rethread token NAME --revoke` ends it");
        Ok(Done::Fully)
    }
}
