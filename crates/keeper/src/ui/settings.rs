//! What a page apart from its keeper is told when it is started.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use super::KeeperUrl;
use crate::tls::Tls;

/// The port that such a page is served on unless another is told.
pub const PORT: u16 = 7718;

/// How a page apart from its keeper is started.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct UiSettings {
    /// Its own folder: logins, audit log. Made if it is not there.
    pub home: PathBuf,
    /// Where to listen; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The keeper.
    pub keeper: KeeperUrl,
    /// Who vouches for a keeper that speaks TLS, in PEM, beside whom this machine trusts.
    pub keeper_ca: Option<PathBuf>,
    /// The file with the keeper's token.
    pub token_file: PathBuf,
    /// Directories of the keeper's machine: sessions of others are not shown; all that the keeper shows are if this is
    /// empty.
    pub allowed_roots: Vec<PathBuf>,
    /// Names by which this page may be called, beside those of the loopback.
    pub allowed_hosts: Vec<String>,
    /// What protects the way here; without it, only this machine comes in.
    pub tls: Option<Arc<Tls>>,
}

impl UiSettings {
    /// Returns what is usual: the loopback, and everything that the keeper shows.
    pub fn new(home: impl Into<PathBuf>, keeper: KeeperUrl, token_file: impl Into<PathBuf>) -> Self {
        Self {
            home: home.into(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)),
            keeper,
            keeper_ca: None,
            token_file: token_file.into(),
            allowed_roots: Vec::new(),
            allowed_hosts: Vec::new(),
            tls: None,
        }
    }
}
