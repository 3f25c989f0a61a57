//! What is known about a session without reading its conversation.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{EntryId, SessionId};

/// What is known about a session: the fold of its notes and counts.
///
/// Fields that this version does not know are kept in `extra` and written back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// The session's id.
    #[serde(alias = "id", alias = "sessionId")]
    pub session_id: SessionId,
    /// The repository root of the working directory, else that directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The canonical working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The model that answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who serves the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// A person's name for the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The beginning of the first thing a person said in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
    /// When the session began.
    pub created_at: Timestamp,
    /// When its last entry was made; its beginning as long as it has none.
    pub updated_at: Timestamp,
    /// How many entries the active chain has, inherited ones included.
    #[serde(default)]
    pub message_count: u64,
    /// How many entries this session's own log holds, on all branches.
    #[serde(default)]
    pub entry_count: u64,
    /// How many turns the agent took.
    #[serde(default)]
    pub turn_count: u64,
    /// How many tokens it used.
    #[serde(default)]
    pub total_tokens: u64,
    /// What it cost.
    #[serde(default)]
    pub total_cost_usd: f64,
    /// Why the agent stopped, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_reason: Option<String>,
    /// Labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Put away: not offered by "latest", listed only when asked for.
    #[serde(default)]
    pub archived: bool,
    /// The agent that this session belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    /// The session that this one was forked from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_id: Option<SessionId>,
    /// The parent's entry at which it was forked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork_message_id: Option<EntryId>,
    /// A fork that remembers its parent without inheriting its conversation.
    #[serde(default)]
    pub detached: bool,
    /// A detached fork made for a subagent.
    #[serde(default)]
    pub child: bool,
    /// A digest: a detached fork that holds a summary of a conversation.
    #[serde(default)]
    pub is_checkpoint: bool,
    /// When it went to the trash, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trashed_at: Option<Timestamp>,
    /// Everything else, as it came.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Members that follow from the log itself and that no update may set.
const DERIVED: [&str; 6] =
    ["session_id", "created_at", "first_prompt", "message_count", "entry_count", "trashed_at"];

impl Metadata {
    /// Returns the metadata of a session that has just begun.
    pub fn new(session_id: SessionId, now: Timestamp) -> Self {
        Self {
            session_id,
            project: None,
            cwd: None,
            model: None,
            provider: None,
            name: None,
            first_prompt: None,
            created_at: now,
            updated_at: now,
            message_count: 0,
            entry_count: 0,
            turn_count: 0,
            total_tokens: 0,
            total_cost_usd: 0.0,
            exit_reason: None,
            tags: Vec::new(),
            archived: false,
            agent_name: None,
            parent_id: None,
            fork_message_id: None,
            detached: false,
            child: false,
            is_checkpoint: false,
            trashed_at: None,
            extra: Map::new(),
        }
    }

    /// Returns the members in which `after` differs, `null` for those it no longer has.
    pub(crate) fn changes_to(&self, after: &Metadata) -> Map<String, Value> {
        let (before, after) = (self.to_map(), after.to_map());
        let mut set = Map::new();
        for (name, value) in &after {
            if before.get(name) != Some(value) && !DERIVED.contains(&name.as_str()) {
                set.insert(name.clone(), value.clone());
            }
        }
        for name in before.keys() {
            if !after.contains_key(name) && !DERIVED.contains(&name.as_str()) {
                set.insert(name.clone(), Value::Null);
            }
        }
        set
    }

    /// Sets members; one of an unexpected type is kept in `extra` rather than lost.
    pub(crate) fn apply(&mut self, set: &Map<String, Value>) {
        let mut whole = self.to_map();
        for (name, value) in set {
            if name == "session_id" {
                continue;
            }
            let former =
                if value.is_null() { whole.remove(name) } else { whole.insert(name.clone(), value.clone()) };
            if let Ok(metadata) = serde_json::from_value(Value::Object(whole.clone())) {
                *self = metadata;
                continue;
            }
            match former {
                Some(former) => whole.insert(name.clone(), former),
                None => whole.remove(name),
            };
            whole.insert(format!("unread_{name}"), value.clone());
        }
        if let Ok(metadata) = serde_json::from_value(Value::Object(whole)) {
            *self = metadata;
        }
    }

    /// Returns the members as JSON.
    pub(crate) fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata() -> Metadata {
        Metadata::new("s".parse().unwrap(), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_change_and_its_application_agree() {
        let before = metadata();
        let mut after = before.clone();
        after.name = Some("n".into());
        after.tags = vec!["x".into()];
        after.extra.insert("ours".into(), 7.into());
        let mut applied = before.clone();
        applied.apply(&before.changes_to(&after));
        assert_eq!(applied, after);
        applied.apply(&after.changes_to(&before));
        assert_eq!(applied, before);
    }

    #[test]
    fn derived_members_cannot_be_set_by_an_update() {
        let before = metadata();
        let mut after = before.clone();
        after.message_count = 99;
        after.created_at = Timestamp::now();
        assert!(before.changes_to(&after).is_empty());
    }

    #[test]
    fn a_member_of_an_unexpected_type_is_kept_and_harms_no_other() {
        let mut applied = metadata();
        let set = serde_json::json!({"archived": "maybe", "name": "n"});
        applied.apply(set.as_object().unwrap());
        assert_eq!(applied.name.as_deref(), Some("n"));
        assert_eq!(applied.extra["unread_archived"], "maybe");
    }
}
