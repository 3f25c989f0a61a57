//! Somebody who looks at a keeper.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::machine::Machine;

/// Somebody who looks at everything a keeper shows, for as long as it is there and when it is there again.
#[derive(Default)]
pub(super) struct Watcher {
    /// What is known to have been said, by session.
    pub(super) said: BTreeMap<String, Vec<String>>,
    /// How often each message was told as final since the last look at the whole, by keeper's life.
    pub(super) told: HashMap<(String, String, String), usize>,
    epoch: String,
    after: Option<String>,
}

impl Watcher {
    /// Hears what is new; reads everything where that is not told any more.
    pub(super) fn look(&mut self, machine: &Machine) {
        let after = self.after.clone().map(|after| format!("&after={after}")).unwrap_or_default();
        let Ok(page) = machine.get(&format!("/events?topics=all&wait=1{after}")) else {
            std::thread::sleep(Duration::from_millis(50));
            return;
        };
        let is_first = self.after.is_none();
        self.after = page["after"].as_str().map(str::to_owned);
        if is_first || page["resync"] == true {
            self.epoch =
                self.after.as_deref().unwrap_or_default().split(':').next().unwrap_or_default().to_owned();
            return self.read_all(machine);
        }
        for event in page["items"].as_array().unwrap() {
            let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
            let session =
                event["topic"].as_str().unwrap_or_default().trim_start_matches("session:").to_owned();
            let uuid = data["uuid"].as_str().unwrap_or_default().to_owned();
            match kind {
                "message.upsert" => {
                    let said = self.said.entry(session.clone()).or_default();
                    if !said.contains(&uuid) {
                        said.push(uuid.clone());
                    }
                    if data["provisional"] == false {
                        *self.told.entry((self.epoch.clone(), session, uuid)).or_default() += 1;
                    }
                }
                "message.dropped" => self.said.entry(session).or_default().retain(|known| *known != uuid),
                _ => {}
            }
        }
    }

    fn read_all(&mut self, machine: &Machine) {
        let Ok(listed) = machine.get("/sessions?limit=500") else {
            self.after = None;
            return;
        };
        self.said.clear();
        for card in listed["items"].as_array().unwrap() {
            let id = card["session_id"].as_str().unwrap();
            self.said.insert(id.to_owned(), machine.said(id));
        }
    }
}
