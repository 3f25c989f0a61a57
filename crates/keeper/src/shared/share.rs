//! Tells other keepers of the store what a session does that is driven here: what is said, what waits for a decision.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use rethread_bridge::{Error, Shadow};
use rethread_store::Session;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::driven::{Driven, Proposal};
use crate::attention::Undecided;
use crate::capture::blocking;
use crate::card::Home;
use crate::drive::Driver;
use crate::keeper::Keeper;

/// How long more of the same is waited for.
const SOON: Duration = Duration::from_millis(50);
/// How often decisions are looked for while something waits for one, should no hint come.
const WAITING: Duration = Duration::from_secs(1);
/// How often at most it is made sure that nobody took over.
const RENEWAL: Duration = Duration::from_secs(1);
/// How often it is looked for what was missed otherwise.
const QUIET: Duration = Duration::from_secs(10);
/// How long the last words may take. What did not get through is made up for later.
const LAST_WORDS: Duration = Duration::from_secs(15);

/// Keeps a stored session up to date with one that is driven here, as long as the lease is held.
#[derive(Debug)]
pub(crate) struct Share {
    wake: Arc<Wake>,
    /// Returns whether everything was told.
    task: JoinHandle<bool>,
}

#[derive(Debug, Default)]
struct Wake {
    notify: Notify,
    /// Others wrote to the session: they may have decided something, or taken over.
    others: AtomicBool,
    ending: AtomicBool,
}

impl Share {
    /// Begins; `stored` is the handle of whoever holds the lease.
    pub(crate) fn begin(keeper: &Arc<Keeper>, driver: &Arc<Driver>, stored: Session) -> Self {
        let wake: Arc<Wake> = Arc::default();
        let sharing = Sharing {
            keeper: Arc::downgrade(keeper),
            driver: Arc::downgrade(driver),
            stored,
            shadow: None,
            told: Value::Null,
            renewed: Instant::now(),
            suspects: false,
        };
        let task = tokio::spawn(sharing.run(Arc::clone(&wake)));
        Self { wake, task }
    }

    /// Says that there is something new to tell.
    pub(crate) fn soon(&self) {
        self.wake.notify.notify_one();
    }

    /// Says that others wrote to the session.
    pub(crate) fn heard(&self) {
        self.wake.others.store(true, Ordering::Release);
        self.wake.notify.notify_one();
    }

    /// Tells what is left, and ends. Returns whether it got through.
    pub(crate) async fn finish(mut self) -> bool {
        self.wake.ending.store(true, Ordering::Release);
        self.wake.notify.notify_one();
        match tokio::time::timeout(LAST_WORDS, &mut self.task).await {
            Ok(told) => told.unwrap_or(false),
            Err(_) => {
                self.task.abort();
                false
            }
        }
    }
}

struct Sharing {
    keeper: Weak<Keeper>,
    driver: Weak<Driver>,
    stored: Session,
    shadow: Option<Shadow>,
    told: Value,
    /// When it was last made sure that nobody took over.
    renewed: Instant,
    /// Somebody may have since.
    suspects: bool,
}

impl Sharing {
    /// Returns whether everything was told at its end.
    async fn run(mut self, wake: Arc<Wake>) -> bool {
        let mut others = true;
        loop {
            let is_last = wake.ending.load(Ordering::Acquire);
            let (Some(keeper), Some(driver)) = (self.keeper.upgrade(), self.driver.upgrade()) else {
                return false;
            };
            let mut is_told = true;
            let waits = match self.round(&keeper, &driver, others, is_last).await {
                Ok(waits) => waits,
                Err(Error::Store(rethread_store::Error::Fenced { .. })) => {
                    // Not here: ending the agent waits for the end of this.
                    tokio::spawn(async move { driver.renew(&keeper).await });
                    return true;
                }
                Err(error) => {
                    tracing::warn!(%error, session = self.stored.id().as_str(), "others cannot be told");
                    is_told = false;
                    true
                }
            };
            drop((keeper, driver));
            if is_last {
                return is_told;
            }
            let patience = if waits || self.suspects { WAITING } else { QUIET };
            let is_woken = tokio::time::timeout(patience, wake.notify.notified()).await.is_ok();
            others = wake.others.swap(false, Ordering::AcqRel) || !is_woken;
            if !wake.ending.load(Ordering::Acquire) {
                tokio::time::sleep(SOON).await;
            }
        }
    }

    /// Tells what is new, and carries out what was decided elsewhere. Returns whether something waits for a decision.
    async fn round(
        &mut self,
        keeper: &Arc<Keeper>,
        driver: &Arc<Driver>,
        others: bool,
        is_last: bool,
    ) -> Result<bool, Error> {
        let session = self.stored.id().as_str().to_owned();
        let known =
            || keeper.catalogue().find(Some(Home::Native), &session).and_then(|known| known.native.clone());
        // A transcript may be so new that nobody has seen it yet, and this the last look at it.
        let native = known().or_else(|| {
            let path = keeper.transcript_of(&session)?;
            keeper.look_at(&path);
            known()
        });
        if let Some(native) = native.clone() {
            let (shadow, stored) = (self.shadow.take(), self.stored.clone());
            let gone_on = blocking(async move {
                match shadow {
                    None => Shadow::begin(&native, stored).await,
                    Some(mut shadow) => {
                        shadow.go_on().await?;
                        Ok(shadow)
                    }
                }
            });
            self.shadow = Some(gone_on.await?);
        }
        let mut driven = Driven::here(keeper, &session, driver.doing(keeper));
        driven.holds = !is_last;
        let (told, waits) = (json!(driven), keeper.attention.is_waiting(&session));
        if told != self.told {
            let note = move |metadata: &mut rethread_store::Metadata| driven.note(metadata);
            match (&self.shadow, &native) {
                (Some(shadow), Some(native)) => drop(shadow.describe(native, note).await?),
                _ => drop(self.stored.update(note).await?),
            }
            self.told = told;
        }
        if others {
            self.hear(keeper, driver).await?;
        }
        Ok(waits)
    }

    /// Looks at what others wrote.
    async fn hear(&mut self, keeper: &Arc<Keeper>, driver: &Arc<Driver>) -> Result<(), Error> {
        let proposals = Proposal::all_of(&self.stored.metadata().await?);
        // Whoever stood still for longer than its lease may find decisions that do not concern it any more.
        let proposals = if proposals.is_empty() || driver.drives().await { proposals } else { Vec::new() };
        for (request, proposal) in proposals {
            let own = Arc::clone(keeper);
            let decided = tokio::task::spawn_blocking(move || {
                own.attention.decide(&request, &proposal.digest, proposal.verdict(), &proposal.by)
            });
            match decided.await {
                Ok(Ok(attention)) => {
                    let by = attention.decided_by.clone().unwrap_or_default();
                    keeper.tell_decision(&attention, &by);
                }
                // It was decided here, or is over.
                Ok(Err(Undecided::Over(_) | Undecided::Unknown)) => {}
                Ok(Err(undecided)) => tracing::warn!(?undecided, "a decision from elsewhere does not count"),
                Err(error) => tracing::error!(%error, "a decision from elsewhere could not be taken"),
            }
        }
        // One that was taken over ends its agent as soon as it can know.
        if self.renewed.elapsed() >= RENEWAL {
            self.renewed = Instant::now();
            let (driver, keeper) = (Arc::clone(driver), Arc::clone(keeper));
            tokio::spawn(async move { driver.renew(&keeper).await });
            self.suspects = false;
        } else {
            self.suspects = true;
        }
        Ok(())
    }
}
