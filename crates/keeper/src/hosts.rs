//! The names by which this keeper may be called.

use std::net::SocketAddr;

/// Hosts and the origins that go with them.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Hosts {
    /// Takes the names of the loopback with our port, and what else was allowed.
    pub(crate) fn new(address: SocketAddr, allowed: &[String]) -> Self {
        let port = address.port();
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
        let hosts: Vec<String> =
            own.into_iter().chain(allowed.iter().map(|name| name.to_ascii_lowercase())).collect();
        // Behind a proxy that ends TLS the page comes from https.
        let origins =
            hosts.iter().flat_map(|host| [format!("http://{host}"), format!("https://{host}")]).collect();
        Self { hosts, origins }
    }

    pub(crate) fn know(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    pub(crate) fn is_origin(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|known| known.as_bytes() == origin)
    }
}
