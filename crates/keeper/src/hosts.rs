//! The names by which this keeper may be called.

use std::net::SocketAddr;

/// How a page comes to a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Scheme::Http => "http",
            Scheme::Https => "https",
        }
    }

    /// Returns the address of a host that is called so.
    pub(crate) fn of(self, host: &str) -> String {
        format!("{}://{host}", self.as_str())
    }
}

/// Hosts and the origins that go with them.
#[derive(Clone, Debug)]
pub(crate) struct Hosts {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// The address that people are given.
    own: String,
}

impl Hosts {
    /// Takes the names of the loopback with our port, and what else was allowed.
    pub(crate) fn new(address: SocketAddr, allowed: &[String], scheme: Scheme) -> Self {
        let port = address.port();
        let own = ["localhost", "127.0.0.1", "[::1]"].map(|name| format!("{name}:{port}"));
        let allowed: Vec<String> = allowed.iter().map(|name| name.to_ascii_lowercase()).collect();
        // Where no proxy stands before us, we are called by our port as well.
        let direct: Vec<String> = allowed.iter().map(|name| with_port(name, port)).collect();
        let own_name = match scheme {
            Scheme::Http => scheme.of(&own[0]),
            Scheme::Https => scheme.of(direct.first().unwrap_or(&own[0])),
        };
        let hosts: Vec<String> = own.into_iter().chain(allowed).chain(direct).collect();
        // Behind a proxy that ends TLS the page comes from https.
        let schemes: &[Scheme] = match scheme {
            Scheme::Http => &[Scheme::Http, Scheme::Https],
            Scheme::Https => &[Scheme::Https],
        };
        let origins = hosts.iter().flat_map(|host| schemes.iter().map(|scheme| scheme.of(host))).collect();
        Self { hosts, origins, own: own_name }
    }

    /// Returns the address that people are given.
    pub(crate) fn own(&self) -> &str {
        &self.own
    }

    pub(crate) fn know(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    pub(crate) fn is_origin(&self, origin: &[u8]) -> bool {
        self.origins.iter().any(|known| known.as_bytes() == origin)
    }
}

/// Returns a name as browsers send it to a port of ours.
fn with_port(name: &str, port: u16) -> String {
    let has_port = name.rsplit_once(':').is_some_and(|(_, end)| end.parse::<u16>().is_ok());
    match has_port || port == 443 {
        true => name.to_owned(),
        false => format!("{name}:{port}"),
    }
}
