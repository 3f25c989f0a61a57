//! Who tells others what was appended, behind the back of whoever appended it.
//!
//! A notification is never part of an append: the server lets only one transaction of all its databases commit one at a
//! time. So they are gathered, and sent on a connection of their own, which appends neither share nor wait for.

use std::sync::Arc;
use std::time::Duration;

use rethread_store::backend::Hint;
use rethread_store::{Result, SessionId};
use tokio::runtime::Handle;
use tokio::time::{sleep, timeout};

use crate::connection::{Connection, connect};
use crate::failure::at;
use crate::gathered::Gathered;
use crate::notification::{self, CHANNEL};
use crate::settings::Settings;

/// How far apart notifications are at least.
const APART: Duration = Duration::from_millis(50);
/// How far apart they are at most while they fail.
const FAR_APART: Duration = Duration::from_secs(5);
/// How long a connection is kept that nothing is sent on.
const KEPT: Duration = Duration::from_secs(60);

/// Tells all who listen which sessions were appended to, some time soon, if it can.
#[derive(Debug)]
pub(crate) struct Notifier {
    gathered: Arc<Gathered>,
}

impl Notifier {
    /// Starts one, which ends with the runtime. It does nothing until there is something to tell.
    pub(crate) fn start(settings: Settings, runtime: &Handle) -> Self {
        let gathered = Arc::new(Gathered::default());
        runtime.spawn(run(settings, gathered.clone()));
        Self { gathered }
    }

    /// Leaves a name to be told. Returns at once.
    pub(crate) fn tell(&self, session: &SessionId) {
        self.gathered.add_session(session);
    }
}

async fn run(settings: Settings, gathered: Arc<Gathered>) {
    let (mut connection, mut pause) = (None, APART);
    loop {
        let Ok(hints) = timeout(KEPT, gathered.take()).await else {
            connection = None;
            continue;
        };
        let sent = timeout(settings.patience, send(&settings, connection.take(), &hints)).await;
        match sent {
            Ok(Ok(kept)) => (connection, pause) = (Some(kept), APART),
            // Nobody is told of a failure: it is a hint, and will be tried again.
            Ok(Err(_)) | Err(_) => {
                hints.into_iter().for_each(|hint| gathered.add(hint));
                pause = (pause * 2).min(FAR_APART);
            }
        }
        sleep(pause).await;
    }
}

/// Sends hints in one statement. Returns the connection that it was sent on.
async fn send(settings: &Settings, kept: Option<Connection>, hints: &[Hint]) -> Result<Connection> {
    let connection = match kept {
        Some(kept) => kept,
        None => connect(settings.clone()).await?,
    };
    // Nothing is lost that a crash of the server would not have told by itself, so nobody waits for a disk.
    let sql = "
        WITH unsynced AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
        SELECT pg_notify($1, payload) FROM unsynced, unnest($2::text[]) AS payload";
    let sent = connection.change(sql, &[&CHANNEL, &notification::write(hints)]).await;
    sent.map_err(|error| at("notify", &settings.to_string(), error))?;
    Ok(connection)
}
