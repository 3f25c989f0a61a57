//! `watch`: follows a session live, through the keeper.

use std::collections::HashSet;

use rethread_keeper::Client;
use serde_json::{Value, json};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, Threads, explain, runtime, session_id};
use crate::named::NamedSession;
use crate::text::seen;
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
        place.knows(&session)?;
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

/// How what was followed came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Over {
    Completed,
    Interrupted,
    /// Why.
    Failed(String),
}

impl Over {
    /// Returns how a turn ended, if this is its end.
    fn of(event: &Value) -> Option<Self> {
        match event["type"].as_str()? {
            "turn.completed" => Some(Over::Completed),
            "turn.interrupted" => Some(Over::Interrupted),
            "turn.failed" => {
                let data = &event["data"];
                let why = data["errors"].as_array().and_then(|all| all.first()).and_then(Value::as_str);
                let why = why.or_else(|| data["result"].as_str()).unwrap_or("no reason was given");
                Some(Over::Failed(why.to_owned()))
            }
            _ => None,
        }
    }
}

/// Shows what happens in a session, and first what waits for somebody already. Returns how it ended.
pub(super) fn follow(
    place: &KeeperPlace,
    session: &str,
    mut after: String,
    until: Until,
    answer: Answer,
    ui: &mut Ui,
) -> Result<Over, Failure> {
    let (runtime, client): (_, Client) = (runtime(Threads::One)?, place.client());
    let get = |path: String| -> Result<Value, Failure> {
        runtime.block_on(client.get(&path)).map_err(|error| explain(&error))
    };
    let mut told = Told::default();
    let mut news = waiting(session, get)?;
    loop {
        for event in &news {
            // It may have been asked after we began to listen, and before we looked at what waits.
            if !told.is_new(event, answer) {
                continue;
            }
            let over = Over::of(event).filter(
                |_| matches!(&until, Until::Turn(message) if event["data"]["message"] == message.as_str()),
            );
            match (answer, &over) {
                (Answer::Json, _) => ui.data(event.to_string().as_bytes())?,
                // Whoever waits for this turn is told by the one who called.
                (Answer::Text, Some(Over::Failed(_))) => {}
                (Answer::Text, _) => tell(event, ui)?,
            }
            ui.flush()?;
            if let Some(over) = over {
                return Ok(over);
            }
        }
        let mut page = get(format!("/events?topics=session:{session}&wait=25&after={after}"))?;
        news = match page["items"].take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        if page["resync"] == true {
            ui.warn("some of what happened was missed; `rethread show` has all of it");
            news.extend(waiting(session, get)?);
        }
        after = page["after"].as_str().unwrap_or_default().to_owned();
    }
}

/// Returns what waits for somebody in a session, as if it was asked just now.
fn waiting(session: &str, get: impl Fn(String) -> Result<Value, Failure>) -> Result<Vec<Value>, Failure> {
    let page = get(format!("/attention?state=pending&session={session}"))?;
    // The newest comes first there.
    let requests = page["items"].as_array().into_iter().flatten().rev();
    let event = |request: &Value| json!({ "topic": format!("session:{session}"), "type": "attention.requested", "data": request });
    Ok(requests.map(event).collect())
}

/// The messages and requests that were shown already.
#[derive(Debug, Default)]
struct Told(HashSet<String>);

impl Told {
    /// Returns whether an event says anything that was not shown. A message comes twice, from the agent and from its file,
    /// and the file may well be later than the end of the turn.
    fn is_new(&mut self, event: &Value, answer: Answer) -> bool {
        let data = &event["data"];
        let name = match (event["type"].as_str(), answer) {
            (Some("message.upsert"), Answer::Text) => &data["uuid"],
            (Some("attention.requested"), _) => &data["shown"]["id"],
            _ => &Value::Null,
        };
        name.as_str().is_none_or(|name| self.0.insert(name.to_owned()))
    }
}

fn tell(event: &Value, ui: &mut Ui) -> Result<(), Failure> {
    let data = &event["data"];
    match event["type"].as_str().unwrap_or_default() {
        "message.upsert" => {
            let role = data["role"].as_str().unwrap_or_default();
            for (tone, text) in words(data) {
                ui.line(tone, &format!("{role}: {text}"))?;
            }
        }
        "attention.requested" => {
            let (id, tool) = (data["shown"]["id"].as_str().unwrap_or_default(), &data["shown"]["tool_name"]);
            let asked = format!(
                "{} waits for a decision: {}",
                tool.as_str().unwrap_or_default(),
                data["shown"]["input"]
            );
            ui.line(Tone::Strong, &seen(&asked))?;
            let short = id.get(..8).unwrap_or(id);
            ui.hint(&format!("`rethread attention {short} --allow` or `--deny` answers it"));
        }
        _ => match Over::of(event) {
            Some(Over::Failed(why)) => ui.line(Tone::Strong, &format!("the turn failed: {why}"))?,
            Some(Over::Interrupted) => ui.line(Tone::Faint, "the turn was interrupted")?,
            Some(Over::Completed) | None => {}
        },
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
        // Somebody may be asked about it, here or elsewhere.
        "tool_use" => Some((Tone::Faint, seen(&format!("{} {}", text("name")?, block["input"])))),
        "tool_result" => Some((Tone::Faint, text("content").unwrap_or_else(|| block["content"].to_string()))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_shown_when_it_is_said_and_not_again_when_it_is_written_down() {
        let mut told = Told::default();
        let mut is_new = |uuid: Value, provisional: bool| {
            let data = json!({ "uuid": uuid, "provisional": provisional });
            told.is_new(&json!({ "type": "message.upsert", "data": data }), Answer::Text)
        };
        assert!(is_new(json!("a"), true));
        assert!(!is_new(json!("a"), false));
        // One that the agent never announced is shown when it is read.
        assert!(is_new(json!("b"), false));
        assert!(is_new(Value::Null, true) && is_new(Value::Null, true));
    }
}
