//! Where the sessions are, and how the person said so.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_encrypted::EncryptedBackend;
use rethread_postgres::{PostgresBackend, Settings};
use rethread_s3::S3Backend;
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::Backend;
use rethread_store::{FileBackend, Schemes};

use crate::failure::Failure;
use crate::key_file;

const BUCKET_HINT: &str = "`--store s3://BUCKET/PREFIX` names one; $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_REGION and \
                           $AWS_ENDPOINT_URL say how to get in";

/// A store's place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    at: At,
    /// What was typed after `--store`, without a password: a hint must name the same store.
    typed: Option<String>,
    /// The file with its key, if it is encrypted.
    key_file: Option<PathBuf>,
    /// What was typed after `--key-file`.
    typed_key: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum At {
    Folder(PathBuf),
    /// One SQLite file.
    File(PathBuf),
    /// A PostgreSQL database.
    Database(Box<Settings>),
    /// A place in a bucket.
    Bucket(Box<rethread_s3::Settings>),
    Url(String),
}

impl Place {
    /// Takes what was typed, else what the environment says, else what is configured, else the folder for a person's
    /// data.
    pub(crate) fn find(
        typed: Option<String>,
        configured: Option<&str>,
        key_file: Option<&Path>,
    ) -> Result<Self, Failure> {
        let set = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        // Another home is another store, unless somebody says which.
        let configured = configured.filter(|_| set("RETHREAD_HOME").is_none());
        let set = set("RETHREAD_STORE");
        let configured = configured.filter(|_| typed.is_none() && set.is_none()).map(str::to_owned);
        let typed_key = key_file.map(Path::to_owned);
        let (at, key_file) = match typed.as_ref().or(set.as_ref()).or(configured.as_ref()) {
            Some(url) => {
                let (url, key_file) = key_file::of_url(url, key_file)?;
                (parse(&url)?, key_file)
            }
            None => (At::Folder(default_folder(|name| std::env::var_os(name))?), None),
        };
        if let At::Folder(path) | At::File(path) = &at {
            refuse_claudes_own(path)?;
            if configured.is_some() && path.is_relative() {
                let message = format!("the configured store {} is no absolute path", path.display());
                return Err(Failure::wrongly(message, "it would be another one in every directory"));
            }
        }
        Ok(Self { at, typed: typed.map(|url| without_password(&url)), typed_key, key_file })
    }

    /// Opens the store's backend. Nothing is read or made yet.
    pub(crate) fn backend(&self) -> Result<Arc<dyn Backend>, Failure> {
        match self.encrypted_backend()? {
            Some(backend) => Ok(Arc::new(backend)),
            None => self.plain_backend(),
        }
    }

    /// Opens the store's backend if it is encrypted.
    pub(crate) fn encrypted_backend(&self) -> Result<Option<EncryptedBackend<Arc<dyn Backend>>>, Failure> {
        let Some(file) = &self.key_file else { return Ok(None) };
        Ok(Some(EncryptedBackend::new(self.plain_backend()?, &key_file::read(file)?)))
    }

    fn plain_backend(&self) -> Result<Arc<dyn Backend>, Failure> {
        match &self.at {
            At::Folder(folder) => Ok(Arc::new(FileBackend::new(folder))),
            At::File(file) => Ok(Arc::new(SqliteBackend::new(file))),
            At::Database(settings) => Ok(Arc::new(PostgresBackend::new(settings.as_ref().clone())?)),
            At::Bucket(settings) => {
                let refused = |error: rethread_store::Error| {
                    let reason = std::error::Error::source(&error).map(ToString::to_string);
                    Failure::wrongly(reason.unwrap_or_else(|| error.to_string()), BUCKET_HINT)
                };
                Ok(Arc::new(S3Backend::new(settings).map_err(refused)?))
            }
            At::Url(url) => Schemes::default().open(url).map_err(|_| unknown(url)),
        }
    }

    /// Returns whether it is the same place, as far as its name tells.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let real = |at: &At| match at {
            At::Folder(path) | At::File(path) => path.canonicalize().ok(),
            _ => None,
        };
        self.at == other.at || real(&self.at).is_some_and(|path| real(&other.at) == Some(path))
    }

    /// Returns the store's folder, where it has one that anything may be kept in.
    pub(crate) fn folder(&self) -> Option<&Path> {
        if self.key_file.is_some() {
            return None;
        }
        match &self.at {
            At::Folder(folder) => Some(folder),
            At::File(_) | At::Database(_) | At::Bucket(_) | At::Url(_) => None,
        }
    }

    /// Returns whether it is encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.key_file.is_some()
    }

    /// Returns whether the two are one place, and only one of them is encrypted.
    pub(crate) fn is_encrypted_otherwise(&self, other: &Self) -> bool {
        self.is_same(other) && self.key_file.is_some() != other.key_file.is_some()
    }

    /// Returns what names this store on a command line, if that was typed.
    pub(crate) fn option(&self) -> Option<String> {
        self.typed.as_ref().map(|url| format!("--store {}", quoted(url)))
    }

    /// Returns a command to type for this store, in backquotes.
    pub(crate) fn command(&self, rest: &str) -> String {
        let key =
            self.typed_key.as_ref().map(|file| format!("--key-file {} ", quoted(&file.to_string_lossy())));
        let key = key.unwrap_or_default();
        match &self.typed {
            Some(url) => format!("`rethread {key}--store {} {rest}`", quoted(url)),
            None => format!("`rethread {key}{rest}`"),
        }
    }
}

fn parse(url: &str) -> Result<At, Failure> {
    let Some((scheme, rest)) = url.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) else {
        return match url.is_empty() {
            true => Err(unknown(url)),
            false => Ok(At::Folder(url.into())),
        };
    };
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    match scheme {
        "file" if !rest.is_empty() => Ok(At::Folder(rest.into())),
        "file" => Err(Failure::wrongly("file: names no folder", "`--store file:/srv/sessions` names one")),
        "sqlite" if !rest.is_empty() => Ok(At::File(rest.into())),
        "sqlite" => {
            Err(Failure::wrongly("sqlite: names no file", "`--store sqlite:/srv/sessions.db` names one"))
        }
        "postgres" | "postgresql" => database(url),
        "s3" => bucket(url),
        _ if Schemes::default().names().any(|known| known == scheme) => match rest {
            "" => Ok(At::Url(url.into())),
            _ => Err(Failure::wrongly(
                format!("{scheme}: takes nothing after its colon, and {rest:?} is there"),
                format!("`--store {scheme}:`"),
            )),
        },
        _ => Err(unknown(url)),
    }
}

/// Takes the URL of a database. Its password may come from where other clients of PostgreSQL have theirs.
fn database(url: &str) -> Result<At, Failure> {
    let hint =
        "`--store postgres://USER@HOST/DATABASE` names one; $PGPASSWORD or ~/.pgpass hold the password";
    let mut settings = Settings::parse(url).map_err(|error| Failure::wrongly(error.to_string(), hint))?;
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    settings.password = set("PGPASSWORD").and_then(|password| password.into_string().ok());
    let usual = || set("HOME").map(|home| Path::new(&home).join(".pgpass"));
    settings.passfile =
        settings.passfile.take().or_else(|| set("PGPASSFILE").map(PathBuf::from)).or_else(usual);
    Ok(At::Database(Box::new(settings)))
}

/// Takes the URL of a place in a bucket. Everything else is said where other clients of S3 look.
fn bucket(url: &str) -> Result<At, Failure> {
    let refused = |error: rethread_store::Error| {
        let rule =
            if let rethread_store::Error::BadName { rule, .. } = &error { rule } else { "it is no URL" };
        Failure::wrongly(format!("{:?} is no URL of S3: {rule}", without_password(url)), BUCKET_HINT)
    };
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let settings = rethread_s3::Settings::parse(url).map_err(refused)?.with_variables(variables);
    Ok(At::Bucket(Box::new(settings)))
}

/// Returns a URL as it may be shown.
pub(crate) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    // A password may hold a question mark.
    let (who, rest) = rest.rsplit_once('@').map_or((None, rest), |(who, rest)| (who.split(':').next(), rest));
    let (host, parameters) = rest.split_once('?').unwrap_or((rest, ""));
    let shown = who.map_or(format!("{scheme}://{host}"), |who| format!("{scheme}://{who}@{host}"));
    let open = parameters.split('&').filter(|parameter| !parameter.starts_with("password="));
    match open.collect::<Vec<_>>().join("&") {
        none if none.is_empty() => shown,
        parameters => format!("{shown}?{parameters}"),
    }
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

fn unknown(url: &str) -> Failure {
    let known = "encrypted+URL, file:PATH, memory:, off:, postgres://USER@HOST/DATABASE, s3://BUCKET/PREFIX, \
                 sqlite:FILE";
    Failure::wrongly(
        format!("unknown store {:?}", without_password(url)),
        format!("a store is a path or one of {known}"),
    )
}

/// Returns the folder for a person's sessions, whatever store was typed.
pub(crate) fn default_home() -> Result<PathBuf, Failure> {
    default_folder(|name| std::env::var_os(name))
}

fn default_folder(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // A relative XDG_DATA_HOME is to be ignored, says its specification.
    let data = || set("XDG_DATA_HOME").filter(|path| path.is_absolute());
    set("RETHREAD_HOME")
        .or_else(|| data().map(|data| data.join("rethread")))
        .or_else(|| set("HOME").map(|home| home.join(".local/share/rethread")))
        .ok_or_else(|| {
            let message = "there is no place for sessions: neither RETHREAD_HOME nor HOME is set";
            Failure::wrongly(message, "`--store PATH` names one")
        })
}

/// Claude Code's folder belongs to another program: nothing of ours is ever written there.
fn refuse_claudes_own(folder: &Path) -> Result<(), Failure> {
    let Some(home) = std::env::var_os("HOME").filter(|home| !home.is_empty()) else {
        return Ok(());
    };
    let theirs = Path::new(&home).join(".claude");
    let theirs = theirs.canonicalize().unwrap_or(theirs);
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let existing = absolute.ancestors().find_map(|path| path.canonicalize().ok());
    if absolute.starts_with(&theirs) || existing.is_some_and(|path| path.starts_with(&theirs)) {
        let message = format!("{} belongs to Claude Code", folder.display());
        return Err(Failure::wrongly(message, "`--store PATH` names a folder for rethread alone"));
    }
    Ok(())
}

pub(crate) fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-+~@%,=".contains(&byte);
    if text.bytes().all(plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder_of(variables: &[(&str, &str)]) -> Option<PathBuf> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| value.into());
        default_folder(find).ok()
    }

    #[test]
    fn the_default_folder_is_rethreads_own_then_the_persons_data() {
        let home = ("HOME", "/home/ada");
        let data = ("XDG_DATA_HOME", "/data");
        assert_eq!(folder_of(&[home, data, ("RETHREAD_HOME", "/r")]), Some("/r".into()));
        assert_eq!(folder_of(&[home, data]), Some("/data/rethread".into()));
        assert_eq!(folder_of(&[home, ("RETHREAD_HOME", "")]), Some("/home/ada/.local/share/rethread".into()));
        assert_eq!(
            folder_of(&[home, ("XDG_DATA_HOME", "relative")]),
            Some("/home/ada/.local/share/rethread".into())
        );
        assert_eq!(folder_of(&[]), None);
    }

    #[test]
    fn what_is_shown_of_a_url_holds_no_password() {
        for (url, shown) in [
            (
                "postgres://ada:se?cret@db:5433/x?sslmode=require&password=p",
                "postgres://ada@db:5433/x?sslmode=require",
            ),
            ("postgres://ada:secret@db/x?password=p", "postgres://ada@db/x"),
            ("postgres:///x?host=/run/pg", "postgres:///x?host=/run/pg"),
            ("sqlite:a:b@c.db", "sqlite:a:b@c.db"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }

    #[test]
    fn a_path_needs_no_scheme_and_a_url_names_its_folder() {
        for (text, path) in [
            ("/srv/s", "/srv/s"),
            ("./a:b", "./a:b"),
            ("file:/srv/s", "/srv/s"),
            ("file:///srv/s", "/srv/s"),
            ("file:s", "s"),
        ] {
            assert_eq!(parse(text).unwrap(), At::Folder(path.into()), "{text}");
        }
        for text in ["sqlite:s.db", "sqlite://s.db"] {
            assert_eq!(parse(text).unwrap(), At::File("s.db".into()), "{text}");
        }
        for text in ["", "file:", "sqlite:", "gopher://hole", "memory:x", "a:b"] {
            assert!(matches!(parse(text), Err(Failure::Wrongly { .. })), "{text}");
        }
    }
}
