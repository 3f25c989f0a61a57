//! Where a keeper shows a demonstration beside itself, once somebody asks for it.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use rethread_keeper::{Demonstration, Running};
use serde_json::{Value, json};
use tokio::sync::{Mutex, oneshot};
use tokio::task::JoinHandle;

use super::Demo;

/// At most one demonstration, on a port of its own. It ends with the keeper that offers it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stage(Arc<Mutex<Option<Play>>>);

#[derive(Debug)]
struct Play {
    demo: Demo,
    session: String,
    end: oneshot::Sender<()>,
    playing: JoinHandle<()>,
}

impl Stage {
    /// Returns what begins it, for a keeper to offer.
    pub(crate) fn demonstration(&self) -> Demonstration {
        let stage = self.clone();
        Demonstration::new(move || {
            let stage = stage.clone();
            async move { stage.show().await.map_err(|error| format!("the demo does not begin: {error}")) }
        })
    }

    /// Returns an address that logs a browser in: to the demonstration that runs, else to one that begins now.
    async fn show(&self) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
        let mut stage = self.0.lock().await;
        if let Some(play) = stage.as_ref().filter(|play| !play.playing.is_finished()) {
            let boot: Value = play.demo.keeper().client().post("/auth/boot", &json!({})).await?;
            return Ok(format!("{}&session={}", boot["url"].as_str().unwrap_or_default(), play.session));
        }
        let demo = Demo::new()?;
        let running = Running::start(demo.settings(Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))).await?;
        let url = running.one_time_url();
        let (end, ended) = oneshot::channel();
        let playing = tokio::spawn(async move {
            let over = async {
                // Whoever is gone has ended it too.
                let _ = ended.await;
            };
            if let Err(error) = running.until(over).await {
                tracing::error!(%error, "the demo ended");
            }
        });
        let session = demo.perform().await?;
        let url = format!("{url}&session={session}");
        *stage = Some(Play { demo, session, end, playing });
        Ok(url)
    }

    /// Ends what is shown, and clears away all of it.
    pub(crate) async fn clear(&self) {
        let Some(Play { demo, end, playing, .. }) = self.0.lock().await.take() else { return };
        let _ = end.send(());
        let _ = playing.await;
        drop(demo);
    }
}
