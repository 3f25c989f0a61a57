//! What all parts of a keeper share.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rethread_store::{Filter, Metadata, SessionId, Show, Store};
use rethread_transcripts::{ClaudeFolder, Links, ListOptions};
use tokio::sync::watch;

use crate::attention::{Attention, Attentions};
use crate::card::{Home, SessionCard, SessionHealth};
use crate::catalogue::{Catalogue, Known, News};
use crate::claude_files::ClaudeFiles;
use crate::credentials::{Credentials, hash};
use crate::defect::Defect;
use crate::door::Door;
use crate::drive::{Begin, Drivers};
use crate::error::{Error, Result};
use crate::hosts::Scheme;
use crate::hub::Hub;
use crate::mirror::Mirror;
use crate::peer;
use crate::pending::Pending;
use crate::prompts::Prompts;
use crate::roots::Roots;
use crate::settings::Settings;
use crate::shared::{Behind, Others, Place, Silences};
use crate::sketch::Sketches;

/// A mark on sessions of the store that only hold what the keeper adds to a native one.
pub const COMPANION: &str = "companion";

/// Returns whether a session of the store holds nothing but what a keeper adds to a native one.
pub fn is_companion(metadata: &Metadata) -> bool {
    metadata.extra.contains_key(COMPANION) && metadata.entry_count == 0
}

/// The keeper.
#[derive(Debug)]
pub(crate) struct Keeper {
    pub(crate) settings: Settings,
    pub(crate) started_at: Timestamp,
    pub(crate) door: Arc<Door>,
    pub(crate) roots: Roots,
    pub(crate) hub: Hub,
    pub(crate) native: Option<Native>,
    catalogue: RwLock<Catalogue>,
    /// Held while a native session is looked at.
    looking: Mutex<()>,
    /// When the stored sessions were listed last; held while they are.
    stored_at: tokio::sync::Mutex<Option<Instant>>,
    /// They are to be listed again, however short ago that was.
    stored_is_old: AtomicBool,
    /// True once the keeper is to end.
    pub(crate) ending: watch::Sender<bool>,
    pub(crate) drivers: Drivers,
    pub(crate) attention: Attentions,
    pub(crate) pending: Pending,
    pub(crate) prompts: Prompts,
    /// Sessions of the official SDKs.
    pub(crate) mirror: Mirror,
    pub(crate) sketches: Sketches,
    pub(crate) place: Place,
    /// What others do in the store.
    pub(crate) others: Others,
    /// What others do not know yet.
    pub(crate) behind: Behind,
    pub(crate) silences: Silences,
    /// Sessions that somebody decided to drive, and the processes of other programs that did so then.
    taken_over: Mutex<HashSet<(String, u32)>>,
    /// Sessions that were begun by this keeper: whoever asks for one of them twice gets the same.
    begun: Mutex<HashSet<String>>,
    agent_version: tokio::sync::OnceCell<Option<String>>,
}

/// Claude Code's folder.
#[derive(Debug)]
pub(crate) struct Native {
    pub(crate) folder: ClaudeFolder,
    pub(crate) files: ClaudeFiles,
}

/// How old a listing of the store may be that is shown.
const STORED: Duration = Duration::from_secs(2);

/// How long somebody waits for a listing of the store.
const STORED_WITHIN: Duration = Duration::from_secs(5);

/// Nothing beneath Claude Code's folder is followed: what is read here is shown to others.
fn links() -> Links {
    if Defect::FollowLinks.is_on() { Links::Follow } else { Links::Refuse }
}

/// Waits until the keeper is to end.
pub(crate) async fn over(ending: &mut watch::Receiver<bool>) {
    // Nobody to say so is over too.
    let _ = ending.wait_for(|ending| *ending).await;
}

impl Keeper {
    pub(crate) fn new(settings: Settings, address: SocketAddr) -> Result<Self> {
        let home = &settings.home;
        let credentials = Credentials::open(home)?;
        let scheme = if settings.tls.is_some() { Scheme::Https } else { Scheme::Http };
        let door = Door::new(home, address, &settings.allowed_hosts, scheme, credentials)?;
        let native = settings.claude_folder.as_ref().map(|folder| {
            let folder = ClaudeFolder::new(folder).links(links());
            Native { files: ClaudeFiles::new(folder.projects()), folder }
        });
        let (attention, lost) = Attentions::open(home)?;
        let keeper = Self {
            started_at: Timestamp::now(),
            roots: Roots::new(&settings.allowed_roots)?,
            hub: Hub::new(Arc::clone(&door.metrics)),
            door: Arc::new(door),
            native,
            catalogue: RwLock::default(),
            looking: Mutex::default(),
            stored_at: tokio::sync::Mutex::default(),
            stored_is_old: AtomicBool::default(),
            ending: watch::Sender::new(false),
            drivers: Drivers::default(),
            attention,
            pending: Pending::open(home)?,
            prompts: Prompts::open(home)?,
            mirror: Mirror::new(settings.store.clone()),
            sketches: Sketches::default(),
            place: Place::of(settings.claude_folder.as_deref()),
            others: Others::default(),
            behind: Behind::default(),
            silences: Silences::default(),
            taken_over: Mutex::default(),
            begun: Mutex::default(),
            agent_version: tokio::sync::OnceCell::new(),
            settings,
        };
        // What another keeper was allowed to show may be outside of the roots of this one.
        for attention in lost.iter().filter(|it| keeper.admits(it.shown.cwd.as_deref().map(Path::new))) {
            keeper.hub.publish(&attention.shown.session_id, "attention.lost", attention);
        }
        Ok(keeper)
    }

    pub(crate) fn store(&self) -> &Store {
        &self.settings.store
    }

    pub(crate) fn catalogue(&self) -> RwLockReadGuard<'_, Catalogue> {
        self.catalogue.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the list, and tells everybody before anybody else changes it: whoever hears of changes in another order than
    /// they were made in ends up with a list that never was.
    pub(crate) fn change<N: IntoIterator<Item = News>>(&self, work: impl FnOnce(&mut Catalogue) -> N) {
        let mut catalogue = self.catalogue_mut();
        let news = work(&mut catalogue);
        self.tell(news);
    }

    pub(crate) fn catalogue_mut(&self) -> RwLockWriteGuard<'_, Catalogue> {
        self.catalogue.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells everybody what changed in the list.
    pub(crate) fn tell(&self, news: impl IntoIterator<Item = News>) {
        for news in news {
            match news {
                News::Created(card) => self.hub.publish(&card.session_id, "session.created", &*card),
                News::Updated(card) => self.hub.publish(&card.session_id, "session.updated", &*card),
                News::Changed(card) => {
                    let SessionCard { session_id, home, health, .. } = &*card;
                    let data =
                        serde_json::json!({ "session_id": session_id, "home": home, "health": health });
                    self.hub.publish(session_id, "session.updated", &*card);
                    self.hub.publish(session_id, "health.changed", data);
                }
                News::Removed(card) => {
                    let SessionCard { session_id, home, cwd, .. } = &*card;
                    let data = serde_json::json!({ "session_id": session_id, "home": home, "cwd": cwd });
                    self.hub.publish(session_id, "session.removed", data);
                }
            }
        }
    }

    /// Returns whether sessions of a directory may be seen.
    pub(crate) fn admits(&self, cwd: Option<&Path>) -> bool {
        self.roots.admit(cwd) || Defect::ForgetTheRoots.is_on()
    }

    /// Lists Claude Code's sessions anew.
    pub(crate) fn list_native(&self) -> Result<Vec<News>> {
        let Some(native) = &self.native else { return Ok(Vec::new()) };
        let plain = ListOptions::default().links(links());
        // A cache that cannot be written is no reason not to answer.
        let listing = match native.folder.list(&plain.clone().index(self.cache("sessions"))) {
            Ok(listing) => listing,
            Err(_) => native.folder.list(&plain)?,
        };
        let admitted = listing.sessions.into_iter().filter(|session| self.admits(session.cwd.as_deref()));
        let admitted = admitted.map(|session| self.without_us(session));
        Ok(self.catalogue_mut().replace(Home::Native, admitted.map(Known::native).collect()))
    }

    /// Looks at one session of Claude Code's again, which may be new, and tells what is. Returns whether it may be shown.
    pub(crate) fn look_at(&self, path: &Path) -> bool {
        // One after the other: of two looks at one file the one that saw less may be the last to say so.
        let _looking = self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let session = self.see(path);
        let is_shown = session.is_some();
        self.change(|catalogue| session.and_then(|session| catalogue.put(Known::native(session))));
        is_shown
    }

    fn see(&self, path: &Path) -> Option<rethread_transcripts::Session> {
        let native = self.native.as_ref()?;
        let known = {
            let catalogue = self.catalogue();
            catalogue
                .at(path)
                .and_then(|id| catalogue.find(Some(Home::Native), id))
                .and_then(|it| it.native.clone())
        };
        let looked = match known {
            Some(session) => native.folder.again(&session, links()),
            None => native.folder.look(path, links()),
        };
        let session = looked.ok().filter(|session| self.admits(session.cwd.as_deref()))?;
        let session = self.without_us(session);
        self.pending.remove(&session.session_id);
        Some(session)
    }

    /// Lists the stored sessions anew, unless that was done just now.
    pub(crate) async fn list_stored(self: &Arc<Self>) -> Result<()> {
        let parting = self.list_stored_but_for_parting().await?;
        self.look_at_stored(parting).await
    }

    /// Does that, and returns the sessions whose copies here are to be shown no more: whoever was shown one has to hear of
    /// it.
    pub(crate) async fn list_stored_but_for_parting(&self) -> Result<Vec<SessionId>> {
        // One after the other: of two at once the one that began first may be the last to end. Whoever does not insist is
        // content with what was known before.
        let mut at = match self.stored_at.try_lock() {
            Ok(at) => at,
            Err(_) if self.stored_is_old.load(Ordering::Acquire) => self.stored_at.lock().await,
            Err(_) => return Ok(Vec::new()),
        };
        let is_old = self.stored_is_old.swap(false, Ordering::AcqRel);
        if !is_old && at.is_some_and(|at| at.elapsed() < STORED) {
            return Ok(Vec::new());
        }
        let begun = Instant::now();
        *at = Some(begun);
        let mut filter = Filter::default();
        (filter.archived, filter.children) = (Show::Also, Show::Hide);
        let listing = self.store().list(&filter).await?;
        let mut parting = Vec::new();
        self.change(|catalogue| {
            let (mut news, looked) = (Vec::new(), self.others.looked_since(begun));
            let is_fresh = |id: &SessionId| !looked.contains(id);
            for metadata in listing.sessions.iter().filter(|metadata| is_fresh(&metadata.session_id)) {
                let (id, twin) = (metadata.session_id.as_str(), self.twin_of(metadata));
                match self.parts(catalogue, metadata) {
                    true => parting.push(metadata.session_id.clone()),
                    false => news.extend(catalogue.set_twin(id, twin)),
                }
                news.extend(Begin::mode_of(metadata).and_then(|mode| catalogue.note_mode(id, mode)));
            }
            let cards = listing.sessions.iter().filter(|metadata| is_fresh(&metadata.session_id));
            let cards = cards.filter_map(|metadata| self.stored_card(metadata));
            let lost = listing.unreadable.iter().filter(|(id, _)| is_fresh(id));
            let lost = lost.filter_map(|(id, error)| self.unreadable_card(id, error));
            let known = looked.iter().filter_map(|id| catalogue.find(Some(Home::Stored), id.as_str()));
            let all = cards.chain(lost).map(Known::stored).chain(known.cloned()).collect();
            news.extend(catalogue.replace(Home::Stored, all));
            news
        });
        Ok(parting)
    }

    /// Returns what is known of a stored session that cannot be read. Of one that was erased there is nothing to know.
    fn unreadable_card(&self, id: &SessionId, error: &rethread_store::Error) -> Option<SessionCard> {
        let is_erased = matches!(error, rethread_store::Error::Erased(_));
        let metadata = Metadata::new(id.clone(), Timestamp::UNIX_EPOCH);
        (!is_erased && self.admits(None)).then(|| SessionCard {
            created_at: None,
            message_count: None,
            health: SessionHealth::unreadable(error.to_string()),
            ..SessionCard::from(&metadata)
        })
    }

    /// Lists the stored sessions anew if that can be done now; what was known of them stays otherwise. A database that is
    /// away for a moment takes nothing from what is on this machine.
    pub(crate) async fn refresh_stored(self: &Arc<Self>) {
        match tokio::time::timeout(STORED_WITHIN, self.list_stored()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the store cannot be listed"),
            Err(_) => tracing::warn!("the store takes too long to list"),
        }
    }

    /// Returns whether other machines use the store too: then sessions that are driven here are kept up to date there.
    pub(crate) fn shares(&self) -> bool {
        let capabilities = self.store().backend().capabilities();
        capabilities.across_hosts && capabilities.keeps
    }

    /// Tells that somebody decided about a request.
    pub(crate) fn tell_decision(&self, attention: &Attention, by: &str) {
        let session = &attention.shown.session_id;
        self.door.audit.write("decision", by, serde_json::json!({
            "request": attention.shown.id, "session": session, "state": attention.state, "digest": attention.digest,
        }));
        self.hub.publish(session, "attention.decided", attention.outcome());
    }

    /// Has the next list look at the store in any case.
    pub(crate) fn forget_stored(&self) {
        self.stored_is_old.store(true, Ordering::Release);
    }

    /// Returns where to keep what was learnt.
    pub(crate) fn cache(&self, name: &str) -> PathBuf {
        let folder = self.settings.claude_folder.as_deref().unwrap_or(Path::new(""));
        self.settings.cache.join(format!("{}-{name}", &hash(&folder.to_string_lossy())[..16]))
    }

    /// Opens a native session's transcript, and only that.
    pub(crate) fn open_native(&self, path: &Path) -> Result<std::fs::File> {
        let native = self.native.as_ref().ok_or(Error::NotRunning)?;
        native.files.open(path).map_err(Error::io("open", path))
    }
}

impl Keeper {
    /// Notes that a session is about to begin; returns whether nobody else is at it, or was.
    pub(crate) fn note_begun(&self, id: &str) -> bool {
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever asks again does so within seconds, and later what was begun is found.
        if begun.len() >= 10_000 {
            begun.clear();
        }
        begun.insert(id.to_owned())
    }

    /// Forgets an id that came to nothing: whoever asks again with the same key begins anew.
    pub(crate) fn forget_begun(&self, id: &str) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    /// Notes that somebody decided to drive a session though these programs do. One that comes later is another matter.
    pub(crate) fn note_take_over(&self, id: &str) {
        let Some(native) = &self.native else { return };
        let there = native.folder.live().into_iter().filter(|live| live.session == id);
        let mut taken_over = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        taken_over.extend(there.map(|live| (live.session, live.pid)));
    }

    pub(crate) fn forget_take_over(&self, id: &str) {
        self.taken_over.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| of != id);
    }

    /// Returns the version of the agent's program, asked once.
    pub(crate) async fn agent_version(&self) -> Option<String> {
        let agent = self.settings.agent.as_ref()?;
        let ask = async || {
            let mut command = tokio::process::Command::new(&agent.program);
            command.arg("--version").stdin(std::process::Stdio::null()).kill_on_drop(true);
            command.envs(agent.environment.iter().map(|(name, value)| (name, value)));
            let output = tokio::time::timeout(Duration::from_secs(10), command.output()).await.ok()?.ok()?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            said.split_whitespace().next().map(str::to_owned)
        };
        self.agent_version.get_or_init(ask).await.clone()
    }

    /// Returns whether a process of Claude Code's drives its session, and neither for us nor to no avail.
    pub(crate) fn counts_as_elsewhere(&self, live: &rethread_transcripts::Live) -> bool {
        let taken_over = self.taken_over.lock().unwrap_or_else(PoisonError::into_inner);
        let is_ours = self.driven().contains(&live.pid)
            // Also before an agent has said who it is: its register is there first.
            || peer::is_guarded_here(live.pid);
        !is_ours && !taken_over.contains(&(live.session.clone(), live.pid))
    }

    /// Takes our own agents for nobody, and those that somebody took a session over from: a session that we drive is not
    /// driven elsewhere, unless somebody else does too.
    fn without_us(&self, mut session: rethread_transcripts::Session) -> rethread_transcripts::Session {
        if let Some(live) = &session.live
            && !self.counts_as_elsewhere(live)
        {
            let all = self.native.iter().flat_map(|native| native.folder.live());
            let mut others = all.filter(|live| live.session == session.session_id);
            session.live = others.find(|live| self.counts_as_elsewhere(live));
        }
        session
    }
}
