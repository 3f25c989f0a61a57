//! Going on with a session that another keeper drove: with all that was said there, and never at the same time.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use rethread_bridge::{Error, Shadow, write_out};
use rethread_store::{Claim, Filter, Metadata, Session};

use super::driven::Driven;
use crate::capture::blocking;
use crate::card::{Home, SessionState};
use crate::drive::Driver;
use crate::keeper::{Keeper, over};
use crate::problem::Problem;

/// How often it is looked whether a former driver has given way.
const GIVING_WAY: Duration = Duration::from_millis(200);
/// How often it is looked whether agents of a dead keeper have ended, and how long that is waited for.
const ENDING: Duration = Duration::from_millis(20);
const ENDED: Duration = Duration::from_secs(10);

impl Driver {
    /// Brings the transcript here up to date with what was said elsewhere, before anybody goes on with it. `displaced` is
    /// the driver that was still alive when this one took over.
    pub(crate) async fn catch_up(
        &self,
        keeper: &Arc<Keeper>,
        companion: &Session,
        displaced: Option<&Driven>,
    ) -> Result<(), Problem> {
        if let Some(displaced) = displaced {
            wait_for(displaced, companion, keeper.settings.lease).await?;
        }
        let metadata = companion.metadata().await?;
        let last = Driven::of(&metadata);
        if let Some(last) = last.as_ref().filter(|last| last.host == keeper.place.host) {
            wait_for_the_end_of(&last.pids).await;
        }
        let session = companion.id().as_str();
        let is_missing = keeper.transcript_of(session).is_none() && metadata.message_count > 0;
        let was_elsewhere = last.as_ref().is_some_and(|last| last.place != keeper.place.id);
        if let Some(last) = &last {
            keeper.adopt(last);
        }
        if is_missing || was_elsewhere {
            self.write_out(keeper, companion, metadata.message_count).await?;
        }
        Ok(())
    }

    async fn write_out(&self, keeper: &Arc<Keeper>, companion: &Session, count: u64) -> Result<(), Problem> {
        let Some(native) = keeper.native.as_ref().filter(|_| count > 0) else { return Ok(()) };
        let (folder, cwd, stored) = (native.folder.clone(), self.begin().cwd, companion.clone());
        let session = companion.id().as_str();
        // What is in the store has been told already.
        let silence = keeper.silences.begin(session);
        let written = blocking(async move { write_out(&stored, &folder, &cwd).await }).await;
        let outcome = written.map_err(|error| match error {
            Error::Store(error) => Problem::from(error),
            Error::Transcripts(error) => Problem::from(error),
            error => Problem::new(StatusCode::CONFLICT, "apart").detail(error.to_string()).hint(
                "fork the session here: the fork has what is here, the store keeps what was said elsewhere",
            ),
        })?;
        silence.until_end_of(outcome.path());
        tracing::info!(session, ?outcome, "a session that was driven elsewhere goes on here");
        keeper.look_at(outcome.path());
        Ok(())
    }
}

/// Waits until a driver that somebody took over from has ended its agent, or can be taken for dead.
async fn wait_for(displaced: &Driven, companion: &Session, at_most: Duration) -> Result<(), Problem> {
    let gave_way = async {
        loop {
            let now = Driven::of(&companion.metadata().await?);
            let is_over = |now: &Driven| now.keeper != displaced.keeper || now.gave_way;
            if now.as_ref().is_none_or(is_over) {
                return Ok(());
            }
            tokio::time::sleep(GIVING_WAY).await;
        }
    };
    // One that does not answer for so long has lost its lease in any case.
    tokio::time::timeout(at_most, gave_way).await.unwrap_or(Ok(()))
}

/// Waits until processes of this machine have ended: a keeper that died is gone a moment before its agents are.
async fn wait_for_the_end_of(pids: &[u32]) {
    let run = |pid: &u32| std::fs::exists(format!("/proc/{pid}")).unwrap_or(false);
    let ended = async {
        while pids.iter().any(run) {
            tokio::time::sleep(ENDING).await;
        }
    };
    // Another process may have a number by now.
    let _ = tokio::time::timeout(ENDED, ended).await;
}

/// Has others know that an agent has ended whose session somebody took over.
pub(crate) async fn give_way(keeper: &Keeper, companion: Session) {
    let own = keeper.hub.epoch().to_owned();
    let note = move |metadata: &mut Metadata| {
        if let Some(driven) = Driven::of(metadata).filter(|driven| driven.keeper == own) {
            let (state, attention) = (SessionState::Idle, Vec::new());
            Driven { gave_way: true, holds: false, state, attention, ..driven }.note(metadata);
        }
    };
    let noted = blocking(async move { companion.update(note).await }).await;
    if let Err(error) = noted {
        tracing::warn!(%error, "whoever took over cannot be told that the agent has ended");
    }
}

impl Keeper {
    /// Takes the copy of a session out of the trash, if it is there.
    pub(crate) async fn restore_copy(&self, session: &str) -> Result<(), rethread_store::Error> {
        let id = session.parse()?;
        match self.store().metadata(&id).await {
            Ok(metadata) if metadata.trashed_at.is_some() && Driven::of(&metadata).is_some() => {
                self.store().restore(&id).await.map(drop)
            }
            Ok(_) | Err(rethread_store::Error::SessionNotFound(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Tells the store what this keeper, or the last one of this place, could not tell any more: its agents' last lines.
    pub(crate) async fn make_up(self: Arc<Self>) {
        let store = self.store().clone();
        let listed = blocking(async move { store.list(&Filter::everything()).await }).await;
        for metadata in listed.map(|listing| listing.sessions).unwrap_or_default() {
            let last = Driven::of(&metadata).filter(|last| last.place == self.place.id && last.holds);
            if last.is_none_or(|last| last.keeper == self.hub.epoch()) {
                continue;
            }
            self.behind.set(metadata.session_id.as_str(), true);
        }
        let mut ending = self.ending.subscribe();
        loop {
            for session in self.behind.list() {
                match self.make_up_for(&session).await {
                    Ok(is_up) => self.behind.set(&session, !is_up),
                    Err(error) => {
                        tracing::warn!(%error, session, "what was said last is not in the store yet")
                    }
                }
            }
            // Whoever holds a session, or the store that was away, is looked for again.
            tokio::select! {
                () = over(&mut ending) => return,
                () = tokio::time::sleep(self.settings.lease / 2) => {}
            }
        }
    }

    /// Returns whether the store has all that there is to tell.
    async fn make_up_for(&self, session: &str) -> Result<bool, Error> {
        let native =
            self.catalogue().find(Some(Home::Native), session).and_then(|known| known.native.clone());
        let stored = match self.store().load(&session.parse().map_err(Error::from)?).await {
            Ok(Some(stored)) => stored,
            // Whoever goes on with it takes it out of the trash.
            Ok(None) | Err(rethread_store::Error::Trashed(_)) => return Ok(true),
            Err(error) => return Err(error.into()),
        };
        let driven = Driven { holds: false, ..Driven::here(self, session, SessionState::Idle) };
        let holds = self.settings.lease;
        let work = async move {
            let is_ours =
                |metadata: &Metadata| Driven::of(metadata).is_some_and(|last| last.place == driven.place);
            // Whoever drove it since has its own copy.
            if !is_ours(&stored.metadata().await?) {
                return Ok(true);
            }
            let lease = match stored.lease("rethread keeper", holds, Claim::IfFree).await {
                Err(rethread_store::Error::Held { .. }) => return Ok(false),
                lease => lease?,
            };
            if is_ours(&stored.metadata().await?) {
                let note = move |metadata: &mut Metadata| driven.note(metadata);
                match native {
                    Some(native) => {
                        let shadow = Shadow::begin(&native, lease.session().clone()).await?;
                        shadow.describe(&native, note).await?;
                    }
                    None => drop(lease.session().update(note).await?),
                }
            }
            lease.release().await?;
            Ok(true)
        };
        blocking(work).await
    }
}
