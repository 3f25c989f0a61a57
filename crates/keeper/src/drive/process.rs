//! The agent of a session: at most one, held by a lease, and ended when nobody needs it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use rethread_claude::ClaudeClient;
use rethread_store::{Claim, Lease, NewSession, Session};
use serde_json::json;

use super::agent::{self, Beginning};
use super::driver::Driver;
use crate::capture::{Captures, blocking};
use crate::keeper::Keeper;
use crate::problem::{Problem, with_causes};
use crate::settings::Agent;
use crate::shared::{Driven, Share, give_way};

/// How often it is looked whether an agent has ended, and how long that is waited for: an agent has so long to end by
/// itself, and then it is made to.
const ENDING: Duration = Duration::from_millis(25);
const ENDED: Duration = Duration::from_secs(30);
/// How long an agent may take to stop what it does before its input is closed.
const STOPPING: Duration = Duration::from_secs(3);

/// What is held while an agent runs.
#[derive(Debug, Default)]
pub(super) struct Process {
    companion: Option<Session>,
    /// The companion was made for the agent that is being started, and nothing was there before.
    is_new: bool,
    lease: Option<Arc<Lease>>,
    /// When the lease was surely held.
    renewed: Option<Instant>,
    /// Who drove the session, alive, when it was taken over.
    displaced: Option<Driven>,
}

/// Whether a session may be driven again after its agent was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    ForNow,
    ForGood,
}

/// When the store is asked who drives a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// Before something that happens rarely, such as an allowance.
    Always,
    /// If the lease was not renewed in time.
    IfLate,
}

fn without_checkpoints(error: &rethread_checkpoint::Error) -> Problem {
    let problem = Problem::new(StatusCode::BAD_GATEWAY, "checkpoints-failed");
    let problem = problem.detail(format!("what the agent changes could not be taken back: {error}"));
    problem
        .hint("nothing was sent; `rethread verify ID` says what is wrong with what is kept of the session")
        .retryable()
}

impl Driver {
    /// Returns the agent, and starts it if it does not run.
    pub(super) async fn client(self: &Arc<Self>, keeper: &Arc<Keeper>) -> Result<Arc<ClaudeClient>, Problem> {
        // One that is about to end has to be gone first.
        self.ended_by_now().await;
        let mut process = self.process.lock().await;
        if self.state().is_over {
            return Err(Problem::conflict("released", "the session was just let go").retryable());
        }
        if let Some(client) = self.state().client.clone() {
            return Ok(client);
        }
        let agent = keeper.agent()?.clone();
        let (client, from) = match self.start(keeper, &mut process, &agent).await {
            Ok(started) => started,
            Err(problem) => {
                self.take_back_companion(keeper, &mut process).await;
                return Err(problem);
            }
        };
        process.is_new = false;
        let pid = client
            .server_info()
            .ok()
            .and_then(|info| info["pid"].as_u64())
            .and_then(|pid| u32::try_from(pid).ok());
        let guard = pid.and_then(crate::peer::parent).filter(|parent| *parent != std::process::id());
        let stream = client.messages().map_err(|error| Problem::failed(&error))?;
        {
            let mut state = self.state();
            state.pids = [pid, guard].into_iter().flatten().collect();
            (state.client, state.from) = (Some(Arc::clone(&client)), from);
        }
        tracing::info!(session = &*self.session, pid, "an agent was started");
        tokio::spawn(Arc::clone(self).read(Arc::clone(keeper), stream));
        Ok(client)
    }

    /// Starts an agent, and returns where the transcript ended then.
    async fn start(
        self: &Arc<Self>,
        keeper: &Arc<Keeper>,
        process: &mut Process,
        agent: &Agent,
    ) -> Result<(Arc<ClaudeClient>, u64), Problem> {
        self.hold(keeper, process, Claim::IfFree).await?;
        if let Err(problem) = self.begin_to_share(keeper, process).await {
            self.let_go(keeper, process).await;
            return Err(problem);
        }
        let transcript = keeper.transcript_of(&self.session);
        let from =
            transcript.as_ref().and_then(|path| std::fs::metadata(path).ok()).map_or(0, |file| file.len());
        if let Some(companion) = &process.companion {
            let opened = Captures::open(keeper, companion, &self.begin().cwd).await;
            // An agent whose changes nobody could take back, and nobody would know of, does not begin.
            match opened {
                Ok(captures) => self.state().captures = Some(Arc::new(captures)),
                Err(error) => {
                    self.let_go(keeper, process).await;
                    return Err(without_checkpoints(&error));
                }
            }
        }
        let beginning = if transcript.is_some() { Beginning::Resumed } else { Beginning::New };
        let mut started = agent::start(keeper, self, agent, beginning).await;
        if let Err(rethread_claude::Error::Ended { complaints, .. }) = &started
            && complaints.contains("No conversation")
            && keeper.put_away_empty(&self.session)
        {
            started = agent::start(keeper, self, agent, Beginning::New).await;
        }
        match started {
            Ok(client) => Ok((Arc::new(client), from)),
            Err(error) => {
                self.let_go(keeper, process).await;
                let problem =
                    Problem::new(StatusCode::BAD_GATEWAY, "agent-failed").detail(with_causes(&error));
                Err(problem.hint("`rethread doctor` and `claude --version` say more").retryable())
            }
        }
    }

    /// Takes away the companion of an agent that did not begin, if it was made for that and nothing is in it: it would be
    /// listed as a session that nobody ever had.
    async fn take_back_companion(&self, keeper: &Keeper, process: &mut Process) {
        if !std::mem::take(&mut process.is_new) {
            return;
        }
        (process.companion, self.state().captures) = (None, None);
        let (store, session) = (keeper.store().clone(), self.session.clone());
        let taken = blocking(async move {
            let companion = store.open(&session.parse()?).await?;
            let is_empty = companion.metadata().await?.message_count == 0;
            // Somebody else may have begun by now.
            if is_empty && companion.driver().await?.is_none() {
                store.purge(companion.id()).await?;
            }
            Ok::<_, rethread_store::Error>(())
        });
        if let Err(error) = taken.await {
            tracing::warn!(%error, session = &*self.session, "an empty session is left behind");
        }
    }

    /// Becomes the one who drives the session.
    async fn hold(&self, keeper: &Arc<Keeper>, process: &mut Process, claim: Claim) -> Result<(), Problem> {
        if !keeper.store().backend().capabilities().keeps {
            return Ok(());
        }
        let begin = self.begin();
        let store = keeper.store().clone();
        let companion = blocking(async move {
            let id: rethread_store::SessionId = begin.session.parse()?;
            match store.load(&id).await {
                // Somebody threw the copy away; whoever goes on with the session wants it back.
                Err(rethread_store::Error::Trashed(_)) => return Ok((store.restore(&id).await?, false)),
                Ok(None) => {}
                Ok(Some(session)) => return Ok((session, false)),
                Err(error) => return Err(error),
            }
            // What is left of one whose log is gone must not go with what is made now.
            let is_new = store.backend().stat(&id).await?.is_none();
            let session = store.create(NewSession::at(&begin.cwd).id(id)).await?;
            session.update(move |metadata| begin.note(metadata)).await?;
            Ok((session, is_new))
        });
        let (companion, is_new) = companion.await?;
        process.is_new |= is_new;
        let begun = Instant::now();
        if let Some(lease) = process.lease.clone().filter(|_| claim == Claim::IfFree) {
            // Nobody renews it as long as no agent runs: somebody else may have it by now.
            match blocking(async move { lease.renew().await }).await {
                Ok(()) => process.renewed = Some(begun),
                Err(rethread_store::Error::Fenced { .. }) => process.lease = None,
                Err(error) => return Err(error.into()),
            }
        }
        if process.lease.is_none() || claim == Claim::TakeOver {
            if claim == Claim::TakeOver && keeper.shares() && companion.driver().await?.is_some() {
                let driven = Driven::of(&companion.metadata().await?);
                process.displaced = driven.filter(|driven| driven.keeper != keeper.hub.epoch());
            }
            let (own, holds) = (companion.clone(), keeper.settings.lease);
            let lease = blocking(async move { own.lease("rethread keeper", holds, claim).await }).await?;
            (process.lease, process.renewed) = (Some(Arc::new(lease)), Some(begun));
        }
        process.companion = Some(companion);
        Ok(())
    }

    /// Takes over what was said elsewhere, and begins to tell others what is said here.
    async fn begin_to_share(
        self: &Arc<Self>,
        keeper: &Arc<Keeper>,
        process: &mut Process,
    ) -> Result<(), Problem> {
        let (Some(companion), Some(lease), true) = (&process.companion, &process.lease, keeper.shares())
        else {
            return Ok(());
        };
        let displaced = process.displaced.take();
        self.catch_up(keeper, companion, displaced.as_ref()).await?;
        // Said before anything is added, so that others know whose it is.
        let driven = Driven::here(keeper, &self.session, self.doing(keeper));
        lease.session().update(move |metadata| driven.note(metadata)).await?;
        let share = Share::begin(keeper, self, lease.session().clone());
        self.state().share = Some(share);
        Ok(())
    }

    pub(super) async fn let_go(&self, keeper: &Keeper, process: &mut Process) {
        let share = self.state().share.take();
        if let Some(share) = share {
            keeper.behind.set(&self.session, !share.finish().await);
        }
        if let Some(lease) = process.lease.take() {
            // One that cannot be given back lapses.
            let _ = blocking(async move { lease.release().await }).await;
        }
    }

    /// Acquires the session without sending anything.
    pub(crate) async fn acquire(&self, keeper: &Arc<Keeper>, claim: Claim) -> Result<(), Problem> {
        let mut process = self.process.lock().await;
        let held = self.hold(keeper, &mut process, claim).await;
        // Whoever acquires a session means it, whether an agent begins or not.
        process.is_new = false;
        held
    }

    /// Returns whether the store says that this keeper drives the session. While that is being changed nobody knows: whoever
    /// shares the session asks this, and must not wait for who waits for them. Others ask [`Self::still_drives`].
    pub(crate) async fn drives(&self) -> bool {
        let lease = self.process.try_lock().ok().and_then(|process| process.lease.clone());
        match lease {
            Some(lease) => blocking(async move { lease.renew().await }).await.is_ok(),
            None => false,
        }
    }

    /// Returns whether the session is still driven from here, for whoever is about to let its agent do something: this
    /// process, or the machine, may have stood still for longer than the lease holds.
    pub(crate) async fn still_drives(&self, keeper: &Keeper, doubt: Doubt) -> bool {
        let (lease, renewed) = {
            let process = self.process.lock().await;
            (process.lease.clone(), process.renewed)
        };
        let Some(lease) = lease else { return !keeper.store().backend().capabilities().keeps };
        let is_fresh = renewed.is_some_and(|at| at.elapsed() < keeper.settings.lease / 3 * 2);
        if is_fresh && doubt == Doubt::IfLate {
            return true;
        }
        let renewed =
            tokio::time::timeout(keeper.settings.lease / 3, blocking(async move { lease.renew().await }));
        match renewed.await {
            Ok(Ok(())) => true,
            Ok(Err(rethread_store::Error::Fenced { .. })) => false,
            // A store that is away takes nothing from what is driven here, until others may follow.
            _ => is_fresh || !keeper.shares(),
        }
    }

    /// Keeps the lease alive; ends the agent if somebody took over, or can have.
    pub(crate) async fn renew(self: &Arc<Self>, keeper: &Arc<Keeper>) {
        let (lease, begun) = (self.process.lock().await.lease.clone(), Instant::now());
        let Some(lease) = lease else { return };
        let own = Arc::clone(&lease);
        let renewed =
            tokio::time::timeout(keeper.settings.lease / 3, blocking(async move { own.renew().await }));
        let renewed = renewed.await;
        let mut process = self.process.lock().await;
        if !process.lease.as_ref().is_some_and(|now| Arc::ptr_eq(now, &lease)) {
            return;
        }
        // An agent needs some time to end, before others may take the lease for lapsed.
        let is_late = || process.renewed.is_none_or(|at| at.elapsed() >= keeper.settings.lease / 3 * 2);
        let why = match renewed {
            Ok(Ok(())) => {
                process.renewed = process.renewed.max(Some(begun));
                return;
            }
            Ok(Err(error @ rethread_store::Error::Fenced { .. })) => error.to_string(),
            _ if !keeper.shares() || !is_late() => return,
            _ => "the store does not answer, and somebody else may drive the session soon".to_owned(),
        };
        tracing::warn!(session = &*self.session, why, "the session is not driven here any more");
        process.lease = None;
        let companion = process.companion.clone();
        drop(process);
        let data = json!({ "session_id": &*self.session, "taken_over": why });
        keeper.hub.publish(&self.session, "session.state", data);
        self.end(keeper, Ending::ForNow).await;
        if let Some(companion) = companion.filter(|_| keeper.shares()) {
            give_way(keeper, companion).await;
        }
    }

    /// Ends the agent if nobody has asked it anything for a while.
    pub(crate) async fn end_if_idle(self: &Arc<Self>, keeper: &Arc<Keeper>, patience: Duration) {
        let client = {
            let mut state = self.state();
            let is_idle = state.current.is_none()
                && !state.answers_itself
                && (state.queue.is_empty() || state.is_held)
                && state.in_background == 0
                && state.used.elapsed() >= patience;
            if !is_idle || state.client.is_none() || state.ending {
                return;
            }
            state.ending = true;
            state.client.clone()
        };
        self.close(keeper, client).await;
    }

    /// Ends the agent; what it does is interrupted.
    pub(crate) async fn end(self: &Arc<Self>, keeper: &Arc<Keeper>, ending: Ending) {
        let client = {
            let mut state = self.state();
            state.is_over |= ending == Ending::ForGood;
            state.interrupting = state.interruptible();
            state.is_held = true;
            state.ending |= state.client.is_some();
            state.client.clone()
        };
        if !self.queue().0.is_empty() {
            self.tell_queue(keeper);
        }
        self.close(keeper, client).await;
    }

    async fn close(self: &Arc<Self>, keeper: &Arc<Keeper>, client: Option<Arc<ClaudeClient>>) {
        let Some(client) = client else {
            let mut process = self.process.lock().await;
            self.let_go(keeper, &mut process).await;
            return;
        };
        if self.message().is_some() {
            // It is asked to stop first, so that what it has written down is whole.
            let _ = tokio::time::timeout(STOPPING, client.interrupt()).await;
        }
        let _ = client.close_input();
        drop(client);
        if tokio::time::timeout(ENDED, self.ended_by_now()).await.is_err() {
            tracing::warn!(session = &*self.session, "the agent does not end, and is made to");
            let client = self.state().client.take();
            if let Some(mut client) = client.and_then(Arc::into_inner) {
                let _ = client.close().await;
            }
            if tokio::time::timeout(ENDED, self.ended_by_now()).await.is_err() {
                tracing::error!(session = &*self.session, "the agent cannot be ended");
            }
        }
        self.refresh_state(keeper);
    }

    /// Waits for the end of an agent that is about to.
    async fn ended_by_now(&self) {
        while self.state().ending {
            tokio::time::sleep(ENDING).await;
        }
    }
}
