//! What happens in the store that this keeper does not do itself: sessions that other keepers drive, and those that any
//! program writes to.
//!
//! Hints say where to look. They may be lost, so that every few seconds, and after every hint that says so, all sessions
//! are compared with what was seen of them.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rethread_store::backend::{From, Hint, Hints, LogKey, LogName, Position, Space};
use rethread_store::{Kind, Metadata, SessionId};
use serde_json::json;
use tokio::sync::Mutex as AsyncMutex;

use super::driven::Driven;
use super::over::Over;
use crate::attention::{Attention, AttentionState};
use crate::capture::blocking;
use crate::card::{Home, SessionCard, SessionState};
use crate::catalogue::{Catalogue, Key, Known};
use crate::error::{Error, Result};
use crate::item::MessageItem;
use crate::keeper::{Keeper, is_companion, over};
use crate::topic::Subject;

/// How often everything is compared with what was seen of it.
const EVERY: Duration = Duration::from_secs(3);
/// How long more hints are waited for.
const SOON: Duration = Duration::from_millis(10);
/// How long whoever wants to read a session that is here waits for the store to say whether others went on with it.
const PATIENCE: Duration = Duration::from_secs(2);
const CHUNK: usize = 1 << 20;
const KIND: &str = "message.upsert";

/// What was seen of the store's sessions.
#[derive(Debug, Default)]
pub(crate) struct Others {
    sessions: Mutex<HashMap<SessionId, Arc<AsyncMutex<Seen>>>>,
    /// Requests of other keepers, by their ids.
    attention: Mutex<HashMap<String, Attention>>,
    /// Those whose end was told, and that nobody speaks of any more.
    over: Mutex<Over>,
    /// Sessions whose driver is known to be dead.
    orphans: Mutex<HashSet<SessionId>>,
    /// When sessions were looked at, since the last listing began: it may know less of them.
    looked: Mutex<HashMap<SessionId, Instant>>,
    /// Sessions that somebody read here while the store did not say whether others went on with them.
    unsure: Mutex<HashSet<SessionId>>,
}

/// What was seen of one session.
#[derive(Debug, Default)]
struct Seen {
    /// What the last listing called its log.
    change: String,
    /// How far its log was read; unknown until somebody wants to know what is said in it.
    next: Option<Position>,
    /// Where the transcript is that the log followed when it was read so far.
    place: Option<String>,
    /// What the transcript here has said already, while the log is read from its beginning.
    said_here: HashSet<String>,
    driven: Option<Driven>,
}

impl Others {
    /// Returns requests of other keepers.
    pub(crate) fn attention(&self) -> Vec<Attention> {
        self.requests().values().cloned().collect()
    }

    /// Returns a request of another keeper.
    pub(crate) fn request(&self, id: &str) -> Option<Attention> {
        self.requests().get(id).cloned()
    }

    /// Returns what a stored session does, as far as its driver says so and lives.
    pub(crate) fn state(&self, metadata: &Metadata) -> SessionState {
        let is_orphan = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        match Driven::of(metadata) {
            Some(driven) if driven.holds && !is_orphan.contains(&metadata.session_id) => match driven.state {
                SessionState::Waiting => SessionState::Waiting,
                _ => SessionState::Elsewhere,
            },
            _ => SessionState::Idle,
        }
    }

    /// Returns the sessions that were looked at since some moment, which are those that a listing begun then may know less
    /// of. What was looked at before that is forgotten.
    pub(crate) fn looked_since(&self, moment: Instant) -> HashSet<SessionId> {
        let mut looked = self.looked.lock().unwrap_or_else(PoisonError::into_inner);
        looked.retain(|_, at| *at >= moment);
        looked.keys().cloned().collect()
    }

    fn note_look(&self, session: &SessionId) {
        self.looked.lock().unwrap_or_else(PoisonError::into_inner).insert(session.clone(), Instant::now());
    }

    fn unsure(&self) -> MutexGuard<'_, HashSet<SessionId>> {
        self.unsure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<String, Attention>> {
        self.attention.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asked for while one has the [`requests`](Self::requests), and never before.
    fn over(&self) -> MutexGuard<'_, Over> {
        self.over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<AsyncMutex<Seen>>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// Sees what happens in the store, until the keeper ends.
    pub(crate) async fn watch_store(self: Arc<Self>) {
        let hints = self.store().backend().hints();
        let mut ending = self.ending.subscribe();
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let hinted = tokio::select! {
                () = over(&mut ending) => return,
                _ = every.tick() => None,
                hinted = hinted(hints.as_ref()) => Some(hinted),
            };
            let looked = match hinted {
                Some(Some(sessions)) => self.look_at_stored(sessions).await,
                // Where nobody looks and nobody else writes, the next one who asks is told what there is then.
                None if !self.shares() && self.door.metrics.clients.get() == 0 => Ok(()),
                None | Some(None) => self.compare_stored().await,
            };
            if let Err(error) = looked {
                tracing::warn!(%error, "the store cannot be looked at");
            }
        }
    }

    /// Lists the sessions of the store as they are when the keeper begins, and looks at those that somebody drives: what is
    /// asked in them has to be shown, and that their driver dies has to be seen.
    pub(crate) async fn begin_with_stored(self: &Arc<Self>) -> Result<()> {
        // Noted first and listed afterwards: what begins in between is new, and is told from its beginning.
        for (id, change) in self.changes().await? {
            let seen = Seen { change, ..Seen::default() };
            self.others.all().insert(id, Arc::new(AsyncMutex::new(seen)));
        }
        // Nobody was shown any of them yet.
        for id in self.list_stored_but_for_parting().await? {
            self.catalogue_mut().set_twin(id.as_str(), Some(Home::Stored));
        }
        let is_driven = |id: &SessionId| {
            let catalogue = self.catalogue();
            let known = catalogue.find(Some(Home::Stored), id.as_str());
            known.is_some_and(|it| it.card.state != SessionState::Idle)
        };
        let driven: Vec<SessionId> = self.others.all().keys().filter(|id| is_driven(id)).cloned().collect();
        self.look_at_stored(driven).await
    }

    /// Compares every session of the store with what was seen of it, and looks at those that changed.
    pub(crate) async fn compare_stored(self: &Arc<Self>) -> Result<()> {
        let listed = self.changes().await?;
        let (mut changed, mut there) = (Vec::new(), HashSet::with_capacity(listed.len()));
        for (id, change) in listed {
            there.insert(id.clone());
            let known = self.others.all().get(&id).cloned();
            let is_same = match known {
                // What began since is looked at from its beginning.
                None => false,
                Some(known) => {
                    let seen = known.lock().await;
                    let may_die = seen.driven.as_ref().is_some_and(|driven| driven.holds);
                    let is_same = seen.change == change && !change.is_empty();
                    drop(seen);
                    // Whoever drives it says nothing when dying.
                    is_same && !(may_die && self.has_died(&id).await.unwrap_or(true))
                }
            };
            if !is_same {
                changed.push(id);
            }
        }
        let gone: Vec<SessionId> =
            self.others.all().keys().filter(|id| !there.contains(id)).cloned().collect();
        self.look_at_stored(changed.into_iter().chain(gone)).await
    }

    /// Returns whether the driver of a session has died since it was last looked at, or was back.
    async fn has_died(&self, session: &SessionId) -> Result<bool> {
        let (store, id) = (self.store().clone(), session.clone());
        let is_dead = blocking(async move { store.open(&id).await?.driver().await }).await?.is_none();
        let orphans = self.others.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(orphans.contains(session) != is_dead)
    }

    /// Returns the sessions of the store, and what tells one state of each from another.
    async fn changes(&self) -> Result<Vec<(SessionId, String)>> {
        let backend = Arc::clone(self.store().backend());
        let listed = blocking(async move { backend.list(Space::Sessions, None, usize::MAX).await }).await?;
        let named = listed.into_iter().filter_map(|listed| Some((listed.name.parse().ok()?, listed.change)));
        Ok(named.collect())
    }

    pub(crate) async fn look_at_stored(
        self: &Arc<Self>,
        sessions: impl IntoIterator<Item = SessionId>,
    ) -> Result<()> {
        let mut looked = Ok(());
        for session in sessions {
            // One that cannot be read hides no other.
            looked = self.look_at_one(&session).await.and(looked);
        }
        looked
    }

    /// Looks at the stored sessions that somebody wants to hear of, so that nothing is missed that is said in them.
    pub(crate) async fn look_at_topics(self: &Arc<Self>, topics: impl Iterator<Item = &str>) {
        for id in topics.filter_map(|topic| topic.strip_prefix("session:")) {
            self.listen_to(id).await;
        }
    }

    /// Looks at a session, if it is in the store and others may write to it.
    pub(crate) async fn listen_to(self: &Arc<Self>, id: &str) {
        let Ok(session) = id.parse::<SessionId>() else { return };
        let is_stored = self.catalogue().find(None, id).is_none_or(|it| it.card.home == Home::Stored);
        if !self.others.all().contains_key(&session) || !(self.shares() || is_stored) {
            return;
        }
        // What is here can be read while the store is away.
        let patience = if is_stored { Duration::MAX } else { PATIENCE };
        match tokio::time::timeout(patience, self.look_at_one(&session)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                self.others.unsure().insert(session);
                tracing::warn!(%error, id, "a session of the store cannot be looked at");
            }
            Err(_) => {
                self.others.unsure().insert(session);
                tracing::warn!(id, "the store does not answer");
            }
        }
    }

    /// Looks at a session of the store, and tells what is new. From here on nothing that is said in it is missed.
    pub(crate) async fn look_at_one(self: &Arc<Self>, session: &SessionId) -> Result<()> {
        let seen = {
            let fresh = || Arc::new(AsyncMutex::new(Seen { next: Some(0), ..Seen::default() }));
            Arc::clone(self.others.all().entry(session.clone()).or_insert_with(fresh))
        };
        let mut seen = seen.lock().await;
        let (store, id) = (self.store().clone(), session.clone());
        let looked = blocking(async move {
            // Asked first: what comes behind this is another change.
            let listed = store.backend().stat(&id).await?;
            let (metadata, reached) = store.metadata_at(&id).await?;
            Ok((listed.map(|listed| listed.change), metadata, reached))
        });
        let (change, metadata, reached) = match looked.await {
            Ok(looked) => looked,
            Err(rethread_store::Error::SessionNotFound(_) | rethread_store::Error::Gone(_)) => {
                self.others.all().remove(session);
                self.tell_attention(session, Vec::new(), AttentionState::Withdrawn);
                self.forget_one(session);
                return Ok(());
            }
            Err(error) => return Err(Error::Store(error)),
        };
        let is_orphan = self.see_driver(&metadata).await?;
        // The copy here is shown no more: what it alone has is taken back from whoever was shown it.
        let parts = self.parts(&self.catalogue(), &metadata);
        let only_here = match parts {
            true => self.only_here(session).await?,
            false => Vec::new(),
        };
        // Listed before anything is told of it: whoever lists sessions after an event finds the event's session.
        self.others.note_look(session);
        self.put_stored(&metadata);
        for uuid in only_here {
            self.hub.publish(session.as_str(), "message.dropped", json!({ "uuid": uuid }));
        }
        self.tell_entries(session, &mut seen, &metadata, reached).await?;
        self.hear_of(&mut seen, &metadata, is_orphan);
        seen.change = change.unwrap_or_default();
        Ok(())
    }

    /// Tells what was said from the last look up to this one, but for what a transcript here says itself.
    async fn tell_entries(
        self: &Arc<Self>,
        session: &SessionId,
        seen: &mut Seen,
        metadata: &Metadata,
        reached: Position,
    ) -> Result<()> {
        let is_native = self.catalogue().find(Some(Home::Native), session.as_str()).is_some();
        let is_shown = self.admits(metadata.cwd.as_deref().map(Path::new));
        if seen.next.is_none() || !is_shown {
            (seen.next, seen.place) = (Some(reached), Driven::of(metadata).map(|driven| driven.place));
            if is_shown && is_native && self.others.unsure().contains(session) {
                seen.said_here = self.said_here(session).await?;
                (seen.next, seen.place) = (Some(0), None);
            }
        }
        let log = LogKey::new(session.clone(), LogName::Messages);
        while let Some(from) = seen.next.filter(|next| *next < reached) {
            let (backend, log) = (Arc::clone(self.store().backend()), log.clone());
            let chunk =
                blocking(async move { backend.read(&log, From::Position(from), CHUNK).await }).await?;
            seen.next = Some(chunk.next);
            if chunk.next == from {
                break;
            }
            let subject = Subject::new(session.as_str(), KIND);
            let mut drafts = self.hub.drafts(&subject, KIND);
            for line in &chunk.lines {
                let (entry, position) = (line.entry(), line.stamp().position);
                if line.stamp().kind == Kind::Note {
                    seen.place = Driven::noted(&entry).map(|driven| driven.place).or(seen.place.take());
                    continue;
                }
                let is_told_here = is_native && seen.place.as_ref() == Some(&self.place.id);
                if is_told_here || seen.said_here.contains(entry.id().as_str()) {
                    continue;
                }
                let item = MessageItem::of_stored(entry.as_bytes(), entry.id().as_str(), position);
                item.into_iter().for_each(|item| drafts.add_with(|bytes| item.small().write_to(bytes)));
            }
            if drafts.len() > 0 {
                self.hub.publish_all(&subject, drafts);
                self.hub.wake();
            }
        }
        seen.said_here = HashSet::new();
        self.others.unsure().remove(session);
        Ok(())
    }

    /// Sees whether the keeper that says it drives a session is alive. Returns whether it is dead.
    async fn see_driver(&self, metadata: &Metadata) -> Result<bool> {
        let session = &metadata.session_id;
        let is_held = self.driven_elsewhere(metadata).is_some_and(|driven| driven.holds);
        let is_orphan = is_held && {
            let (store, id) = (self.store().clone(), session.clone());
            blocking(async move { store.open(&id).await?.driver().await }).await?.is_none()
        };
        let mut orphans = self.others.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        match is_orphan {
            true => orphans.insert(session.clone()),
            false => orphans.remove(session),
        };
        Ok(is_orphan)
    }

    /// Returns what another keeper says of a session that it drives, or drove last, and that may be seen here.
    fn driven_elsewhere(&self, metadata: &Metadata) -> Option<Driven> {
        let is_ours = |driven: &Driven| driven.keeper == self.hub.epoch();
        Driven::of(metadata).filter(|driven| !is_ours(driven) && self.is_shown(metadata))
    }

    /// Hears what another keeper says of a session that it drives.
    fn hear_of(&self, seen: &mut Seen, metadata: &Metadata, is_orphan: bool) {
        let session = &metadata.session_id;
        if let Some(driver) = self.drivers.get(session.as_str()) {
            driver.heard();
        }
        let driven = self.driven_elsewhere(metadata);
        let mut now = driven.as_ref().map(|driven| driven.attention.clone()).unwrap_or_default();
        if is_orphan {
            for attention in now.iter_mut().filter(|it| it.state == AttentionState::Pending) {
                (attention.state, attention.decided_at) = (AttentionState::Lost, Some(Timestamp::now()));
            }
        }
        // Whoever goes on with a session takes what it finds unanswered for lost, and says so a moment later.
        let keeper = |driven: &Option<Driven>| driven.as_ref().map(|driven| driven.keeper.clone());
        let unspoken = match (keeper(&seen.driven), keeper(&driven)) {
            (Some(before), Some(now)) if before != now => AttentionState::Lost,
            _ => AttentionState::Withdrawn,
        };
        self.tell_attention(session, now, unspoken);
        seen.driven = driven;
    }

    /// Takes what another keeper asked and nobody answered for lost, so that it is known when it is asked again. Whoever was
    /// told so already is not told again.
    pub(super) fn adopt(&self, last: &Driven) {
        let is_open = |it: &&Attention| it.state == AttentionState::Pending;
        if last.keeper == self.hub.epoch() {
            return;
        }
        let known = self.others.requests();
        for attention in last.attention.iter().filter(is_open) {
            let id = &attention.shown.id;
            let is_told = known.get(id).is_some_and(|it| it.state != AttentionState::Pending)
                || self.others.over().holds(id);
            if let Some(lost) = self.attention.adopt(attention.clone()).filter(|_| !is_told) {
                self.hub.publish(&lost.shown.session_id, "attention.lost", &lost);
            }
        }
    }

    /// Tells what is new about the requests of a session. What nobody speaks of any more is over, and `unspoken`.
    fn tell_attention(&self, session: &SessionId, now: Vec<Attention>, unspoken: AttentionState) {
        let mut known = self.others.requests();
        let mut over = self.others.over();
        let mut before: HashMap<String, Attention> =
            known.extract_if(|_, it| it.shown.session_id == session.as_str()).collect();
        // What is in the journal here is told from there.
        for mut attention in now.into_iter().filter(|it| !self.attention.knows(&it.shown.id)) {
            let id = attention.shown.id.clone();
            let was = before.remove(&id).or_else(|| over.take(&id));
            // What is over stays over: the last that a keeper said before it died is that somebody is asked, and whoever
            // drives the session next has taken its lease before saying anything else. Only what was taken for lost may
            // turn out to have been decided just before, once its keeper is back.
            if let Some(was) = was.as_ref().filter(|was| was.state != AttentionState::Pending)
                && (attention.state == AttentionState::Pending || was.state != AttentionState::Lost)
            {
                attention = was.clone();
            }
            let state = attention.state;
            let kind = match (was.map(|was| was.state), state) {
                (Some(was), now) if was == now => None,
                (_, AttentionState::Pending) => Some(("attention.requested", json!(attention))),
                // Also if it was not seen before its keeper died: somebody may want to ask again.
                (_, AttentionState::Lost) => Some(("attention.lost", json!(attention))),
                (None, _) => None,
                (_, AttentionState::Withdrawn) => Some(("attention.withdrawn", json!(attention.outcome()))),
                _ => Some(("attention.decided", json!(attention.outcome()))),
            };
            known.insert(id, attention);
            if let Some((kind, data)) = kind {
                self.hub.publish(session.as_str(), kind, data);
            }
        }
        for attention in before.into_values().filter(|it| !self.attention.knows(&it.shown.id)) {
            if attention.state != AttentionState::Pending {
                over.keep(attention);
                continue;
            }
            let ended = Attention { state: unspoken, decided_at: Some(Timestamp::now()), ..attention };
            match unspoken {
                AttentionState::Lost => self.hub.publish(session.as_str(), "attention.lost", &ended),
                _ => self.hub.publish(session.as_str(), "attention.withdrawn", ended.outcome()),
            }
            over.keep(ended);
        }
    }

    /// Returns whether a session of the store may be seen, and is not in the trash.
    fn is_shown(&self, metadata: &Metadata) -> bool {
        metadata.trashed_at.is_none() && self.admits(metadata.cwd.as_deref().map(Path::new))
    }

    /// Returns a stored session as lists show it; `None` if they do not.
    pub(crate) fn stored_card(&self, metadata: &Metadata) -> Option<SessionCard> {
        if is_companion(metadata) || metadata.child || metadata.is_checkpoint || !self.is_shown(metadata) {
            return None;
        }
        let state = self.others.state(metadata);
        let is_driven = matches!(state, SessionState::Waiting | SessionState::Elsewhere);
        let driver_host = Driven::of(metadata).filter(|_| is_driven).map(|driven| driven.host);
        Some(SessionCard { state, driver_host, ..SessionCard::from(metadata) })
    }

    /// Returns which copy of a session counts that is in both homes: the one of whoever drove it last.
    pub(crate) fn twin_of(&self, metadata: &Metadata) -> Option<Home> {
        Driven::of(metadata).map(|driven| match driven.place == self.place.id {
            true => Home::Native,
            false => Home::Stored,
        })
    }

    /// Returns whether a session's copy here was shown so far, and is not any more: the one in the store is.
    pub(crate) fn parts(&self, catalogue: &Catalogue, metadata: &Metadata) -> bool {
        let known = catalogue.find(None, metadata.session_id.as_str());
        known.is_some_and(|known| known.native.is_some())
            && self.twin_of(metadata) == Some(Home::Stored)
            && self.stored_card(metadata).is_some()
    }

    fn put_stored(&self, metadata: &Metadata) {
        let twin = self.twin_of(metadata);
        self.change(|catalogue| catalogue.set_twin(metadata.session_id.as_str(), twin));
        match self.stored_card(metadata) {
            Some(card) => {
                self.change(|catalogue| catalogue.put(Known::stored(card)));
            }
            None => self.forget_one(&metadata.session_id),
        }
    }

    fn forget_one(&self, session: &SessionId) {
        let key = Key { home: Home::Stored, id: session.to_string() };
        self.change(|catalogue| catalogue.remove(&key));
    }
}

/// Waits for hints. `None`: anything may have changed.
async fn hinted(hints: Option<&Hints>) -> Option<HashSet<SessionId>> {
    let Some(hints) = hints else { return std::future::pending().await };
    let mut sessions = HashSet::new();
    let Ok(first) = hints.recv().await else { return std::future::pending().await };
    tokio::time::sleep(SOON).await;
    let mut next = Some(first);
    while let Some(hint) = next.take() {
        match hint {
            Hint::Session(session) => sessions.insert(session),
            Hint::Everything => return None,
        };
        next = hints.try_recv().ok();
    }
    Some(sessions)
}
