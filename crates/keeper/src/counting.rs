//! Counts the messages of sessions in the background, and finds what of them is damaged: the newest first, and none that
//! is just being written to.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use rethread_transcripts::{Count, Session, Transcript};

use crate::catalogue::{Known, News};
use crate::keeper::Keeper;

/// How long after its start a keeper begins to count.
const FIRST: Duration = Duration::from_secs(2);
/// How often it looks for what has to be counted again.
const EVERY: Duration = Duration::from_secs(30);
/// A session that was written to within this time will be again.
const AT_REST: SignedDuration = SignedDuration::from_secs(20);
/// How many counts are kept at once, so that little is lost with a keeper that ends.
const TOGETHER: usize = 500;
/// How many of them everybody is told of; the others are there when they are listed.
const TOLD: usize = 50;

/// Counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Counting {
    is_over: Arc<AtomicBool>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.task.abort();
    }
}

impl Counting {
    pub(crate) fn start(keeper: &Arc<Keeper>) -> Self {
        let is_over: Arc<AtomicBool> = Arc::default();
        let (keeper, over) = (Arc::clone(keeper), Arc::clone(&is_over));
        let task = tokio::spawn(async move {
            let mut tally = Tally { keeper, is_over: over, failed: HashMap::new() };
            tokio::time::sleep(FIRST).await;
            loop {
                let counted = tokio::task::spawn_blocking(move || {
                    tally.go_through();
                    tally
                });
                match counted.await {
                    Ok(same) => tally = same,
                    Err(error) => return tracing::error!(%error, "counting messages failed"),
                }
                tokio::time::sleep(EVERY).await;
            }
        });
        Self { is_over, task }
    }
}

struct Tally {
    keeper: Arc<Keeper>,
    is_over: Arc<AtomicBool>,
    /// Files that could not be counted, and how long they were then.
    failed: HashMap<PathBuf, u64>,
}

impl Tally {
    fn go_through(&mut self) {
        let uncounted = self.uncounted();
        for (number, sessions) in uncounted.chunks(TOGETHER).enumerate() {
            let counts: Vec<Count> =
                sessions.iter().map_while(|session| self.count(session)).flatten().collect();
            let Some(native) = &self.keeper.native else { return };
            // A cache that cannot be written is no reason not to know.
            let _ = native.folder.keep_counts(&self.keeper.cache("sessions"), counts.iter().cloned());
            self.take(&counts, if number == 0 { TOLD } else { 0 });
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// Returns what has to be counted, the newest first.
    fn uncounted(&self) -> Vec<Arc<Session>> {
        let rested = Timestamp::now() - AT_REST;
        let catalogue = self.keeper.catalogue();
        let uncounted = catalogue.natives().filter(|session| {
            session.message_count.is_none()
                && session.updated_at < rested
                && self.failed.get(&session.path) != Some(&session.size)
        });
        let mut uncounted: Vec<Arc<Session>> = uncounted.cloned().collect();
        uncounted.sort_unstable_by_key(|session| std::cmp::Reverse(session.updated_at));
        uncounted
    }

    /// Counts one session: `None` if nobody needs it any more, `Some(None)` if it cannot be read.
    fn count(&mut self, session: &Session) -> Option<Option<Count>> {
        if self.is_over.load(Ordering::Relaxed) {
            return None;
        }
        let begun = Instant::now();
        let file = self.keeper.open_native(&session.path).ok();
        let transcript = file.and_then(|file| Transcript::of(file, &session.path).ok());
        let count = transcript.map(|transcript| Count::of(&transcript));
        if count.as_ref().is_none_or(|count| count.size != session.size) {
            self.failed.insert(session.path.clone(), session.size);
        }
        // Half of the time belongs to everybody else.
        std::thread::sleep(begun.elapsed());
        Some(count)
    }

    /// Lets everybody know what was counted, of sessions that have not changed since.
    fn take(&self, counts: &[Count], told: usize) {
        let mut news = Vec::new();
        let mut catalogue = self.keeper.catalogue_mut();
        for count in counts {
            let id = catalogue.at(&count.path).map(str::to_owned);
            let known =
                id.and_then(|id| catalogue.find(Some(crate::card::Home::Native), &id)?.native.clone());
            let Some(session) = known.filter(|session| session.size == count.size) else { continue };
            let mut counted = (*session).clone();
            counted.message_count = Some(count.messages);
            counted.damage.clone_from(&count.damage);
            news.extend(catalogue.put(Known::native(counted)));
        }
        let is_told = |(number, news): &(usize, News)| *number < told || matches!(news, News::Changed(_));
        self.keeper.tell(news.into_iter().enumerate().filter(is_told).map(|(_, news)| news));
    }
}
