//! Somebody who looks at a keeper.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{self, Message, WebSocket};

use super::machine::Machine;

/// How somebody hears what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ears {
    LongPoll,
    /// A stream that is cut now and then, and goes on where it was.
    WebSocket,
}

/// Somebody who looks at everything a keeper shows, for as long as it is there and when it is there again. What is known
/// is what the page would show.
pub(super) struct Watcher {
    pub(super) ears: Ears,
    /// What is known to have been said, by session.
    pub(super) said: BTreeMap<String, Vec<String>>,
    /// What lists show, by home and session.
    pub(super) cards: BTreeMap<(String, String), Value>,
    /// What was asked, and what became of it.
    pub(super) requests: BTreeMap<String, String>,
    /// Turns that have begun and not ended: session and message.
    pub(super) turns: BTreeSet<(String, String)>,
    /// What can happen once only, and how often it was told: by keeper's life, session and message, request or turn.
    pub(super) told: HashMap<[String; 4], usize>,
    /// The kinds of events that were heard.
    pub(super) kinds: BTreeSet<String>,
    epoch: String,
    seq: Option<u64>,
    socket: Option<WebSocket<TcpStream>>,
}

impl Watcher {
    pub(super) fn new(ears: Ears) -> Self {
        Self {
            ears,
            said: BTreeMap::new(),
            cards: BTreeMap::new(),
            requests: BTreeMap::new(),
            turns: BTreeSet::new(),
            told: HashMap::new(),
            kinds: BTreeSet::new(),
            epoch: String::new(),
            seq: None,
            socket: None,
        }
    }

    /// Hears what is new; reads everything where that is not told any more. Returns whether there was something.
    pub(super) fn look(&mut self, machine: &Machine) -> bool {
        let heard = match self.ears {
            Ears::LongPoll => self.poll(machine),
            Ears::WebSocket => self.listen(machine),
        };
        if heard.is_none() {
            self.socket = None;
            std::thread::sleep(Duration::from_millis(50));
        }
        heard.unwrap_or(false)
    }

    /// `None` if nobody answers.
    fn poll(&mut self, machine: &Machine) -> Option<bool> {
        let after = self.seq.map(|seq| format!("&after={}:{seq}", self.epoch)).unwrap_or_default();
        let page = machine.get(&format!("/events?topics=all&wait=1{after}")).ok()?;
        let is_first = self.seq.is_none();
        let (epoch, seq) = page["after"].as_str()?.split_once(':')?;
        (self.epoch, self.seq) = (epoch.to_owned(), seq.parse().ok());
        if is_first || page["resync"] == true {
            return self.read_all(machine).map(|()| true);
        }
        let events = page["items"].as_array()?;
        events.iter().for_each(|event| self.hear(event));
        Some(!events.is_empty())
    }

    fn listen(&mut self, machine: &Machine) -> Option<bool> {
        if self.socket.is_none() {
            let mut socket = connect(machine)?;
            let after = self.seq.map(|seq| json!({ "epoch": self.epoch, "seq": seq }));
            let word = json!({ "type": "subscribe", "topics": ["all"], "after": after });
            socket.send(Message::text(word.to_string())).ok()?;
            self.socket = Some(socket);
        }
        let frame = match self.socket.as_mut()?.read() {
            Ok(message) if message.is_text() => {
                serde_json::from_str::<Value>(message.to_text().ok()?).ok()?
            }
            Ok(_) => return Some(false),
            Err(tungstenite::Error::Io(error)) if is_silence(&error) => return Some(false),
            Err(_) => return None,
        };
        match frame["type"].as_str()? {
            "heartbeat" => return Some(false),
            kind @ ("resync" | "caught_up") => {
                let is_first = self.seq.is_none();
                (self.epoch, self.seq) = (frame["epoch"].as_str()?.to_owned(), frame["data"]["seq"].as_u64());
                if is_first || kind == "resync" {
                    self.read_all(machine)?;
                }
            }
            _ => {
                self.seq = frame["seq"].as_u64().or(self.seq);
                self.hear(&frame);
                if fastrand::u8(..100) == 0 {
                    self.socket = None;
                }
            }
        }
        Some(true)
    }

    fn hear(&mut self, event: &Value) {
        let (kind, data) = (event["type"].as_str().unwrap(), &event["data"]);
        let session = event["topic"].as_str().unwrap_or_default().trim_start_matches("session:").to_owned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        self.kinds.insert(kind.to_owned());
        match kind {
            "message.upsert" => {
                let uuid = text(&data["uuid"]);
                let said = self.said.entry(session.clone()).or_default();
                if !said.contains(&uuid) {
                    said.push(uuid.clone());
                }
                if data["provisional"] == false {
                    self.count(kind, session, uuid);
                }
            }
            "message.dropped" => {
                let uuid = text(&data["uuid"]);
                self.said.entry(session).or_default().retain(|known| *known != uuid);
            }
            "session.created" | "session.updated" => {
                self.cards.insert((text(&data["home"]), session), data.clone());
            }
            "session.removed" => drop(self.cards.remove(&(text(&data["home"]), session))),
            "session.state" => {
                let card = self.cards.get_mut(&("native".to_owned(), session));
                if let (Some(card), Some(state)) = (card, data.get("state")) {
                    card["state"] = state.clone();
                }
            }
            "attention.requested" => {
                let id = text(&data["shown"]["id"]);
                self.requests.insert(id.clone(), text(&data["state"]));
                self.count(kind, session, id);
            }
            "attention.decided" | "attention.lost" | "attention.withdrawn" => {
                let id = text(data.get("id").unwrap_or(&data["shown"]["id"]));
                let state = text(&data["state"]);
                let was = self.requests.insert(id.clone(), state.clone());
                // What was taken for lost may turn out to have been decided just before its keeper died.
                let is_corrected = was.is_some_and(|was| was == "lost") && state != "lost";
                self.count(if is_corrected { "attention.corrected" } else { "attention.over" }, session, id);
            }
            "turn.started" => {
                let message = text(&data["message"]);
                self.turns.insert((session.clone(), message.clone()));
                self.count(kind, session, message);
            }
            "turn.completed" | "turn.failed" | "turn.interrupted" => {
                let message = text(&data["message"]);
                self.turns.remove(&(session.clone(), message.clone()));
                self.count("turn.over", session, message);
            }
            _ => {}
        }
    }

    fn count(&mut self, what: &str, session: String, id: String) {
        *self.told.entry([self.epoch.clone(), what.to_owned(), session, id]).or_default() += 1;
    }

    fn read_all(&mut self, machine: &Machine) -> Option<()> {
        // Not known until it was read to the end.
        let seq = self.seq.take();
        self.cards = listed(machine)?;
        self.requests = requests(machine)?;
        self.turns.clear();
        self.said.clear();
        for (_, session) in self.cards.keys() {
            // One that did not answer has not said that there is nothing.
            let page = machine.get(&format!("/sessions/{session}/messages?limit=500")).ok()?;
            let uuids =
                page["items"].as_array()?.iter().map(|item| item["uuid"].as_str().unwrap_or_default());
            self.said.insert(session.clone(), uuids.map(str::to_owned).collect());
        }
        self.seq = seq;
        Some(())
    }
}

/// Returns what a keeper lists, by home and session.
pub(super) fn listed(machine: &Machine) -> Option<BTreeMap<(String, String), Value>> {
    let listed = machine.get("/sessions?limit=500").ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let by_name = |card: &Value| ((text(&card["home"]), text(&card["session_id"])), card.clone());
    Some(listed["items"].as_array()?.iter().map(by_name).collect())
}

/// Returns what was asked, and what became of it.
pub(super) fn requests(machine: &Machine) -> Option<BTreeMap<String, String>> {
    let page = machine.get("/attention").ok()?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let by_id = |it: &Value| (text(&it["shown"]["id"]), text(&it["state"]));
    Some(page["items"].as_array()?.iter().map(by_id).collect())
}

fn connect(machine: &Machine) -> Option<WebSocket<TcpStream>> {
    let read = |name: &str| fs::read_to_string(machine.home.join("rethread/keeper").join(name)).ok();
    let (address, token) = (read("address")?, read("token")?);
    let host = address.trim().trim_start_matches("http://");
    let stream = TcpStream::connect(host).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(1))).ok()?;
    let mut request = format!("ws://{host}/api/v1/stream").into_client_request().ok()?;
    request.headers_mut().insert("authorization", format!("Bearer {}", token.trim()).parse().ok()?);
    Some(tungstenite::client(request, stream).ok()?.0)
}

fn is_silence(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut)
}
