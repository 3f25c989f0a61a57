//! The way in: by which names, with which secrets, and what became of those who tried.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use crate::audit::Audit;
use crate::credentials::Credentials;
use crate::error::Result;
use crate::failures::Failures;
use crate::hosts::{Hosts, Scheme};
use crate::metrics::Metrics;

/// What the gate goes by. A keeper has one, and so has a page that is served apart from it.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) hosts: Hosts,
    pub(crate) credentials: Credentials,
    pub(crate) failures: Failures,
    /// Refusals that were written down lately: guessing must not fill the disk.
    pub(crate) refusals: Failures,
    pub(crate) audit: Audit,
    pub(crate) metrics: Arc<Metrics>,
}

impl Door {
    pub(crate) fn new(
        home: &Path,
        address: SocketAddr,
        allowed_hosts: &[String],
        scheme: Scheme,
        credentials: Credentials,
    ) -> Result<Self> {
        Ok(Self {
            address,
            hosts: Hosts::new(address, allowed_hosts, scheme),
            credentials,
            failures: Failures::default(),
            refusals: Failures::default(),
            audit: Audit::open(home)?,
            metrics: Arc::default(),
        })
    }

    /// Returns the name of our cookie: browsers keep those of all ports of a host together.
    pub(crate) fn cookie_name(&self) -> String {
        format!("rethread-{}", self.address.port())
    }

    /// Returns an address that logs a browser in, once, within a minute.
    pub(crate) fn one_time_url(&self) -> String {
        format!("{}/#boot={}", self.hosts.own(), self.credentials.code())
    }
}
