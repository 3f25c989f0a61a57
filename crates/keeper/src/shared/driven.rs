//! What a keeper says of a session that it drives, in the session's metadata, and what others say to it.

use jiff::{SignedDuration, Timestamp};
use rethread_store::Metadata;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::attention::{Attention, AttentionState, Verdict};
use crate::card::SessionState;
use crate::keeper::Keeper;

/// The member of the metadata that says who drives a session, or did so last.
pub(crate) const DRIVEN: &str = "driven";
/// The member that holds decisions of other keepers, by the ids of requests.
const DECISIONS: &str = "decisions";
/// How long others are told what became of a request.
const REMEMBERED: SignedDuration = SignedDuration::from_secs(120);

/// What a keeper says of a session that it drives, or drove last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Driven {
    /// The keeper: one process.
    pub(crate) keeper: String,
    /// Where its Claude Code has its files: the transcript there is as the store has it, or ahead.
    pub(crate) place: String,
    /// The machine, for people.
    pub(crate) host: String,
    pub(crate) state: SessionState,
    /// The agent's process there, and what guards it.
    #[serde(default)]
    pub(crate) pids: Vec<u32>,
    /// The lease is held: nobody else drives the session, whether anything is going on or not.
    #[serde(default)]
    pub(crate) holds: bool,
    /// What waits for a decision, and what became of requests just now.
    #[serde(default)]
    pub(crate) attention: Vec<Attention>,
    /// Somebody took over, and the agent here has ended since.
    #[serde(default)]
    pub(crate) gave_way: bool,
}

impl Driven {
    /// Returns what this keeper has to say of a session.
    pub(crate) fn here(keeper: &Keeper, session: &str, state: SessionState) -> Self {
        let since = Timestamp::now() - REMEMBERED;
        let mut attention = keeper.attention.list(None);
        let is_told = |it: &Attention| {
            it.state == AttentionState::Pending || it.decided_at.is_some_and(|decided| decided > since)
        };
        attention.retain(|it| it.shown.session_id == session && is_told(it));
        // Where secrets are kept out of the store they do not come in this way: then it is decided here.
        if !keeper.store().keeps_secrets() {
            attention.clear();
        }
        Self {
            keeper: keeper.hub.epoch().to_owned(),
            place: keeper.place.id.clone(),
            host: keeper.place.host.clone(),
            state,
            pids: keeper.drivers.get(session).map(|driver| driver.pids()).unwrap_or_default(),
            holds: true,
            attention,
            gave_way: false,
        }
    }

    /// Reads what is said of a session.
    pub(crate) fn of(metadata: &Metadata) -> Option<Self> {
        serde_json::from_value(metadata.extra.get(DRIVEN)?.clone()).ok()
    }

    /// Reads what a note in a session's log says.
    pub(crate) fn noted(note: &rethread_store::Entry) -> Option<Self> {
        #[derive(Deserialize)]
        struct Set {
            set: Said,
        }
        #[derive(Deserialize)]
        struct Said {
            driven: Driven,
        }
        note.read::<Set>().ok().map(|note| note.set.driven)
    }

    /// Says so in a session's metadata. Decisions about what is over are taken out.
    pub(crate) fn note(&self, metadata: &mut Metadata) {
        metadata.extra.insert(DRIVEN.into(), json!(self));
        let is_open = |id: &String| {
            let is_it = |it: &Attention| it.shown.id == *id && it.state == AttentionState::Pending;
            self.attention.iter().any(is_it)
        };
        if let Some(Value::Object(decisions)) = metadata.extra.get_mut(DECISIONS) {
            decisions.retain(|id, _| is_open(id));
            if decisions.is_empty() {
                metadata.extra.remove(DECISIONS);
            }
        }
    }
}

/// A decision that another keeper took, for the driving one to carry out. The first one about a request counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Proposal {
    /// Makes it one of a kind.
    pub(crate) nonce: String,
    pub(crate) digest: String,
    pub(crate) allow: bool,
    #[serde(default)]
    pub(crate) for_session: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) updated_input: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
    /// Who, and where.
    pub(crate) by: String,
}

impl Proposal {
    pub(crate) fn new(digest: &str, verdict: Verdict, by: String) -> Self {
        let nonce = uuid::Uuid::new_v4().to_string();
        let none = Self {
            nonce,
            digest: digest.to_owned(),
            allow: false,
            for_session: false,
            updated_input: None,
            message: None,
            by,
        };
        match verdict {
            Verdict::Allow { updated_input, for_session } => {
                Self { allow: true, for_session, updated_input, ..none }
            }
            Verdict::Deny { message } => Self { message, ..none },
        }
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match self.allow {
            true => {
                Verdict::Allow { updated_input: self.updated_input.clone(), for_session: self.for_session }
            }
            false => Verdict::Deny { message: self.message.clone() },
        }
    }

    /// Adds it to a session's metadata, unless somebody was faster.
    pub(crate) fn propose(&self, request: &str, metadata: &mut Metadata) {
        let decisions = metadata.extra.entry(DECISIONS.to_owned()).or_insert_with(|| json!({}));
        if let Some(decisions) = decisions.as_object_mut() {
            decisions.entry(request.to_owned()).or_insert_with(|| json!(self));
        }
    }

    /// Returns all that are there.
    pub(crate) fn all_of(metadata: &Metadata) -> Vec<(String, Self)> {
        let Some(Value::Object(decisions)) = metadata.extra.get(DECISIONS) else { return Vec::new() };
        let read =
            |(id, json): (&String, &Value)| Some((id.clone(), serde_json::from_value(json.clone()).ok()?));
        decisions.iter().filter_map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata::new("a".parse().unwrap(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn the_first_decision_about_a_request_counts_and_goes_with_it() {
        let mut metadata = metadata();
        let (allow, deny) =
            (Verdict::Allow { updated_input: None, for_session: true }, Verdict::Deny { message: None });
        let first = Proposal::new("d", deny, "ada".into());
        first.propose("r", &mut metadata);
        Proposal::new("d", allow, "mallory".into()).propose("r", &mut metadata);
        assert_eq!(Proposal::all_of(&metadata), [("r".to_owned(), first)]);
        let over = Driven {
            keeper: "k".into(),
            place: "p".into(),
            host: "h".into(),
            state: SessionState::Idle,
            pids: Vec::new(),
            holds: false,
            attention: Vec::new(),
            gave_way: false,
        };
        over.note(&mut metadata);
        assert_eq!(Proposal::all_of(&metadata), []);
        assert_eq!(Driven::of(&metadata).unwrap().place, "p");
    }
}
