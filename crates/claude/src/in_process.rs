//! Servers of tools in this very process, reached through the CLI's own pipes.

mod bridge;
mod tools;

use std::fmt;
use std::sync::Arc;

use rmcp::ServerHandler;

pub(crate) use bridge::Bridge;
pub use tools::{ToolOutput, ToolServer};

/// A server of tools that runs in this process: a [`ToolServer`], or anything that the `rmcp` crate can serve.
#[derive(Clone)]
pub struct InProcessServer {
    start: Arc<dyn Fn() -> Bridge + Send + Sync>,
}

impl InProcessServer {
    /// Returns a server that is a handler of the `rmcp` crate's. Each connection gets a clone of it.
    ///
    /// What such a server asks of its client, rather than the other way round, reaches nobody.
    pub fn new(handler: impl ServerHandler + Clone) -> Self {
        Self { start: Arc::new(move || Bridge::start(handler.clone())) }
    }

    /// Starts it for one connection.
    pub(crate) fn start(&self) -> Bridge {
        (self.start)()
    }
}

impl fmt::Debug for InProcessServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InProcessServer")
    }
}
