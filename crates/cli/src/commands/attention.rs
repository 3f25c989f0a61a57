//! `attention`: what waits for a person, and their answers.

use rethread_keeper::{Attention as Request, AttentionState};
use serde::Deserialize;
use serde_json::json;

use crate::age::age;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, named};
use crate::keeper_place::KeeperPlace;
use crate::named::ambiguous;
use crate::text::{one_line, seen};
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Attention {
    typed: args::Attention,
}

impl From<args::Attention> for Attention {
    fn from(typed: args::Attention) -> Self {
        Self { typed }
    }
}

#[derive(Deserialize)]
struct Page {
    items: Vec<Request>,
}

impl Attention {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let place = KeeperPlace::find()?;
        let page: Page = place.ask(async |client| client.get("/attention").await)?;
        if !self.typed.json {
            place.label(ui);
        }
        if let Some(id) = &self.typed.id {
            return self.decide(&place, id, page.items, context, ui);
        }
        let shown: Vec<&Request> =
            page.items.iter().filter(|it| self.typed.all || needs_somebody(it, &page.items)).collect();
        list(&shown, Answer::of(self.typed.json), context, ui)
    }

    fn decide(
        &self,
        place: &KeeperPlace,
        id: &str,
        all: Vec<Request>,
        context: &Context,
        ui: &mut Ui,
    ) -> Result<Done, Failure> {
        let request = find(id, all)?;
        if request.state == AttentionState::Lost {
            // The keeper's own name for a request that nobody can answer any more.
            let over = named("already-decided", "Conflict", 409);
            let message =
                format!("request {} was lost with its keeper: nothing waits for an answer", short(&request));
            return Err(Failure::known(over, message, Some(asks_again(&request.shown.session_id, context))));
        }
        let typed = &self.typed;
        let body = json!({
            "decision": if typed.allow { "allow" } else { "deny" }, "scope": if typed.session { "session" } else { "once" },
            "message": typed.message, "shown_digest": request.digest,
        });
        let path = format!("/attention/{}/decision", request.shown.id);
        let decided: Request = place.ask(async |client| client.post(&path, &body).await)?;
        if typed.json {
            ui.data(&serde_json::to_vec(&decided).unwrap_or_default())?;
            return Ok(Done::Fully);
        }
        let word = if typed.allow { "Allowed" } else { "Denied" };
        ui.say(&format!("{word}: {}.", seen(&decided.shown.tool_name)));
        Ok(Done::Fully)
    }
}

/// Finds the one request that is meant: among those that wait, and if none of them is, among those that are over.
fn find(id: &str, mut all: Vec<Request>) -> Result<Request, Failure> {
    all.retain(|request| request.shown.id.starts_with(id));
    if all.iter().any(|request| request.state == AttentionState::Pending) {
        all.retain(|request| request.state == AttentionState::Pending);
    }
    match all.len() {
        0 => {
            let message = format!("nothing that begins with {id} waits");
            let hint = Some("`rethread attention` shows what does".to_owned());
            Err(Failure::known(named("not-found", "Not Found", 404), message, hint))
        }
        1 => Ok(all.remove(0)),
        count => Err(ambiguous("requests", id, all.iter().map(|it| it.shown.id.clone()), count)),
    }
}

/// Returns whether a person has something to do: to answer, or to have it asked again.
fn needs_somebody(request: &Request, all: &[Request]) -> bool {
    match request.state {
        AttentionState::Pending => true,
        AttentionState::Lost => !all.iter().any(|other| repeats(other, request)),
        _ => false,
    }
}

/// Returns whether a request asks again what was lost. One that was lost several times is linked to only one of them.
fn repeats(other: &Request, lost: &Request) -> bool {
    let is_same = || {
        let (other, lost) = (&other.shown, &lost.shown);
        other.session_id == lost.session_id && other.tool_name == lost.tool_name && other.input == lost.input
    };
    other.repeats.as_ref() == Some(&lost.shown.id)
        || (other.repeats.is_some() && other.requested_at > lost.requested_at && is_same())
}

fn list(all: &[&Request], answer: Answer, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    if answer == Answer::Json {
        let lines = all.iter().map(|request| serde_json::to_vec(request).unwrap_or_default());
        lines.into_iter().try_for_each(|line| ui.data(&line))?;
        return Ok(Done::Fully);
    }
    let now = jiff::Timestamp::now();
    all.iter().try_for_each(|request| tell(request, now, ui))?;
    let in_state = |state| all.iter().filter(move |request| request.state == state);
    if all.is_empty() {
        ui.say("Nothing waits for you.");
    }
    if in_state(AttentionState::Pending).next().is_some() {
        ui.hint("`rethread attention ID --allow` or `--deny` answers one");
    }
    // One that was asked again since is listed for whoever wants to know all, and needs nothing any more.
    let mut lost =
        in_state(AttentionState::Lost).filter(|lost| !all.iter().any(|other| repeats(other, lost)));
    if let Some(first) = lost.next() {
        let session = &first.shown.session_id;
        ui.hint(&match lost.all(|other| other.shown.session_id == *session) {
            true => asks_again(session, context),
            false => {
                format!("{} continues a session, and it asks again", context.command("send SESSION \"…\""))
            }
        });
    }
    Ok(Done::Fully)
}

/// Shows one request, all of it: what is cut off here could be what matters.
fn tell(request: &Request, now: jiff::Timestamp, ui: &mut Ui) -> Result<(), Failure> {
    let shown = &request.shown;
    let state = serde_json::to_value(request.state).unwrap_or_default();
    let (state, old) = (state.as_str().unwrap_or_default(), age(request.requested_at, now));
    ui.line(Tone::Strong, &format!("{}  {old}  {state}  {}", short(request), on_a_line(&shown.tool_name)))?;
    let cwd = shown.cwd.as_deref().unwrap_or("-");
    ui.line(Tone::Faint, &format!("  session {} in {}", shown.session_id, on_a_line(cwd)))?;
    if request.state == AttentionState::Lost {
        ui.line(Tone::Strong, "  the keeper went away before anybody answered, and nothing was allowed")?;
    }
    if let Some(lost) = &request.repeats {
        ui.line(Tone::Plain, &format!("  asked again: {} was lost with its keeper", beginning(lost)))?;
    }
    if let Some(agent) = &shown.agent_id {
        ui.line(Tone::Plain, &format!("  subagent {} asks", on_a_line(agent)))?;
    }
    if let Some(description) = &shown.description {
        ui.line(Tone::Plain, &format!("  for: {}", on_a_line(description)))?;
    }
    if request.hidden_characters {
        ui.line(Tone::Strong, "  there are characters in it that nobody sees")?;
    }
    let input = serde_json::to_string_pretty(&shown.input).unwrap_or_default();
    seen(&input).lines().try_for_each(|line| ui.line(Tone::Plain, &format!("  {line}")))
}

/// Returns what to do about a request that was lost.
fn asks_again(session: &str, context: &Context) -> String {
    let command = context.command(&format!("send {} \"…\"", context.short_of(session)));
    format!("{command} continues it, and it asks again")
}

/// Returns words of the model's that cannot pass for a line of ours.
fn on_a_line(text: &str) -> String {
    one_line(&seen(text), usize::MAX)
}

fn short(request: &Request) -> &str {
    beginning(&request.shown.id)
}

fn beginning(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn request(id: &str, at: &str, state: &str, repeats: Option<&str>) -> Request {
        let shown: Value = json!({ "id": id, "session_id": "s", "cwd": null, "tool_name": "Bash", "input": { "command": "ls" },
            "description": null, "agent_id": null });
        let request = json!({ "shown": shown, "digest": "", "state": state, "tool_use_id": "t", "message": null,
            "requested_at": at, "decided_at": null, "decided_by": null, "updated_input": null, "repeats": repeats,
            "hidden_characters": false, "suggestions": [] });
        serde_json::from_value(request).unwrap()
    }

    #[test]
    fn what_was_lost_twice_needs_nobody_once_it_is_asked_a_third_time() {
        let mut all = vec![
            request("a", "2026-01-01T00:00:01Z", "lost", None),
            request("b", "2026-01-01T00:00:02Z", "lost", Some("a")),
        ];
        let needed = |all: &[Request]| -> Vec<String> {
            all.iter().filter(|it| needs_somebody(it, all)).map(|it| it.shown.id.clone()).collect()
        };
        assert_eq!(needed(&all), ["b"]);
        // It is linked to either of them.
        all.push(request("c", "2026-01-01T00:00:03Z", "denied", Some("a")));
        assert_eq!(needed(&all), [""; 0]);
    }
}
