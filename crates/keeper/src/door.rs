//! The way in: by which names, with which secrets, and what became of those who tried.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::audit::Audit;
use crate::credentials::Credentials;
use crate::error::Result;
use crate::failures::{Failures, FailuresOfAKind};
use crate::hosts::{Hosts, Scheme};
use crate::metrics::Metrics;
use crate::problem::Problem;

/// What the gate goes by. A keeper has one, and so has a page that is served apart from it.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) hosts: Hosts,
    pub(crate) credentials: Credentials,
    pub(crate) failures: Failures,
    /// Refusals that were written down lately: guessing must not fill the disk, and those of one kind must not keep
    /// another out.
    pub(crate) refusals: FailuresOfAKind,
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
            refusals: FailuresOfAKind::default(),
            audit: Audit::open(home)?,
            metrics: Arc::default(),
        })
    }

    /// Writes down that somebody was refused, and what they wanted.
    pub(crate) fn refuse(&self, who: &str, problem: &Problem, about: Value) {
        let kind = format!("{} {}", problem.code, problem.detail.as_deref().unwrap_or_default());
        if self.refusals.another(&kind).is_none()
            && let Value::Object(mut about) = about
        {
            about.insert("code".into(), Value::from(&*problem.code));
            self.audit.write("refused", who, Value::Object(about));
        }
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
