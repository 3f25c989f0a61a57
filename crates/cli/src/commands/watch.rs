//! `watch`: follows a session live, through the keeper.

use std::collections::HashSet;

use rethread_keeper::Client;
use serde_json::Value;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, Threads, explain, runtime, session_id};
use crate::named::NamedSession;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Watch {
    session: NamedSession,
    answer: Answer,
}

impl From<args::Watch> for Watch {
    fn from(typed: args::Watch) -> Self {
        Self { session: typed.id, answer: Answer::of(typed.json) }
    }
}

impl Watch {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let session = session_id(&self.session, context)?;
        let place = KeeperPlace::find()?;
        let from = here(&place)?;
        follow(&place, &session, from, Until::Ever, self.answer, ui)?;
        Ok(Done::Fully)
    }
}

/// How long a session is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Ever,
    /// Until the turn of this message ends.
    Turn(String),
}

/// Returns where events are now.
pub(super) fn here(place: &KeeperPlace) -> Result<String, Failure> {
    let page: Value = place.ask(async |client| client.get("/events").await)?;
    Ok(page["after"].as_str().unwrap_or_default().to_owned())
}

/// Shows what happens in a session.
pub(super) fn follow(
    place: &KeeperPlace,
    session: &str,
    mut after: String,
    until: Until,
    answer: Answer,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let (runtime, client): (_, Client) = (runtime(Threads::One)?, place.client());
    let mut told = Told::default();
    loop {
        let path = format!("/events?topics=session:{session}&wait=25&after={after}");
        let page: Value = runtime.block_on(client.get(&path)).map_err(|error| explain(&error))?;
        if page["resync"] == true {
            ui.warn("some of what happened was missed; `rethread show` has all of it");
        }
        after = page["after"].as_str().unwrap_or_default().to_owned();
        for event in page["items"].as_array().into_iter().flatten() {
            match answer {
                Answer::Json => ui.data(event.to_string().as_bytes())?,
                Answer::Text => tell(event, &mut told, ui)?,
            }
            ui.flush()?;
            let is_over =
                matches!(event["type"].as_str(), Some("turn.completed" | "turn.failed" | "turn.interrupted"));
            if is_over
                && matches!(&until, Until::Turn(message) if event["data"]["message"] == message.as_str())
            {
                return Ok(());
            }
        }
    }
}

/// The messages that were shown already.
#[derive(Debug, Default)]
struct Told(HashSet<String>);

impl Told {
    /// Returns whether a message has not been shown. It comes twice, from the agent and from its file, and the file may
    /// well be later than the end of the turn.
    fn is_new(&mut self, message: &Value) -> bool {
        message["uuid"].as_str().is_none_or(|uuid| self.0.insert(uuid.to_owned()))
    }
}

fn tell(event: &Value, told: &mut Told, ui: &mut Ui) -> Result<(), Failure> {
    let data = &event["data"];
    match event["type"].as_str().unwrap_or_default() {
        "message.upsert" if told.is_new(data) => {
            let role = data["role"].as_str().unwrap_or_default();
            for (tone, text) in words(data) {
                ui.line(tone, &format!("{role}: {text}"))?;
            }
        }
        "attention.requested" => {
            let (id, tool) = (data["shown"]["id"].as_str().unwrap_or_default(), &data["shown"]["tool_name"]);
            ui.line(
                Tone::Strong,
                &format!(
                    "{} waits for a decision: {}",
                    tool.as_str().unwrap_or_default(),
                    data["shown"]["input"]
                ),
            )?;
            let short = id.get(..8).unwrap_or(id);
            ui.hint(&format!("`rethread attention {short} --allow` or `--deny` answers it"));
        }
        "turn.failed" => {
            let why = data["errors"].as_array().and_then(|all| all.first()).and_then(Value::as_str);
            let why = why.or_else(|| data["result"].as_str()).unwrap_or("no reason was given");
            ui.line(Tone::Strong, &format!("the turn failed: {why}"))?;
        }
        "turn.interrupted" => ui.line(Tone::Faint, "the turn was interrupted")?,
        _ => {}
    }
    Ok(())
}

/// Returns what a message says, a line for each block.
fn words(item: &Value) -> Vec<(Tone, String)> {
    match &item["content"] {
        Value::String(text) => vec![(Tone::Plain, text.clone())],
        Value::Array(blocks) => blocks.iter().filter_map(block).collect(),
        _ => Vec::new(),
    }
}

fn block(block: &Value) -> Option<(Tone, String)> {
    let text = |name: &str| block[name].as_str().map(str::to_owned);
    match block["type"].as_str()? {
        "text" => Some((Tone::Plain, text("text")?)),
        "tool_use" => Some((Tone::Faint, format!("{} {}", text("name")?, block["input"]))),
        "tool_result" => Some((Tone::Faint, text("content").unwrap_or_else(|| block["content"].to_string()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_message_is_shown_when_it_is_said_and_not_again_when_it_is_written_down() {
        let mut told = Told::default();
        assert!(told.is_new(&json!({ "uuid": "a", "provisional": true })));
        assert!(!told.is_new(&json!({ "uuid": "a", "provisional": false })));
        // One that the agent never announced is shown when it is read.
        assert!(told.is_new(&json!({ "uuid": "b", "provisional": false })));
        assert!(told.is_new(&json!({ "uuid": null })) && told.is_new(&json!({ "uuid": null })));
    }
}
