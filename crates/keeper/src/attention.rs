//! Tool calls that wait for a person: written down before anybody sees them, decided once, and never by silence.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use utoipa::ToSchema;

use crate::credentials::hex;
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::hidden::is_hidden;
use crate::private_file;

/// How many requests that are over are remembered.
const REMEMBERED: usize = 1000;
/// How many lines for each of them the journal may have before it is written anew.
const LINES: usize = 8;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttentionState {
    /// Somebody has to decide.
    Pending,
    /// Somebody allowed it.
    Allowed,
    /// Somebody denied it.
    Denied,
    /// The agent no longer needs an answer.
    Withdrawn,
    /// The keeper died before anybody decided; the agent took that for a no.
    Lost,
}

/// What a person is shown, to the letter: a decision names the digest of this.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Shown {
    /// The request.
    pub id: String,
    /// The session that asks.
    pub session_id: String,
    /// Where it works.
    pub cwd: Option<String>,
    /// The tool.
    pub tool_name: String,
    /// What it is to be called with, all of it.
    #[schema(value_type = serde_json::Value)]
    pub input: Value,
    /// What the model says that it is for.
    pub description: Option<String>,
    /// The subagent that asks.
    pub agent_id: Option<String>,
}

impl Shown {
    /// Returns the digest of exactly this.
    pub fn digest(&self) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        hex(&Sha256::digest(json))
    }
}

/// A request for a decision.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Attention {
    /// What is asked.
    pub shown: Shown,
    /// The digest of it, to be sent with the decision.
    pub digest: String,
    /// What became of it.
    pub state: AttentionState,
    /// The call's id in the conversation.
    pub tool_use_id: String,
    /// The prompt whose turn it is.
    pub message: Option<String>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub requested_at: Timestamp,
    /// When it was decided, or was over.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub decided_at: Option<Timestamp>,
    /// Who decided.
    pub decided_by: Option<String>,
    /// The input that it was allowed with instead.
    #[schema(value_type = Option<serde_json::Value>)]
    pub updated_input: Option<Value>,
    /// A lost request that this one asks again.
    pub repeats: Option<String>,
    /// There are characters in it that nobody sees, or that turn text around.
    pub hidden_characters: bool,
    /// Rules by which Claude Code would not ask again.
    #[schema(value_type = Vec<Object>)]
    pub suggestions: Vec<Value>,
}

/// A decision.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    Allow { updated_input: Option<Value>, for_session: bool },
    Deny { message: Option<String> },
}

impl Verdict {
    /// Returns what a request is once this was said of it.
    pub(crate) fn state(&self) -> AttentionState {
        match self {
            Verdict::Allow { .. } => AttentionState::Allowed,
            Verdict::Deny { .. } => AttentionState::Denied,
        }
    }
}

/// Why a decision was not taken.
#[derive(Debug)]
pub(crate) enum Undecided {
    Unknown,
    /// It is not what was shown.
    Changed(Box<Attention>),
    /// It is over already.
    Over(Box<Attention>),
    /// Another keeper has to carry it out, and has not said that it did.
    Unheard,
    Failed(Error),
}

/// All requests.
#[derive(Debug)]
pub(crate) struct Attentions {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    journal: File,
    /// The last line may not be whole.
    is_torn: bool,
    all: HashMap<String, Attention>,
    /// In the order they came.
    order: Vec<String>,
    /// How many lines the journal has.
    lines: usize,
    /// How many requests that are over are remembered.
    remembered: usize,
    waiting: HashMap<String, oneshot::Sender<Verdict>>,
}

impl Attentions {
    /// Reads the journal. What was pending when its keeper died is lost; returns which.
    pub(crate) fn open(home: &Path) -> Result<(Self, Vec<Attention>)> {
        Self::remembering(REMEMBERED, home)
    }

    fn remembering(remembered: usize, home: &Path) -> Result<(Self, Vec<Attention>)> {
        let path = home.join("attention.jsonl");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            // It is about to be written anew: what cannot be read must not be lost.
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        let (mut all, mut order): (HashMap<String, Attention>, Vec<String>) = Default::default();
        // The last word on a request counts; a line that was cut was never answered for.
        let lines = bytes.split(|byte| *byte == b'\n');
        for attention in lines.filter_map(|line| serde_json::from_slice::<Attention>(line).ok()) {
            let id = attention.shown.id.clone();
            if all.insert(id.clone(), attention).is_none() {
                order.push(id);
            }
        }
        let mut lost = Vec::new();
        for attention in all.values_mut().filter(|it| it.state == AttentionState::Pending) {
            (attention.state, attention.decided_at) = (AttentionState::Lost, Some(Timestamp::now()));
            lost.push(attention.clone());
        }
        let journal = private_file::append(&path).map_err(Error::io("open", &path))?;
        let waiting = HashMap::new();
        let mut state = State { journal, is_torn: false, all, order, lines: 0, remembered, waiting };
        state.forget();
        state.write_anew(&path)?;
        Ok((Self { path, state: Mutex::new(state) }, lost))
    }

    /// Writes a request down, durably, and returns where its decision will come from. Only then may it be shown.
    pub(crate) fn request(
        &self,
        mut attention: Attention,
    ) -> Result<(Attention, oneshot::Receiver<Verdict>)> {
        let mut state = self.state();
        let same = |other: &&Attention| {
            other.state == AttentionState::Lost
                && other.shown.session_id == attention.shown.session_id
                && other.shown.tool_name == attention.shown.tool_name
                && other.shown.input == attention.shown.input
        };
        attention.repeats = state.all.values().filter(same).map(|lost| lost.shown.id.clone()).next();
        attention.digest = attention.shown.digest();
        attention.hidden_characters = has_hidden(&attention.shown.input);
        if !Defect::ShowBeforeTheJournal.is_on() {
            self.write(&mut state, &attention)?;
        }
        let (decide, decision) = oneshot::channel();
        let id = attention.shown.id.clone();
        state.waiting.insert(id, decide);
        self.remember(&mut state, attention.clone());
        Ok((attention, decision))
    }

    /// Takes a decision, if it is the first one and about what is really asked.
    pub(crate) fn decide(
        &self,
        id: &str,
        digest: &str,
        verdict: Verdict,
        by: &str,
    ) -> Result<Attention, Undecided> {
        let mut state = self.state();
        let Some(attention) = state.all.get(id).cloned() else { return Err(Undecided::Unknown) };
        if attention.digest != digest && !Defect::DecideUnseen.is_on() {
            return Err(Undecided::Changed(Box::new(attention)));
        }
        if attention.state != AttentionState::Pending && !Defect::DecideTwice.is_on() {
            return Err(Undecided::Over(Box::new(attention)));
        }
        let updated_input = match &verdict {
            Verdict::Allow { updated_input, .. } => updated_input.clone(),
            Verdict::Deny { .. } => None,
        };
        let decided = Attention {
            state: verdict.state(),
            decided_at: Some(Timestamp::now()),
            decided_by: Some(by.to_owned()),
            updated_input,
            ..attention
        };
        // Written down before the agent hears of it.
        self.write(&mut state, &decided).map_err(Undecided::Failed)?;
        state.all.insert(id.to_owned(), decided.clone());
        if let Some(decide) = state.waiting.remove(id) {
            // An agent that has just ended needs no answer.
            let _ = decide.send(verdict);
        }
        Ok(decided)
    }

    /// Takes over a request that another keeper died with; nothing if it is known. It can be asked again under its name.
    pub(crate) fn adopt(&self, attention: Attention) -> Option<Attention> {
        let mut state = self.state();
        let id = attention.shown.id.clone();
        if state.all.contains_key(&id) {
            return None;
        }
        let lost = Attention { state: AttentionState::Lost, decided_at: Some(Timestamp::now()), ..attention };
        if let Err(error) = self.write(&mut state, &lost) {
            tracing::error!(%error, "a lost request cannot be written down");
        }
        self.remember(&mut state, lost.clone());
        Some(lost)
    }

    /// Notes that a request needs no answer any more; nothing if it was decided.
    pub(crate) fn withdraw(&self, id: &str) -> Option<Attention> {
        let mut state = self.state();
        let attention = state.all.get(id).filter(|it| it.state == AttentionState::Pending)?.clone();
        let over =
            Attention { state: AttentionState::Withdrawn, decided_at: Some(Timestamp::now()), ..attention };
        if let Err(error) = self.write(&mut state, &over) {
            tracing::error!(%error, "a withdrawn request cannot be written down");
        }
        state.waiting.remove(id);
        state.all.insert(id.to_owned(), over.clone());
        Some(over)
    }

    /// Returns requests, the newest first.
    pub(crate) fn list(&self, wanted: Option<AttentionState>) -> Vec<Attention> {
        let state = self.state();
        let all = state.order.iter().rev().filter_map(|id| state.all.get(id));
        all.filter(|it| wanted.is_none_or(|wanted| it.state == wanted)).cloned().collect()
    }

    /// Returns whether a request is one of these.
    pub(crate) fn knows(&self, id: &str) -> bool {
        self.state().all.contains_key(id)
    }

    /// Returns whether a session waits for anybody.
    pub(crate) fn is_waiting(&self, session: &str) -> bool {
        let state = self.state();
        let waits = |it: &Attention| it.state == AttentionState::Pending && it.shown.session_id == session;
        state.waiting.keys().filter_map(|id| state.all.get(id)).any(waits)
    }

    fn write(&self, state: &mut State, attention: &Attention) -> Result<()> {
        // A line that could not be written whole must not take this one with it.
        let begins = if std::mem::replace(&mut state.is_torn, true) { &b"\n"[..] } else { b"" };
        let line = [begins, &line(attention)].concat();
        let written = state.journal.write_all(&line).and_then(|()| state.journal.sync_data());
        written.map_err(Error::io("write", &self.path))?;
        state.is_torn = false;
        state.lines += 1;
        Ok(())
    }

    /// Remembers a request that is new, and forgets what is long over.
    fn remember(&self, state: &mut State, attention: Attention) {
        let id = attention.shown.id.clone();
        state.order.push(id.clone());
        state.all.insert(id, attention);
        state.forget();
        if state.lines > LINES * state.remembered
            && let Err(error) = state.write_anew(&self.path)
        {
            // Every line of it still counts.
            tracing::warn!(%error, "the journal of requests cannot be made shorter");
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Forgets the oldest requests that are over. What waits stays, however many there are.
    fn forget(&mut self) {
        let mut surplus = self.order.len().saturating_sub(self.remembered);
        self.order.retain(|id| {
            let is_over = self.all.get(id).is_none_or(|it| it.state != AttentionState::Pending);
            let goes = surplus > 0 && is_over;
            if goes {
                surplus -= 1;
                self.all.remove(id);
            }
            !goes
        });
    }

    /// Writes the journal anew, with what is remembered and nothing else.
    fn write_anew(&mut self, path: &Path) -> Result<()> {
        let all = self.order.iter().filter_map(|id| self.all.get(id));
        let lines: Vec<u8> = all.flat_map(line).collect();
        self.journal = private_file::replaced(path, &lines).map_err(Error::io("write", path))?;
        (self.lines, self.is_torn) = (self.order.len(), false);
        Ok(())
    }
}

fn line(attention: &Attention) -> Vec<u8> {
    let mut line = serde_json::to_vec(attention).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Returns whether a text holds what nobody sees, or what turns text around.
fn has_hidden(input: &Value) -> bool {
    match input {
        Value::String(text) => text.chars().any(is_hidden),
        Value::Array(values) => values.iter().any(has_hidden),
        Value::Object(members) => {
            members.iter().any(|(name, value)| name.chars().any(is_hidden) || has_hidden(value))
        }
        _ => false,
    }
}

impl Attention {
    /// Returns a request that is new.
    pub(crate) fn new(
        shown: Shown,
        tool_use_id: String,
        message: Option<String>,
        suggestions: Vec<Value>,
    ) -> Self {
        Self {
            digest: String::new(),
            state: AttentionState::Pending,
            tool_use_id,
            message,
            requested_at: Timestamp::now(),
            decided_at: None,
            decided_by: None,
            updated_input: None,
            repeats: None,
            hidden_characters: false,
            suggestions,
            shown,
        }
    }

    /// Returns what others have to know of the outcome.
    pub(crate) fn outcome(&self) -> Map<String, Value> {
        let json = serde_json::json!({
            "id": self.shown.id, "session_id": self.shown.session_id, "state": self.state,
            "decided_by": self.decided_by, "decided_at": self.decided_at,
        });
        match json {
            Value::Object(outcome) => outcome,
            _ => Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn asked(id: &str, command: &str) -> Attention {
        let shown = Shown {
            id: id.into(),
            session_id: "s".into(),
            cwd: Some("/tmp".into()),
            tool_name: "Bash".into(),
            input: json!({ "command": command }),
            description: None,
            agent_id: None,
        };
        Attention::new(shown, "toolu_1".into(), None, Vec::new())
    }

    const ALLOW: Verdict = Verdict::Allow { updated_input: None, for_session: false };

    #[test]
    fn a_decision_is_about_exactly_what_was_shown_and_the_first_one_wins() {
        let home = tempfile::tempdir().unwrap();
        let (all, _) = Attentions::open(home.path()).unwrap();
        let (shown, mut decision) = all.request(asked("a", "ls")).unwrap();
        let forged = asked("a", "rm -rf /").shown.digest();
        assert!(matches!(all.decide("a", &forged, ALLOW, "mallory"), Err(Undecided::Changed(_))));
        assert!(decision.try_recv().is_err());
        all.decide("a", &shown.digest, Verdict::Deny { message: None }, "ada").unwrap();
        assert!(matches!(decision.try_recv(), Ok(Verdict::Deny { .. })));
        let replayed = all.decide("a", &shown.digest, ALLOW, "mallory");
        let Err(Undecided::Over(over)) = replayed else { panic!("{replayed:?}") };
        assert_eq!((over.state, over.decided_by.as_deref()), (AttentionState::Denied, Some("ada")));
        assert!(matches!(all.decide("b", "", ALLOW, "ada"), Err(Undecided::Unknown)));
    }

    #[test]
    fn what_was_pending_when_its_keeper_died_is_lost_and_asked_again_under_its_name() {
        let home = tempfile::tempdir().unwrap();
        {
            let (all, _) = Attentions::open(home.path()).unwrap();
            let (shown, _) = all.request(asked("a", "ls")).unwrap();
            all.request(asked("b", "make")).unwrap();
            all.decide("a", &shown.digest, ALLOW, "ada").unwrap();
        }
        // It died in the middle of a line.
        private_file::append(&home.path().join("attention.jsonl"))
            .unwrap()
            .write_all(b"{\"shown\":{")
            .unwrap();
        let (all, lost) = Attentions::open(home.path()).unwrap();
        assert_eq!(lost.iter().map(|it| it.shown.id.as_str()).collect::<Vec<_>>(), ["b"]);
        let states: Vec<_> = all.list(None).into_iter().map(|it| (it.shown.id, it.state)).collect();
        assert_eq!(states, [("b".into(), AttentionState::Lost), ("a".into(), AttentionState::Allowed)]);
        assert!(matches!(all.decide("b", &lost[0].digest, ALLOW, "ada"), Err(Undecided::Over(_))));
        let (again, mut decision) = all.request(asked("c", "make")).unwrap();
        assert_eq!((again.repeats.as_deref(), again.state), (Some("b"), AttentionState::Pending));
        assert!(decision.try_recv().is_err(), "nobody has allowed it in advance");
    }

    #[test]
    fn what_is_over_is_forgotten_in_time_and_what_waits_never_is() {
        let home = tempfile::tempdir().unwrap();
        let journal = home.path().join("attention.jsonl");
        let (all, _) = Attentions::remembering(10, home.path()).unwrap();
        let (first, mut decision) = all.request(asked("first", "make")).unwrap();
        let lines = || fs::read_to_string(&journal).unwrap().lines().count();
        for number in 0..100 {
            let id = number.to_string();
            all.request(asked(&id, "ls")).unwrap();
            all.withdraw(&id).unwrap();
            assert!(lines() <= 10 * LINES + 1, "{}", lines());
        }
        let list = all.list(None);
        assert_eq!((list.len(), list.last().unwrap().shown.id.as_str()), (10, "first"));
        assert!(!all.knows("0") && all.knows("99"));
        // It still waits, and can be decided; the next keeper knows the newest ones too.
        all.decide("first", &first.digest, ALLOW, "ada").unwrap();
        assert!(matches!(decision.try_recv(), Ok(Verdict::Allow { .. })));
        let (again, lost) = Attentions::remembering(10, home.path()).unwrap();
        let ids: Vec<String> = again.list(None).into_iter().map(|it| it.shown.id).collect();
        let newest: Vec<String> = (90..100).rev().map(|number: u32| number.to_string()).collect();
        assert_eq!((ids, lost.len()), (newest, 0));
    }

    #[test]
    fn a_journal_that_cannot_be_read_is_an_error_and_stays_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let journal = home.path().join("attention.jsonl");
        fs::create_dir(&journal).unwrap();
        assert!(Attentions::open(home.path()).is_err());
        assert!(journal.is_dir());
    }

    #[test]
    fn a_journal_with_foreign_bytes_keeps_the_rest() {
        let home = tempfile::tempdir().unwrap();
        Attentions::open(home.path()).unwrap().0.request(asked("a", "ls")).unwrap();
        let journal = home.path().join("attention.jsonl");
        private_file::append(&journal).unwrap().write_all(b"\xff\xfe\n").unwrap();
        assert_eq!(Attentions::open(home.path()).unwrap().1.len(), 1);
    }

    #[test]
    fn characters_that_nobody_sees_are_pointed_out() {
        for (command, hidden) in [
            ("ls -l\n\tx", false),
            ("ls \u{202e}x", true),
            ("a\u{200b}b", true),
            ("\u{1b}[2K", true),
            ("\u{e0041}", true),
        ] {
            assert_eq!(has_hidden(&json!({ "command": [command] })), hidden, "{command:?}");
        }
    }
}
