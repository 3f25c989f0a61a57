//! A server of tools, by how it is reached.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::in_process::InProcessServer;

/// A server of tools, by how it is reached.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum McpServer {
    /// A program that speaks over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables of its environment.
        env: BTreeMap<String, String>,
    },
    /// A server on the network.
    Http {
        /// Where it is.
        url: String,
        /// What each request carries.
        headers: BTreeMap<String, String>,
    },
    /// A server on the network, of the older kind that streams events.
    Sse {
        /// Where it is.
        url: String,
        /// What each request carries.
        headers: BTreeMap<String, String>,
    },
    /// A server in this process.
    InProcess(InProcessServer),
}

impl McpServer {
    /// Returns a program that speaks over its standard input and output.
    pub fn stdio(command: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::Stdio { command: command.into(), args, env: BTreeMap::new() }
    }

    /// Returns a server on the network.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), headers: BTreeMap::new() }
    }

    /// Returns the server as the CLI's configuration names it.
    pub(crate) fn to_json(&self, name: &str) -> Value {
        match self {
            Self::InProcess(_) => json!({ "type": "sdk", "name": name }),
            Self::Stdio { command, args, env } => {
                json!({ "type": "stdio", "command": command, "args": args, "env": env })
            }
            Self::Http { url, headers } => json!({ "type": "http", "url": url, "headers": headers }),
            Self::Sse { url, headers } => json!({ "type": "sse", "url": url, "headers": headers }),
        }
    }
}
