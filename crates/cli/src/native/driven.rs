//! What a keeper that runs knows better of a session than its files do.

use std::collections::HashMap;

use rethread_keeper::{Error, SessionCard};
use serde::Deserialize;

use crate::keeper_place::KeeperPlace;

/// States that only who drives a session knows.
const STATES: [&str; 4] = ["pending", "running", "waiting", "failed"];

/// The sessions that a keeper is at work on, by their ids; none if no keeper runs.
#[derive(Debug, Default)]
pub(crate) struct Driven(HashMap<String, SessionCard>);

#[derive(Deserialize)]
struct Page {
    items: Vec<SessionCard>,
}

impl Driven {
    /// Asks the keeper, if one runs. A list is no place to complain about it.
    pub(crate) fn find() -> Self {
        let Ok(place) = KeeperPlace::find() else { return Self::default() };
        let cards = place.ask(async |client| {
            let mut all = HashMap::new();
            for state in STATES {
                let page: Page =
                    client.get(&format!("/sessions?home=native&limit=500&state={state}")).await?;
                all.extend(page.items.into_iter().map(|card| (card.session_id.clone(), card)));
            }
            Ok::<_, Error>(all)
        });
        Self(cards.unwrap_or_default())
    }

    pub(crate) fn get(&self, session: &str) -> Option<&SessionCard> {
        self.0.get(session)
    }

    /// Takes what has no file yet.
    pub(crate) fn take_pending(&mut self) -> Vec<SessionCard> {
        let pending = self.0.extract_if(|_, card| card.state == rethread_keeper::SessionState::Pending);
        pending.map(|(_, card)| card).collect()
    }
}
