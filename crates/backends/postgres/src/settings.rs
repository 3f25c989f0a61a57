//! Which server and database, and how to get in.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr as _;
use std::time::Duration;

use percent_encoding::percent_decode_str;
use rethread_store::{Error, Result};
use tokio_postgres::Config;
use tokio_postgres::config::Host;

use crate::encryption::Encryption;
use crate::passfile::{self, Wanted};

/// Where servers of this machine are found if the URL names no host.
const SOCKETS: &str = "/var/run/postgresql";

/// Which server and database, and how to get in.
///
/// What it shows of itself never holds a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    config: Config,
    pub(crate) encryption: Encryption,
    /// The password, should the URL hold none.
    pub password: Option<String>,
    /// A file of passwords, should neither have one: `host:port:database:user:password` on each line.
    pub passfile: Option<PathBuf>,
    /// How long a call waits for the server before it gives up.
    pub patience: Duration,
}

impl Settings {
    /// Takes a URL: `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=…`.
    ///
    /// Of libpq's parameters it knows `sslmode`, `sslrootcert`, `sslcert`, `sslkey` and `passfile`, and those that
    /// `tokio-postgres` has.
    pub fn parse(url: &str) -> Result<Self> {
        let refused = |rule| Error::BadName { what: "URL of PostgreSQL", text: shown(url), rule };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(refused("it begins with postgres://"));
        }
        let (base, parameters) = split(url);
        let (mut encryption, mut passfile, mut rest) = (Encryption::default(), None, Vec::new());
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').ok_or(refused("a parameter is NAME=VALUE"))?;
            let value = || percent_decode_str(value).decode_utf8_lossy().into_owned();
            match name {
                "sslmode" => {
                    let rule = "sslmode is disable, allow, prefer, require, verify-ca or verify-full";
                    encryption.mode = value().parse().map_err(|()| refused(rule))?;
                }
                "sslrootcert" => encryption.root = Some(value().into()),
                "sslcert" => encryption.certificate = Some(value().into()),
                "sslkey" => encryption.key = Some(value().into()),
                "passfile" => passfile = Some(PathBuf::from(value())),
                _ => rest.push(parameter),
            }
        }
        // What it says of a parameter that it does not know names no values.
        let mut config = Config::from_str(&format!("{base}?{}", rest.join("&")))
            .map_err(|_| refused("it is postgres://USER@HOST:PORT/DATABASE?NAME=VALUE&…, as libpq has it"))?;
        config.ssl_mode(encryption.mode.negotiated());
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            match Path::new(SOCKETS).is_dir() {
                true => config.host_path(SOCKETS),
                false => config.host("localhost"),
            };
        }
        Ok(Self { config, encryption, password: None, passfile, patience: Duration::from_secs(30) })
    }

    /// Returns what a connection is made with; its password is looked up now.
    pub(crate) fn config(&self, name: &str) -> Result<Config> {
        let mut config = self.config.clone();
        config.application_name(name).connect_timeout(self.patience);
        if config.get_password().is_none() {
            let found = match (&self.password, &self.passfile) {
                (Some(password), _) => Some(password.clone()),
                (None, Some(path)) => passfile::look_up(path, self.wanted())?,
                (None, None) => None,
            };
            found.map(|password| config.password(password));
        }
        Ok(config)
    }

    fn wanted(&self) -> Wanted<'_> {
        // For a socket libpq looks for localhost.
        let host = match self.config.get_hosts().first() {
            Some(Host::Tcp(host)) => host,
            _ => "localhost",
        };
        let user = self.config.get_user().unwrap_or_default();
        Wanted {
            host,
            port: self.config.get_ports().first().copied().unwrap_or(5432),
            database: self.config.get_dbname().unwrap_or(user),
            user,
        }
    }
}

/// The place, without a password.
impl fmt::Display for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("postgres://")?;
        if let Some(user) = self.config.get_user() {
            write!(f, "{user}@")?;
        }
        let ports = self.config.get_ports();
        for (number, host) in self.config.get_hosts().iter().enumerate() {
            let port = ports.get(number).or(ports.first()).copied().unwrap_or(5432);
            f.write_str(if number == 0 { "" } else { "," })?;
            match host {
                Host::Tcp(host) => write!(f, "{host}:{port}")?,
                Host::Unix(path) => write!(f, "{}", path.display())?,
            }
        }
        match self.config.get_dbname() {
            Some(database) => write!(f, "/{database}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Settings({self})")
    }
}

/// Splits a URL into what stands before its parameters, and them.
fn split(url: &str) -> (&str, &str) {
    // A password may hold a question mark.
    let begin = url.find('@').unwrap_or(0);
    match url[begin..].find('?') {
        Some(mark) => (&url[..begin + mark], &url[begin + mark + 1..]),
        None => (url, ""),
    }
}

/// Returns what can be shown of a URL that makes no sense: nothing between its scheme and its host.
fn shown(url: &str) -> String {
    let (base, _) = split(url);
    match (base.split_once("://"), base.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, host))) => format!("{scheme}://…@{host}"),
        _ => base.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_shown_of_it_holds_no_password() {
        let url = "postgres://ada:se?cret@db:5433/sessions?sslmode=require&password=hidden";
        let settings = Settings::parse(url).unwrap();
        assert_eq!(settings.to_string(), "postgres://ada@db:5433/sessions");
        assert_eq!(format!("{settings:?}"), "Settings(postgres://ada@db:5433/sessions)");
        for wrong in ["sslmode=perhaps", "unheard=of", "port=x", "x"] {
            let refused = Settings::parse(&format!("{url}&{wrong}")).unwrap_err().to_string();
            assert!(!refused.contains("cret") && !refused.contains("hidden"), "{refused}");
        }
        let refused = Settings::parse("pastgres://ada:secret@db/x").unwrap_err().to_string();
        assert!(!refused.contains("secret"), "{refused}");
    }

    #[test]
    fn the_password_is_that_of_the_url_then_the_one_given_then_that_of_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pass");
        std::fs::write(&path, "db:5432:sessions:ada:filed\n").unwrap();
        let password = |url: &str, given: Option<&str>| {
            let mut settings = Settings::parse(url).unwrap();
            (settings.password, settings.passfile) = (given.map(str::to_owned), Some(path.clone()));
            Ok::<_, Error>(settings.config("x")?.get_password().map(<[u8]>::to_vec))
        };
        assert!(password("postgres://ada@db/sessions", None).is_err(), "others can read it");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        assert_eq!(password("postgres://ada:own@db/sessions", Some("given")).unwrap().unwrap(), b"own");
        assert_eq!(password("postgres://ada@db/sessions", Some("given")).unwrap().unwrap(), b"given");
        assert_eq!(password("postgres://ada@db/sessions", None).unwrap().unwrap(), b"filed");
        assert_eq!(password("postgres://eve@db/sessions", None).unwrap(), None);
    }
}
