//! What a keeper is told when it is started. The binary finds all of it; nothing here reads the environment.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rethread_store::Store;

use crate::demonstration::Demonstration;
use crate::tls::Tls;

/// The port that a keeper listens on unless it is told another.
pub const PORT: u16 = 7717;

/// How a keeper is started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// The keeper's own folder: its address, token, socket, logs. Made if it is not there.
    pub home: PathBuf,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// Claude Code's folder, if there is one.
    pub claude_folder: Option<PathBuf>,
    /// The stored sessions, and what the keeper adds to native ones.
    pub store: Store,
    /// Where to keep what was learnt of transcripts. A cache: deleting it costs time and nothing else.
    pub cache: PathBuf,
    /// Where native sessions go that are deleted.
    pub trash: PathBuf,
    /// Sessions of other directories are not shown; all are if this is empty.
    pub allowed_roots: Vec<PathBuf>,
    /// Where a person begins to look for a directory when every one is allowed.
    pub start: PathBuf,
    /// Names by which this keeper may be called, beside those of the loopback.
    pub allowed_hosts: Vec<String>,
    /// What protects the way here; without it, only this machine comes in.
    pub tls: Option<Arc<Tls>>,
    /// How sessions are driven; they are only read if it is not known.
    pub agent: Option<Agent>,
    /// Whether sessions may run without asking anybody.
    pub bypass: Bypass,
    /// Whether everything here is a demonstration.
    pub demo: bool,
    /// What begins a demonstration for somebody who has no sessions yet, if anything does.
    pub demonstration: Option<Demonstration>,
    /// How long an agent that nobody asks anything is kept.
    pub idle: Duration,
    /// How long a client of the stream may take to read what was sent to it.
    pub patience: Duration,
    /// How often a client of the stream that hears nothing else hears that the keeper lives.
    pub heartbeat: Duration,
    /// How long a session stays this keeper's when the store hears nothing of it any more; then others may drive it, and
    /// this one does not.
    pub lease: Duration,
}

/// The program that drives sessions.
#[derive(Clone, Debug)]
pub struct Agent {
    /// Claude Code's CLI, by its whole path.
    pub program: PathBuf,
    /// What the CLI's environment is to have beside what the keeper's has.
    pub environment: Vec<(String, String)>,
}

/// Whether `bypassPermissions` may be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Bypass {
    /// It is refused.
    #[default]
    Refused,
    /// The keeper was started with a flag for it.
    Allowed,
}

impl Settings {
    /// Returns what is usual: the loopback, everything shown, sessions only read.
    pub fn new(home: impl Into<PathBuf>, store: Store) -> Self {
        let home = home.into();
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            claude_folder: None,
            store,
            cache: home.join("cache"),
            trash: home.join("native-trash"),
            allowed_roots: Vec::new(),
            start: PathBuf::from("/"),
            allowed_hosts: Vec::new(),
            tls: None,
            agent: None,
            bypass: Bypass::Refused,
            demo: false,
            demonstration: None,
            idle: Duration::from_secs(5 * 60),
            patience: Duration::from_secs(30),
            heartbeat: Duration::from_secs(15),
            lease: Duration::from_secs(60),
            home,
        }
    }
}
