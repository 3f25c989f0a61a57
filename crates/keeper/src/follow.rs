//! What happens in Claude Code's folder, told to everybody: new lines at once, what lists show a moment later.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rethread_transcripts::{From, Happening, Line, Live, Means, News, Watch};
use tokio::sync::{Notify, watch};

use crate::card::Home;
use crate::catalogue::Key;
use crate::counting::Counting;
use crate::error::Result;
use crate::keeper::Keeper;
use crate::run::Run;

/// How long lists wait for more of the same.
const SOON: Duration = Duration::from_millis(150);
/// How often a file is looked at that may not be shown.
const REFUSED: Duration = Duration::from_secs(1);

/// What has to be looked at again.
#[derive(Debug, Default)]
struct Dirty {
    paths: Mutex<HashSet<PathBuf>>,
    notify: Notify,
}

/// Follows Claude Code's folder until it is dropped.
#[derive(Debug)]
pub(crate) struct Follower {
    _watches: Vec<Watch>,
    _counting: Option<Counting>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

impl Follower {
    /// Lists all sessions, and follows what happens to them.
    pub(crate) fn start(keeper: &Arc<Keeper>) -> Result<Self> {
        let Some(native) = &keeper.native else {
            return Ok(Self { _watches: Vec::new(), _counting: None, tasks: Vec::new() });
        };
        let dirty: Arc<Dirty> = Arc::default();
        // Watched first and listed afterwards, so that nothing happens unseen in between.
        let (own, noted) = (Arc::clone(keeper), Arc::clone(&dirty));
        let mut lines = Lines::new(own, noted);
        let watch = Watch::all_read(&native.folder, From::Now, Means::Best, move |news| lines.take(news))?;
        keeper.list_native()?;
        let (told, processes) = watch::channel(Vec::new());
        let live = Watch::live(&native.folder, move |live| drop(told.send_replace(live)))?;
        let tasks = vec![
            tokio::spawn(refresh(Arc::clone(keeper), dirty)),
            tokio::spawn(see_processes(Arc::clone(keeper), processes)),
        ];
        Ok(Self { _watches: vec![watch, live], _counting: Some(Counting::start(keeper)), tasks })
    }
}

/// Where new lines go.
struct Lines {
    keeper: Arc<Keeper>,
    dirty: Arc<Dirty>,
    /// Files that may not be shown, and when they were looked at.
    refused: HashMap<PathBuf, Instant>,
    /// Files that are what they seem: no links. A file that is replaced is looked at again.
    trusted: HashSet<PathBuf>,
    /// The lines of one file that come at once, until it rests; none within if they may not be shown.
    run: Option<Option<Run>>,
}

impl Lines {
    fn new(keeper: Arc<Keeper>, dirty: Arc<Dirty>) -> Self {
        Self { keeper, dirty, refused: HashMap::new(), trusted: HashSet::new(), run: None }
    }

    fn take(&mut self, news: News<'_>) {
        let News { path, event } = news;
        match event {
            Happening::Added(line) => self.add(path, line),
            Happening::Rested => self.rest(),
            Happening::Restarted | Happening::Removed => {
                self.rest();
                self.trusted.remove(path);
                let Some((session, agent)) = owner(path) else { return };
                let Some(transcript) = transcript_of(path, agent.as_deref()) else { return };
                match event {
                    Happening::Removed => self.removed(path, transcript, session, agent),
                    _ => self.soon(transcript),
                }
            }
        }
    }

    fn add(&mut self, path: &Path, line: Line<'_>) {
        if self.run.is_none() {
            self.run = Some(self.begin(path));
        }
        if let Some(Some(run)) = &mut self.run {
            run.add(&self.keeper, line);
        }
    }

    /// Ends the run: what was looked at for it holds no longer.
    fn rest(&mut self) {
        if let Some(Some(run)) = self.run.take() {
            let transcript = run.end(&self.keeper);
            self.soon(transcript);
        }
    }

    /// Begins with lines of a file, unless they may not be shown.
    fn begin(&mut self, path: &Path) -> Option<Run> {
        let (session, agent) = owner(path)?;
        let transcript = transcript_of(path, agent.as_deref())?;
        let is_shown = self.is_trusted(path) && self.is_shown(&transcript);
        is_shown.then(|| Run::new(&self.keeper, session, agent, transcript))
    }

    fn removed(&self, path: &Path, transcript: PathBuf, session: String, agent: Option<String>) {
        // A notice may be late: what is there again, or was put back, is not gone.
        if self.keeper.open_native(path).is_ok() {
            return self.soon(transcript);
        }
        if agent.is_some() {
            return;
        }
        // One that is being driven will be there again.
        if let Some(driver) = self.keeper.drivers.get(&session).filter(|driver| driver.is_busy()) {
            return self.keeper.add_pending(&driver.begin());
        }
        let key = Key { home: Home::Native, id: session };
        self.keeper.change(|catalogue| catalogue.remove(&key));
    }

    /// Returns whether a file is no link, and none leads to it.
    fn is_trusted(&mut self, path: &Path) -> bool {
        self.trusted.contains(path)
            || self.keeper.open_native(path).is_ok() && self.trusted.insert(path.to_owned())
    }

    /// Returns whether a session may be shown; one that is new is looked at.
    fn is_shown(&mut self, transcript: &Path) -> bool {
        if self.keeper.catalogue().at(transcript).is_some() {
            return true;
        }
        let now = Instant::now();
        if self.refused.get(transcript).is_some_and(|at| now.duration_since(*at) < REFUSED) {
            return false;
        }
        let is_shown = self.keeper.look_at(transcript);
        match is_shown {
            true => self.refused.remove(transcript),
            false => self.refused.insert(transcript.to_owned(), now),
        };
        is_shown
    }

    fn soon(&self, path: PathBuf) {
        self.dirty.paths.lock().unwrap_or_else(PoisonError::into_inner).insert(path);
        self.dirty.notify.notify_one();
    }
}

/// Looks again at what was written to.
async fn refresh(keeper: Arc<Keeper>, dirty: Arc<Dirty>) {
    loop {
        dirty.notify.notified().await;
        tokio::time::sleep(SOON).await;
        let paths = std::mem::take(&mut *dirty.paths.lock().unwrap_or_else(PoisonError::into_inner));
        let own = Arc::clone(&keeper);
        let looked = tokio::task::spawn_blocking(move || {
            for path in paths {
                own.look_at(&path);
            }
        });
        if let Err(error) = looked.await {
            tracing::error!(%error, "looking at sessions again failed");
        }
    }
}

/// Sees processes of Claude Code's own come and go.
async fn see_processes(keeper: Arc<Keeper>, mut processes: watch::Receiver<Vec<Live>>) {
    let mut before: HashMap<String, Vec<(u32, Option<String>)>> = HashMap::new();
    while processes.changed().await.is_ok() {
        let processes = processes.borrow_and_update().clone();
        let mut now: HashMap<String, Vec<(u32, Option<String>)>> = HashMap::new();
        for live in processes {
            let driver = keeper.drivers.get(&live.session).filter(|driver| driver.is_running());
            if let Some(driver) = driver.filter(|_| keeper.counts_as_elsewhere(&live)) {
                // Our agent does not hear what is said there, and would go on as if nothing had been.
                let own = Arc::clone(&keeper);
                tokio::spawn(async move { driver.end_if_idle(&own, Duration::ZERO).await });
            }
            now.entry(live.session).or_default().push((live.pid, live.status));
        }
        now.values_mut().for_each(|processes| processes.sort());
        let changed = now.iter().filter(|(id, it)| before.get(*id) != Some(it)).map(|(id, _)| id);
        let gone = before.keys().filter(|id| !now.contains_key(*id));
        let paths: Vec<PathBuf> = {
            let catalogue = keeper.catalogue();
            let find = |id: &String| catalogue.find(Some(Home::Native), id).and_then(|it| it.native.clone());
            changed.chain(gone).filter_map(find).map(|session| session.path.clone()).collect()
        };
        for path in paths {
            keeper.look_at(&path);
        }
        before = now;
    }
}

/// Returns the session that a transcript belongs to, and the subagent whose it is.
fn owner(path: &Path) -> Option<(String, Option<String>)> {
    let stem = path.file_stem()?.to_str()?;
    match stem.strip_prefix("agent-") {
        Some(agent) => {
            let folder = path.parent().filter(|it| it.file_name().is_some_and(|name| name == "subagents"))?;
            Some((folder.parent()?.file_name()?.to_str()?.to_owned(), Some(agent.to_owned())))
        }
        None => Some((stem.to_owned(), None)),
    }
}

/// Returns the transcript of the session that a file belongs to.
fn transcript_of(path: &Path, agent: Option<&str>) -> Option<PathBuf> {
    match agent {
        Some(_) => Some(path.parent()?.parent()?.with_extension("jsonl")),
        None => Some(path.to_owned()),
    }
}
