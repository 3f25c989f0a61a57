//! Who sees to it that the agent ends, and learns how it did.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::transport::{Agent, Ending};

/// A handle on the agent's life. The agent is ended when the last one that asks for it does; its end is always awaited,
/// so that no zombie stays.
#[derive(Clone, Debug)]
pub(super) struct Caretaker {
    please_end: Arc<Notify>,
    ending: watch::Receiver<Option<Ending>>,
}

impl Caretaker {
    pub(super) fn new(mut agent: Box<dyn Agent>) -> Self {
        let (tell, ending) = watch::channel(None);
        let please_end = Arc::new(Notify::new());
        let asked = Arc::clone(&please_end);
        tokio::spawn(async move {
            let ending = tokio::select! {
                ending = agent.ended() => ending,
                () = asked.notified() => {
                    agent.end();
                    agent.ended().await
                }
            };
            tell.send_replace(Some(ending));
        });
        Self { please_end, ending }
    }

    /// Has the agent end soon, by force if need be. Returns at once.
    pub(super) fn end(&self) {
        self.please_end.notify_one();
    }

    /// Waits for the agent's end.
    pub(super) async fn ended(&mut self) -> Ending {
        match self.ending.wait_for(Option::is_some).await {
            Ok(ending) => ending.unwrap_or(Ending::Unknown),
            Err(_) => Ending::Unknown,
        }
    }

    /// Waits for the agent's end, and makes it end if that takes too long.
    pub(super) async fn ended_within(&mut self, limit: Duration) -> Ending {
        if let Ok(ending) = tokio::time::timeout(limit, self.ended()).await {
            return ending;
        }
        self.end();
        self.ended().await
    }
}
