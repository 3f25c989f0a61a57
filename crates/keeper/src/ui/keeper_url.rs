//! A keeper's address, as `rethread status` prints it.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use axum::http::Uri;
use axum::http::uri::Authority;

use crate::error::Error;
use crate::hosts::Scheme;

/// The address of a keeper that a token may be sent to: `https://` and any name, or `http://` and a name of this machine's
/// own.
///
/// A token that goes to another machine in plain sight is a token lost, so that other names are refused. A keeper
/// elsewhere that speaks no TLS is reached through a tunnel, whose near end is here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeeperUrl {
    scheme: Scheme,
    authority: Authority,
}

impl KeeperUrl {
    pub(super) fn scheme(&self) -> Scheme {
        self.scheme
    }

    pub(super) fn authority(&self) -> &Authority {
        &self.authority
    }
}

impl FromStr for KeeperUrl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let bad = |why| Error::BadKeeperUrl { url: text.to_owned(), why };
        let url: Uri = text.trim().parse().map_err(|_| bad("it is no address"))?;
        let scheme = match url.scheme_str() {
            Some("http") => Scheme::Http,
            Some("https") => Scheme::Https,
            _ => return Err(bad("it begins with neither http:// nor https://")),
        };
        if !matches!(url.path(), "" | "/") || url.query().is_some() {
            return Err(bad("something stands after its port"));
        }
        let authority = url.authority().ok_or_else(|| bad("it names no host"))?;
        if authority.as_str().contains('@') {
            return Err(bad("a name and a password have no place in it"));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_here =
            host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
        match is_here || scheme == Scheme::Https {
            true => Ok(Self { scheme, authority: authority.clone() }),
            false => Err(bad("the token would travel to another machine in plain sight")),
        }
    }
}

impl fmt::Display for KeeperUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.scheme.of(self.authority.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_in_the_open_to_this_machine_only() {
        for good in [
            "http://localhost:7717",
            "http://127.0.0.1:7717/",
            "http://[::1]:1",
            "http://LOCALHOST:7",
            "https://localhost:7717",
            "https://keeper.example",
        ] {
            let url: KeeperUrl = good.parse().unwrap();
            assert_eq!(url.to_string(), good.trim_end_matches('/'));
        }
        for bad in [
            "",
            "localhost:7717",
            "/x",
            "https://me:secret@keeper.example",
            "https://keeper.example/api/v1",
            "http://keeper.example:7717",
            "http://localhost.evil.example:7717",
            "http://192.168.1.1:7717",
            "http://me:secret@localhost:7717",
            "http://localhost:7717/api/v1",
            "http://localhost:7717/?token=x",
            "file:///etc/passwd",
        ] {
            assert!(matches!(bad.parse::<KeeperUrl>(), Err(Error::BadKeeperUrl { .. })), "{bad}");
        }
    }
}
