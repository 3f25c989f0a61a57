//! Who hears what others say they appended.

use std::time::Duration;

use async_channel::Sender;
use futures_util::StreamExt as _;
use futures_util::stream::poll_fn;
use rethread_store::backend::{Hint, Hints};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};
use tokio_postgres::{AsyncMessage, Client};

use crate::connection::{Dialled, dial};
use crate::gathered::Gathered;
use crate::notification::{self, CHANNEL};
use crate::settings::Settings;

/// How many hints wait in the channel itself. Those beyond are gathered, so that nobody hears of the same twice.
const ROOM: usize = 16;
/// How long to wait after a connection ended that had held for a while.
const PAUSE: Duration = Duration::from_millis(100);
/// How long to wait at most.
const LONG_PAUSE: Duration = Duration::from_secs(5);

/// Listens on a connection of its own until nobody wants to know, or the runtime ends.
pub(crate) fn listen(settings: Settings, runtime: &Handle) -> Hints {
    let (sender, hints) = async_channel::bounded(ROOM);
    runtime.spawn(async move {
        let gathered = Gathered::default();
        // What ends first ends the others, and with them the connection.
        tokio::select! {
            () = sender.closed() => {}
            () = hear(&settings, &gathered) => {}
            () = pass_on(&gathered, &sender) => {}
        }
    });
    hints
}

/// Passes on what was gathered at the pace of whoever takes it.
async fn pass_on(gathered: &Gathered, sender: &Sender<Hint>) {
    loop {
        for hint in gathered.take().await {
            if sender.send(hint).await.is_err() {
                return;
            }
        }
    }
}

/// Gathers what is heard, on one connection after another.
async fn hear(settings: &Settings, gathered: &Gathered) {
    let mut pause = PAUSE;
    loop {
        let begun = Instant::now();
        // Why there is none is told to those who ask for something.
        if let Ok(Ok(dialled)) = timeout(settings.patience, dial(settings)).await {
            hear_on(dialled, settings.patience, gathered).await;
        }
        pause = if begun.elapsed() > LONG_PAUSE { PAUSE } else { pause };
        sleep(pause).await;
        pause = (pause * 2).min(LONG_PAUSE);
    }
}

/// Gathers what is heard on a connection until it ends.
async fn hear_on(dialled: Dialled, patience: Duration, gathered: &Gathered) {
    let Dialled { client, mut connection, .. } = dialled;
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    let hearing = async {
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(said) = message {
                notification::read(said.payload()).for_each(|hint| gathered.add(hint));
            }
        }
    };
    tokio::select! {
        () = hearing => {}
        () = ask(&client, patience, gathered) => {}
    }
}

/// Asks to be told, and then again and again whether the server is still there: a connection on which nothing is said may
/// have died without a sound.
async fn ask(client: &Client, patience: Duration, gathered: &Gathered) {
    let answers = async |sql: &str| matches!(timeout(patience, client.batch_execute(sql)).await, Ok(Ok(())));
    if answers(&format!("LISTEN {CHANNEL}")).await {
        gathered.add(Hint::Everything);
        while answers("SELECT 1").await {
            sleep(patience / 3).await;
        }
    }
}
