//! Which bucket, where in it, and how to get in.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use hyper::Uri;
use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use rethread_store::{Error, Result};

use crate::failure::{BadEndpoint, Unfit, backend};

/// Which bucket, where in it, and how to get in.
///
/// What it shows of itself never holds a secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    bucket: String,
    /// Ends in a slash, unless it is empty.
    prefix: String,
    /// The names and values of what the builder knows.
    options: Vec<(AmazonS3ConfigKey, String)>,
    /// How long a call goes on trying before it gives up.
    pub patience: Duration,
}

impl Settings {
    /// Takes a URL: `s3://BUCKET/PREFIX`.
    pub fn parse(url: &str) -> Result<Self> {
        let refused = |rule| Error::BadName { what: "URL of S3", text: url.to_owned(), rule };
        let rest = url.strip_prefix("s3://").ok_or(refused("it begins with s3://"))?;
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if bucket.is_empty() || !bucket.bytes().all(is_plain) {
            return Err(refused("it is s3://BUCKET/PREFIX, and credentials are no part of it"));
        }
        let mut path = String::new();
        for part in prefix.split('/').filter(|part| !part.is_empty()) {
            if !part.bytes().all(is_plain) || part.bytes().all(|byte| byte == b'.') {
                return Err(refused("a prefix is made of a-z A-Z 0-9 . _ - and slashes"));
            }
            path.push_str(part);
            path.push('/');
        }
        // Names below it are up to 260 bytes long, of the 1,024 that S3 has.
        if path.len() > 512 {
            return Err(refused("a prefix has at most 512 characters"));
        }
        Ok(Self {
            bucket: bucket.to_owned(),
            prefix: path,
            options: Vec::new(),
            patience: Duration::from_secs(30),
        })
    }

    /// Takes what an environment says: `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_REGION`,
    /// `AWS_ENDPOINT_URL`, `AWS_ALLOW_HTTP` and the others that `object_store` has. What it does not know is left alone.
    pub fn with_variables(mut self, variables: impl IntoIterator<Item = (String, String)>) -> Self {
        let mut variables: Vec<_> = variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        variables.sort();
        for (name, value) in variables {
            let known = name.starts_with("AWS_").then(|| name.to_ascii_lowercase().parse().ok()).flatten();
            match known {
                // What this backend stands on is not for an environment to switch off.
                Some(AmazonS3ConfigKey::ConditionalPut | AmazonS3ConfigKey::Bucket) | None => {}
                Some(key) => self.options.push((key, value)),
            }
        }
        self
    }

    /// Returns what every name in the bucket begins with.
    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(crate) fn builder(&self) -> Result<AmazonS3Builder> {
        let builder = AmazonS3Builder::new().with_bucket_name(&self.bucket);
        let set = |builder: AmazonS3Builder, (key, value): &(AmazonS3ConfigKey, String)| {
            builder.with_config(*key, value.clone())
        };
        let builder =
            self.options.iter().fold(builder, set).with_conditional_put(S3ConditionalPut::ETagMatch);
        let set = |key: AmazonS3ConfigKey| builder.get_config_value(&key);
        let (of_s3, of_all) = (set(AmazonS3ConfigKey::S3Endpoint), set(AmazonS3ConfigKey::Endpoint));
        for (name, endpoint) in [("AWS_ENDPOINT_URL_S3", &of_s3), ("AWS_ENDPOINT_URL", &of_all)] {
            if let Some(endpoint) = endpoint.as_ref().filter(|endpoint| !is_endpoint(endpoint)) {
                // Whoever puts credentials there does not want to read them on a screen.
                let shown = if endpoint.contains('@') { "…" } else { endpoint.as_str() };
                return Err(backend("use", BadEndpoint { name, shown: shown.to_owned() }));
            }
        }
        let endpoint = of_s3.or(of_all).unwrap_or_default();
        let may_be_open = builder.get_config_value(&AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp));
        if endpoint.starts_with("http:") && may_be_open.as_deref() != Some("true") {
            let reason = "would be reached in the open, and AWS_ALLOW_HTTP is not true";
            return Err(backend("use", Unfit { place: self.to_string(), reason }));
        }
        Ok(builder)
    }
}

/// Returns whether requests can be sent there. What makes them takes that for granted, and would panic.
fn is_endpoint(text: &str) -> bool {
    let Ok(uri) = text.parse::<Uri>() else { return false };
    let Some(authority) = uri.authority() else { return false };
    let host = authority.host();
    let port = authority.as_str().strip_prefix(host).unwrap_or("@");
    let is_port =
        |port: &str| port.strip_prefix(':').is_some_and(|port| port.parse().is_ok_and(|port: u16| port > 0));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_number = |label: &str| !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    let is_host = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None if host.rsplit('.').next().is_some_and(is_number) => host.parse::<Ipv4Addr>().is_ok(),
        None => host.bytes().any(|byte| byte.is_ascii_alphanumeric()) && host.bytes().all(is_plain),
    };
    matches!(uri.scheme_str(), Some("http" | "https")) && is_host && (port.is_empty() || is_port(port))
}

/// The place, without credentials.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix.trim_end_matches('/'))
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_bucket_and_a_place_in_it() {
        for (url, shown) in [
            ("s3://team", "s3://team/"),
            ("s3://team/", "s3://team/"),
            ("s3://team.x-1/a//b/", "s3://team.x-1/a/b"),
        ] {
            assert_eq!(Settings::parse(url).unwrap().to_string(), shown);
        }
        for wrong in
            ["s3:team", "s3://", "s3:///x", "s3://key:secret@team/x", "s3://team/../x", "s3://team/a b"]
        {
            assert!(Settings::parse(wrong).is_err(), "{wrong}");
        }
    }

    fn with_endpoint(name: &str, endpoint: &str) -> Result<()> {
        let variables =
            [(name, endpoint), ("AWS_ALLOW_HTTP", "true")].map(|(name, value)| (name.into(), value.into()));
        Settings::parse("s3://team/x").unwrap().with_variables(variables).builder().map(drop)
    }

    /// Once, what was typed without a scheme ended in a panic of what makes the requests.
    #[test]
    fn an_endpoint_is_a_scheme_a_host_and_a_port_or_an_error_that_says_so() {
        for wrong in [
            "localhost:9000",
            "minio.example.org:9000",
            "minio",
            "https://",
            "http://h:99999",
            "http://h:0",
            "http://h:",
            "http://:9000",
            "ftp://h",
            "/path",
            "http://a b",
            "http://256.1.1.1:9000",
            "http://[::1",
            "https://ada:s3cret@h",
        ] {
            for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"] {
                let error = with_endpoint(name, wrong).unwrap_err();
                let told = std::error::Error::source(&error).unwrap().to_string();
                assert!(told.starts_with(&format!("{name} is ")) && !told.contains("s3cret"), "{told}");
            }
        }
        for right in
            ["http://localhost:9000", "https://minio.example.org", "https://h:9000/x/", "http://[::1]:1"]
        {
            with_endpoint("AWS_ENDPOINT_URL", right).unwrap();
        }
    }

    #[test]
    fn what_is_shown_of_it_holds_no_secret() {
        let variables =
            [("AWS_SECRET_ACCESS_KEY", "se-cret"), ("AWS_ACCESS_KEY_ID", "ada"), ("PATH", "/bin")];
        let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let settings = Settings::parse("s3://team/x").unwrap().with_variables(variables);
        assert_eq!(settings.options.len(), 2);
        assert_eq!(format!("{settings:?}"), "Settings(s3://team/x)");
    }
}
