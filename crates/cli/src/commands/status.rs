//! `status`: whether a keeper runs, and what it can do.

use serde_json::Value;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

#[derive(Debug)]
pub(crate) struct Status {
    answer: Answer,
}

impl From<args::Status> for Status {
    fn from(typed: args::Status) -> Self {
        Self { answer: Answer::of(typed.json) }
    }
}

impl Status {
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let place = KeeperPlace::find()?;
        let info: Value = place.ask(async |client| client.get("/info").await)?;
        if self.answer == Answer::Json {
            ui.data(info.to_string().as_bytes())?;
            return Ok(Done::Fully);
        }
        let address = std::fs::read_to_string(place.home.join("address")).unwrap_or_default();
        let sessions = count(info["sessions"].as_u64().unwrap_or(0), "session");
        let (pid, since) = (&info["pid"], info["started_at"].as_str().unwrap_or_default());
        ui.line(
            Tone::Plain,
            &format!(
                "The keeper runs at {} with {sessions}, as process {pid} since {since}.",
                address.trim()
            ),
        )?;
        if info["demo"] == true {
            ui.line(
                Tone::Strong,
                "It is a demonstration: its agent is a script, its project a temporary folder.",
            )?;
        }
        let agent = &info["agent"];
        let line = match (agent["program"].as_str(), agent["missing"].as_str()) {
            (Some(program), _) => {
                format!("It drives {program} {}.", agent["version"].as_str().unwrap_or_default())
            }
            (None, Some(missing)) => format!("It only reads: {missing}"),
            (None, None) => "It only reads.".into(),
        };
        ui.line(Tone::Plain, &line)?;
        Ok(Done::Fully)
    }
}
