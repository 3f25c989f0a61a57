//! What the rest of the keeper asks of the sessions that it drives.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use jiff::Timestamp;
use rethread_transcripts::{Damage, Session};
use serde_json::json;

use crate::card::{Home, SessionCard, SessionHealth, SessionState};
use crate::catalogue::{Key, Known};
use crate::drive::{Begin, Driver, Ending, Turn};
use crate::frame::Frame;
use crate::item::MessageItem;
use crate::keeper::{Keeper, over};
use crate::problem::Problem;
use crate::scope::Scope;
use crate::settings::Agent;
use crate::topic::Interest;

/// How often idle agents are looked for.
const ROUND: Duration = Duration::from_secs(10);
const MISSING: &str = "Claude Code is not installed: `npm install -g @anthropic-ai/claude-code` installs it";

impl Keeper {
    /// Returns what only the stream knows of a session so far.
    pub(crate) fn provisional(&self, session: &str) -> Vec<MessageItem<'static>> {
        self.drivers.get(session).map(|driver| driver.provisional()).unwrap_or_default()
    }

    /// Returns messages that are just being said, for somebody who has missed their beginning.
    pub(crate) fn partials(&self, interest: &Interest, scope: &Scope) -> Vec<Frame> {
        let partials = self.drivers.list().into_iter().filter_map(|driver| {
            let Begin { session, cwd, .. } = driver.begin();
            let topic = format!("session:{session}");
            let is_for = interest.has(&topic) && scope.admits(cwd.to_str());
            let partial = driver.partial().filter(|_| is_for)?;
            Some(self.hub.word("message.partial", json!({ "topic": topic, "data": partial })))
        });
        partials.collect()
    }

    /// Returns the processes of driven agents, and those that guard them.
    pub(crate) fn driven(&self) -> Vec<u32> {
        self.drivers.list().iter().flat_map(|driver| driver.pids()).collect()
    }

    /// Refuses what must not happen to a session that is being driven.
    pub(crate) async fn refuse_while_driven(&self, key: &Key) -> Result<(), Problem> {
        let driver = self.drivers.get(&key.id).filter(|_| key.home == Home::Native || self.shares());
        let in_use = |detail: String| {
            let problem = Problem::conflict("in-use", detail);
            problem.hint("interrupt it, or release its lease first").retryable()
        };
        if driver.is_some_and(|driver| driver.is_running()) {
            return Err(in_use("this keeper drives the session".into()));
        }
        // Another keeper may, whose copy this is.
        if key.home == Home::Stored && self.shares() {
            let session = self.store().open(&key.id.parse()?).await?;
            if let Some(holder) = session.driver().await? {
                return Err(in_use(format!("{holder} drives the session")));
            }
        }
        Ok(())
    }

    /// Returns the agent's program, its version, and what is missing.
    pub(crate) async fn agent_info(&self) -> (Option<String>, Option<String>, Option<String>) {
        match self.agent() {
            Ok(agent) => (Some(agent.program.display().to_string()), self.agent_version().await, None),
            Err(_) => (None, None, self.missing()),
        }
    }

    /// Says what is missing to drive sessions with, and how to get it; nothing if nothing is.
    pub(crate) fn missing(&self) -> Option<String> {
        match (self.agent(), &self.settings.agent) {
            (Ok(_), _) => None,
            (Err(_), Some(agent)) => Some(format!(
                "{}: `npm install -g @anthropic-ai/claude-code` installs Claude Code, `--claude-bin PATH` names it",
                no_program(agent)
            )),
            (Err(_), None) => Some(MISSING.to_owned()),
        }
    }

    /// Returns what sessions are driven with, or says why nothing can be sent and how to get what is missing. What is
    /// named when a keeper is started may not be there, or not any more.
    pub(crate) fn agent(&self) -> Result<&Agent, Problem> {
        let why = match &self.settings.agent {
            Some(agent) if is_program(&agent.program) => return Ok(agent),
            Some(agent) => no_program(agent),
            None => "Claude Code was not found when it was started".to_owned(),
        };
        Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "no-agent")
            .detail(format!("this keeper only reads: {why}"))
            .hint("`npm install -g @anthropic-ai/claude-code`, then start the keeper again; `--claude-bin PATH` names one"))
    }

    /// Returns a native session's transcript, once there is one.
    pub(crate) fn transcript_of(&self, session: &str) -> Option<PathBuf> {
        let known = self.catalogue().find(Some(Home::Native), session).and_then(|known| known.native.clone());
        let path = match known {
            Some(session) => session.path.clone(),
            // It may be so new that nobody has seen it yet.
            None => self.native.as_ref()?.folder.find(session).ok()?,
        };
        self.open_native(&path).is_ok().then_some(path)
    }

    /// Returns whether a message is in a native session's transcript.
    pub(crate) async fn has_message(self: &Arc<Self>, session: &str, message: &str) -> bool {
        let (own, session, message) = (Arc::clone(self), session.to_owned(), message.to_owned());
        let has =
            tokio::task::spawn_blocking(move || own.has_messages(&session).is_some_and(|has| has(&message)));
        has.await.unwrap_or(false)
    }

    fn has_messages(&self, session: &str) -> Option<impl Fn(&str) -> bool> {
        let path = self.transcript_of(session)?;
        let file = self.open_native(&path).ok()?;
        let transcript = rethread_transcripts::Transcript::of(file, path).ok()?;
        Some(move |message: &str| transcript.chain_to(message).is_ok())
    }

    /// Returns the prompts of a session that an earlier driver took and that no agent wrote down.
    pub(crate) fn left_prompts(&self, session: &str) -> Vec<Turn> {
        let mut left = self.prompts.of(session);
        let has = if left.is_empty() { None } else { self.has_messages(session) };
        if let Some(has) = has {
            let done = left.extract_if(.., |turn| has(&turn.client_message_id));
            done.for_each(|turn| self.prompts.remove(session, &turn.client_message_id));
        }
        left
    }

    /// Takes back a prompt that an earlier driver left.
    pub(crate) fn take_back_left(&self, session: &str, message: &str) -> bool {
        let left = self.left_prompts(session);
        let was = left.iter().any(|turn| turn.client_message_id == message);
        if was {
            self.prompts.remove(session, message);
        }
        was
    }

    /// Moves a transcript without a single message to the trash. An agent that died before it wrote anything down leaves
    /// one, and Claude Code will neither resume it nor begin the session anew as long as it is there.
    pub(crate) fn put_away_empty(&self, session: &str) -> bool {
        let is_empty = || {
            let path = self.transcript_of(session)?;
            let file = self.open_native(&path).ok()?;
            let transcript = rethread_transcripts::Transcript::of(file, path).ok()?;
            Some(transcript.all().messages().is_empty())
        };
        let Some(native) = self.native.as_ref().filter(|_| is_empty() == Some(true)) else { return false };
        let deleted = native.folder.delete(session, &self.settings.trash);
        self.door.audit.write("put-away-empty", "keeper", json!({ "session": session }));
        deleted
            .inspect_err(|error| tracing::warn!(%error, session, "an empty transcript is in the way"))
            .is_ok()
    }

    /// Lists a session that has no transcript yet.
    pub(crate) fn add_pending(&self, begin: &Begin) {
        let cwd = begin.cwd.display().to_string();
        let card = SessionCard {
            session_id: begin.session.clone(),
            home: Home::Native,
            cwd: Some(cwd.clone()),
            project: Some(cwd),
            name: begin.name.clone(),
            first_prompt: None,
            message_count: Some(0),
            created_at: Some(Timestamp::now()),
            updated_at: Timestamp::now(),
            git_branch: None,
            model: begin.model.clone(),
            permission_mode: begin.permission_mode.clone(),
            tags: Vec::new(),
            archived: false,
            state: SessionState::Pending,
            health: SessionHealth::ok(),
            parent: None,
            forks: Vec::new(),
            subagents: 0,
            size: None,
            driver_pid: None,
            driver_host: None,
        };
        self.change(|catalogue| {
            if let Some(mode) = &begin.permission_mode {
                catalogue.note_mode(&begin.session, mode.clone());
            }
            catalogue.put(Known::stored(card))
        });
    }

    /// Lists the sessions that an earlier keeper was to begin, as far as nobody has begun them since.
    pub(crate) fn recall_pending(&self) {
        for begin in self.pending.list() {
            if self.transcript_of(&begin.session).is_some() || !begin.cwd.is_dir() {
                self.pending.remove(&begin.session);
            } else if self.admits(Some(&begin.cwd)) {
                self.recall(begin);
            }
        }
    }

    /// Lists a session that is to begin as it was meant to.
    pub(crate) fn recall(&self, begin: Begin) {
        self.add_pending(&begin);
        let left = self.left_prompts(&begin.session);
        self.drivers.get_or_begin(&begin.session.clone(), || Driver::new(begin, left));
    }

    /// Gives up a session that never began.
    pub(crate) fn drop_pending(&self, session: &str) {
        self.drivers.remove(session);
        self.pending.remove(session);
        let key = Key { home: Home::Native, id: session.to_owned() };
        self.change(|catalogue| catalogue.remove(&key));
    }

    /// Tells a session that it was forked.
    pub(crate) fn note_fork(&self, session: &str, fork: &str) {
        self.change(|catalogue| {
            let mut known = catalogue.find(Some(Home::Native), session)?.clone();
            let session = Arc::make_mut(known.native.as_mut()?);
            session.forks.push(fork.to_owned());
            Arc::make_mut(&mut known.card).forks.clone_from(&session.forks);
            catalogue.put(known)
        });
    }

    /// Ends agents that nobody has asked for anything for a while, until the keeper ends.
    pub(crate) async fn end_idle(self: Arc<Self>) {
        let mut ending = self.ending.subscribe();
        loop {
            tokio::select! {
                () = tokio::time::sleep(ROUND.min(self.settings.idle)) => {}
                () = over(&mut ending) => return,
            }
            for driver in self.drivers.list() {
                driver.end_if_idle(&self, self.settings.idle).await;
            }
        }
    }

    /// Ends everything that was begun.
    pub(crate) async fn finish(self: &Arc<Self>) {
        let drivers = self.drivers.list();
        let all = drivers.iter().map(|driver| driver.end(self, Ending::ForGood));
        futures_util::future::join_all(all).await;
    }

    /// Remembers what of a native session is damaged, as a look at the whole of it found.
    pub(crate) fn note_damage(&self, session: &Session, damage: Option<Damage>) {
        if session.damage != damage {
            let mut session = session.clone();
            session.damage = damage;
            self.change(|catalogue| catalogue.put(Known::native(session)));
        }
    }
}

fn no_program(agent: &Agent) -> String {
    format!("{} is no program that can be run", agent.program.display())
}

fn is_program(path: &Path) -> bool {
    let executable = |file: std::fs::Metadata| {
        file.is_file() && std::os::unix::fs::PermissionsExt::mode(&file.permissions()) & 0o111 != 0
    };
    path.is_absolute() && std::fs::metadata(path).is_ok_and(executable)
}
