//! The connections to one database: lent for a call, and given back if its end is known.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use deadpool::managed::{Pool, PoolError, QueueMode};
use rethread_store::Result;
use tokio::runtime::{Handle, Runtime};
use tokio::task::JoinSet;
use tokio::time::error::Elapsed;

use crate::connection::{Connection, Maker};
use crate::failure::{Failure, backend};
use crate::lent::{Lent, Purpose};
use crate::limbo::Limbo;
use crate::schema::{LAYOUTS, Whose};
use crate::settings::Settings;

/// How many connections there are at once: as many as a store has writers, and as many readers beside them.
const AT_ONCE: usize = 16;

type Postgres<T> = Result<T, tokio_postgres::Error>;

/// The connections to one database.
#[derive(Debug)]
pub(crate) struct Connections {
    pool: Pool<Maker>,
    place: String,
    patience: Duration,
    limbo: Limbo,
    /// Whether the tables are known to be there, and to be ours.
    is_ready: AtomicBool,
    /// Where the connections live; `None` only while this is dropped.
    runtime: Option<Runtime>,
}

impl Connections {
    pub(crate) fn new(settings: Settings) -> Result<Self> {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).thread_name("rethread-postgres").enable_all().build();
        let runtime = runtime.map_err(|error| backend("begin", error))?;
        let (place, patience) = (settings.to_string(), settings.patience);
        let maker = Maker { settings, runtime: runtime.handle().clone() };
        // The one that was used last knows its statements.
        let pool = Pool::builder(maker)
            .max_size(AT_ONCE)
            .queue_mode(QueueMode::Lifo)
            .build()
            .map_err(|error| backend("begin", error))?;
        let (limbo, is_ready) = (Limbo::default(), AtomicBool::new(false));
        Ok(Self { pool, place, patience, limbo, is_ready, runtime: Some(runtime) })
    }

    /// Returns where the connections live. What runs there ends with them.
    pub(crate) fn runtime(&self) -> &Handle {
        let Some(runtime) = &self.runtime else { unreachable!("it is there until this is dropped") };
        runtime.handle()
    }

    /// Reads from the database; `None` if there is nothing yet. What was lost on its way is asked for again.
    pub(crate) async fn read<T, Work>(
        &self,
        action: &'static str,
        work: impl Fn(Connection) -> Work,
    ) -> Result<Option<T>>
    where
        Work: Future<Output = Postgres<T>>,
    {
        match self.read_once(action, &work).await {
            Err(Failure::Lost(_)) => Ok(self.read_once(action, &work).await?),
            answer => Ok(answer?),
        }
    }

    async fn read_once<T, Work>(
        &self,
        action: &'static str,
        work: impl Fn(Connection) -> Work,
    ) -> Result<Option<T>, Failure>
    where
        Work: Future<Output = Postgres<T>>,
    {
        if !self.is_ready.load(Ordering::Acquire) {
            let lent = self.lend(Purpose::Read).await?;
            let found = self.wait(LAYOUTS.look(lent.connection())).await;
            match lent.end("look into", found)?.whose(&self.place)? {
                Whose::Nobodys => return Ok(None),
                Whose::Ours => self.is_ready.store(true, Ordering::Release),
            }
        }
        let lent = self.lend(Purpose::Read).await?;
        let answer = self.wait(work(lent.connection())).await;
        lent.end(action, answer).map(Some)
    }

    /// Changes the database. Unless the server refused, it may have done so even if this is an error; but by the time
    /// of the next call it has, or never will.
    pub(crate) async fn write<T, Work>(
        &self,
        action: &'static str,
        work: impl FnOnce(Connection) -> Work,
    ) -> Result<T, Failure>
    where
        Work: Future<Output = Postgres<T>>,
    {
        if !self.is_ready.load(Ordering::Acquire) {
            let lent = self.lend(Purpose::Write).await?;
            let made = self.wait(LAYOUTS.make(lent.connection())).await;
            lent.end("begin", made)?.whose(&self.place)?;
            self.is_ready.store(true, Ordering::Release);
        }
        let lent = self.lend(Purpose::Write).await?;
        let answer = self.wait(work(lent.connection())).await;
        lent.end(action, answer)
    }

    /// The same for what may be done twice; `work` is told whether it was tried before.
    pub(crate) async fn write_again<T, Work>(
        &self,
        action: &'static str,
        work: impl Fn(Connection, Time) -> Work,
    ) -> Result<T>
    where
        Work: Future<Output = Postgres<T>>,
    {
        Ok(self.write_since(Time::First, action, work).await?)
    }

    /// The same for what may have been tried in an earlier call already.
    pub(crate) async fn write_since<T, Work>(
        &self,
        time: Time,
        action: &'static str,
        work: impl Fn(Connection, Time) -> Work,
    ) -> Result<T, Failure>
    where
        Work: Future<Output = Postgres<T>>,
    {
        match self.write(action, |connection| work(connection, time)).await {
            // Whatever hinders it the second time says nothing of the first.
            Err(Failure::Lost(_)) => self
                .write(action, |connection| work(connection, Time::Again))
                .await
                .map_err(|failure| Failure::Lost(failure.into())),
            answer => answer,
        }
    }

    /// Lends a connection, once nothing is on its way on those that were lost.
    async fn lend(&self, purpose: Purpose) -> Result<Lent<'_>, Failure> {
        let late = |_| Failure::late("connect to", &self.place, self.patience);
        let object = self.wait(self.pool.get()).await.map_err(late)?;
        let object = object.map_err(|error| match error {
            PoolError::Backend(error) => Failure::Refused(error),
            error => Failure::Refused(backend("connect to", error)),
        })?;
        let lent = Lent::new(object, purpose, &self.limbo, &self.place, self.patience);
        if !self.limbo.is_empty() {
            self.wait(self.limbo.clear(&lent.connection(), &self.place)).await.map_err(late)??;
        }
        Ok(lent)
    }

    /// Does something where the connections live: it takes what comes as it comes, and no other thread is woken for each
    /// part of it.
    pub(crate) async fn near<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        // It ends with whoever waits for it.
        let mut tasks = JoinSet::new();
        tasks.spawn_on(work, self.runtime());
        match tasks.join_next().await {
            Some(Ok(answer)) => answer,
            Some(Err(panicked)) => resume_unwind(panicked.into_panic()),
            None => unreachable!("there is one"),
        }
    }

    /// Waits for the server, but not for ever, on whatever thread this is.
    async fn wait<T>(&self, work: impl Future<Output = T>) -> Result<T, Elapsed> {
        let timed = {
            let _inside = self.runtime().enter();
            tokio::time::timeout(self.patience, work)
        };
        timed.await
    }
}

/// A runtime must not be waited for where nothing may block, and nothing here is worth waiting for.
impl Drop for Connections {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether something is done for the first time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Time {
    First,
    Again,
}
