//! `attention`: what waits for a person, and their answers.

use rethread_keeper::Attention as Request;
use serde::Deserialize;
use serde_json::json;

use crate::age::age;
use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::named::ambiguous;
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
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let place = KeeperPlace::find()?;
        let path = if self.typed.all { "/attention" } else { "/attention?state=pending" };
        let page: Page = place.ask(async |client| client.get(path).await)?;
        match &self.typed.id {
            Some(id) => self.decide(&place, id, page.items, ui),
            None => list(&page.items, Answer::of(self.typed.json), ui),
        }
    }

    fn decide(&self, place: &KeeperPlace, id: &str, all: Vec<Request>, ui: &mut Ui) -> Result<Done, Failure> {
        let mut found: Vec<Request> =
            all.into_iter().filter(|request| request.shown.id.starts_with(id)).collect();
        let request = match found.len() {
            0 => {
                return Err(Failure::failed(
                    format!("nothing that begins with {id} waits"),
                    "`rethread attention` shows what does",
                ));
            }
            1 => found.remove(0),
            count => {
                return Err(ambiguous("requests", id, found.iter().map(|it| it.shown.id.clone()), count));
            }
        };
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
        ui.say(&format!("{word}: {}.", decided.shown.tool_name));
        Ok(Done::Fully)
    }
}

fn list(all: &[Request], answer: Answer, ui: &mut Ui) -> Result<Done, Failure> {
    if answer == Answer::Json {
        let lines = all.iter().map(|request| serde_json::to_vec(request).unwrap_or_default());
        lines.into_iter().try_for_each(|line| ui.data(&line))?;
        return Ok(Done::Fully);
    }
    let now = jiff::Timestamp::now();
    for request in all {
        let shown = &request.shown;
        let state = serde_json::to_value(request.state).unwrap_or_default();
        let (id, old) = (shown.id.get(..8).unwrap_or(&shown.id), age(request.requested_at, now));
        ui.line(
            Tone::Strong,
            &format!("{id}  {old}  {}  {}", state.as_str().unwrap_or_default(), shown.tool_name),
        )?;
        ui.line(
            Tone::Faint,
            &format!("  session {} in {}", shown.session_id, shown.cwd.as_deref().unwrap_or("-")),
        )?;
        if request.hidden_characters {
            ui.line(Tone::Strong, "  there are characters in it that nobody sees")?;
        }
        // All of it: what is cut off here could be what matters. What no terminal should get is made visible.
        let input = serde_json::to_string_pretty(&shown.input).unwrap_or_default();
        let input = seen(&input);
        input.lines().try_for_each(|line| ui.line(Tone::Plain, &format!("  {line}")))?;
    }
    match all.is_empty() {
        true => ui.say("Nothing waits for you."),
        false => ui.hint("`rethread attention ID --allow` or `--deny` answers one"),
    }
    Ok(Done::Fully)
}

/// Returns text with everything in it that nobody sees written out.
fn seen(text: &str) -> String {
    let seen = text.chars().map(|letter| match rethread_keeper::is_hidden(letter) {
        true => format!("\\u{{{:04x}}}", u32::from(letter)),
        false => letter.to_string(),
    });
    seen.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_sees_is_written_out() {
        assert_eq!(seen("rm\u{200b} -rf\u{202e} x\n\tü"), "rm\\u{200b} -rf\\u{202e} x\n\tü");
    }
}
