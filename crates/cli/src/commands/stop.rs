//! `stop`: ends the keeper.

use std::time::Duration;

use rethread_keeper::Error;
use serde_json::{Value, json};

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::ui::Ui;

/// How long it may take.
const PATIENCE: u32 = 600;
const PERIOD: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Stop;

impl From<args::Stop> for Stop {
    fn from(_: args::Stop) -> Self {
        Self
    }
}

impl Stop {
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let place = KeeperPlace::find()?;
        place.ask(async |client| client.post::<Value>("/stop", &json!({})).await)?;
        // It is over when nobody holds its lock any more.
        let lock = std::fs::File::open(place.home.join("lock"));
        for _ in 0..PATIENCE {
            if lock.as_ref().is_ok_and(|lock| lock.try_lock_shared().is_ok()) {
                ui.say("The keeper has ended.");
                return Ok(Done::Fully);
            }
            std::thread::sleep(PERIOD);
        }
        Err(crate::keeper_place::explain(&Error::RunsAlready { what: "keeper", pid: 0 }))
    }
}
