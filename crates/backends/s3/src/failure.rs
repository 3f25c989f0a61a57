//! What a server says, or does not say, as what the caller can do about it.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::Error as Said;
use rethread_store::Error;

use crate::wire::Interrupted;

/// Why a request has no answer that one could work with.
#[derive(Debug)]
pub(crate) enum Failure {
    /// There is no such object.
    Missing,
    /// The condition does not hold, or somebody else is at it just now.
    Conflict,
    /// It is as it is known to be.
    Unchanged,
    /// The range lies behind the end.
    Beyond,
    /// The server refused: nothing was changed.
    Refused(Error),
    /// The server refused because of who asked: nothing was changed.
    Forbidden(Error),
    /// The server could not be reached, or could not do it now: nothing was changed.
    Busy(Error),
    /// What became of it is not known.
    Lost(Error),
}

impl Failure {
    pub(crate) fn new(action: &'static str, place: &str, said: Said) -> Self {
        let interrupted =
            causes(&said).find_map(|cause| cause.downcast_ref::<Interrupted>()).map(|it| it.is_certain);
        let text = || causes(&said).last().map(ToString::to_string).unwrap_or_default();
        match (&said, interrupted) {
            (Said::NotFound { .. }, _) if text().contains("NoSuchBucket") => {}
            (Said::NotFound { .. }, _) => return Failure::Missing,
            (Said::AlreadyExists { .. } | Said::Precondition { .. }, _) => return Failure::Conflict,
            (Said::NotModified { .. }, _) => return Failure::Unchanged,
            (_, None) if text().contains("416 Range Not Satisfiable") => return Failure::Beyond,
            _ => {}
        }
        let is_forbidden = matches!(said, Said::PermissionDenied { .. } | Said::Unauthenticated { .. })
            || text().contains("405 Method Not Allowed");
        let error = trouble(action, place, said);
        match interrupted {
            None if is_forbidden => Failure::Forbidden(error),
            None => Failure::Refused(error),
            Some(true) => Failure::Busy(error),
            Some(false) => Failure::Lost(error),
        }
    }

    pub(crate) fn late(action: &'static str, place: &str, patience: Duration) -> Self {
        Failure::Lost(backend(action, Silence { place: place.to_owned(), patience }))
    }

    /// Returns what to tell a caller who had no reason to expect this.
    pub(crate) fn told(self, action: &'static str, place: &str) -> Error {
        match self {
            Failure::Refused(error)
            | Failure::Forbidden(error)
            | Failure::Busy(error)
            | Failure::Lost(error) => error,
            other => backend(action, Odd { place: place.to_owned(), what: format!("{other:?}") }),
        }
    }
}

fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn StdError + 'static)| (*error).source())
}

pub(crate) fn trouble(action: &'static str, place: &str, said: Said) -> Error {
    let refusal = causes(&said).last().and_then(|cause| Refusal::read(&cause.to_string()));
    backend(action, Trouble { place: place.to_owned(), said, refusal })
}

pub(crate) fn backend(action: &'static str, source: impl StdError + Send + Sync + 'static) -> Error {
    Error::Backend { backend: "s3", action, source: Arc::new(source) }
}

/// Where it was, with what was said there as its cause.
#[derive(Debug)]
struct Trouble {
    place: String,
    said: Said,
    refusal: Option<Refusal>,
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.place)
    }
}

impl StdError for Trouble {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        match &self.refusal {
            Some(refusal) => Some(refusal),
            // What is around it only says once more that something went wrong.
            None => causes(&self.said).last(),
        }
    }
}

/// Why a server refuses, in its own words: what it says is XML around a code and a message.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Refusal {
    code: String,
    message: String,
}

impl Refusal {
    fn read(said: &str) -> Option<Self> {
        let part = |name: &str| {
            let (_, rest) = said.split_once(&format!("<{name}>"))?;
            let (text, _) = rest.split_once(&format!("</{name}>"))?;
            let signs = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
            Some(signs.iter().fold(text.trim().to_owned(), |text, (name, sign)| text.replace(name, sign)))
        };
        Some(Self { code: part("Code")?, message: part("Message").unwrap_or_default() })
    }
}

/// An address that no request can be sent to.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name} is {shown:?}, which is no address: it has http:// or https://, a host, and a port where it needs one"
)]
pub(crate) struct BadEndpoint {
    pub(crate) name: &'static str,
    pub(crate) shown: String,
}

/// No answer at all.
#[derive(Debug, thiserror::Error)]
#[error("{place} gave no answer within {patience:?}")]
struct Silence {
    place: String,
    patience: Duration,
}

/// An answer that makes no sense where it came.
#[derive(Debug, thiserror::Error)]
#[error("{place} answered {what}, which makes no sense here")]
struct Odd {
    place: String,
    what: String,
}

/// A server that this backend cannot work with.
#[derive(Debug, thiserror::Error)]
#[error("{place} {reason}")]
pub(crate) struct Unfit {
    pub(crate) place: String,
    pub(crate) reason: &'static str,
}

/// A server that this backend cannot work with, in its own words.
#[derive(Debug, thiserror::Error)]
#[error("{place} refused a request with a condition (If-None-Match, If-Match), and every write has one")]
pub(crate) struct Unconditional {
    pub(crate) place: String,
    pub(crate) source: Error,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_a_server_says_its_code_and_its_words_are_told_and_no_xml() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?>\n<Error>\
                    <Code>SignatureDoesNotMatch</Code><Message>It is &quot;not&quot; the one &amp; only.</Message>\
                    <Resource>/team</Resource></Error>";
        let said = Said::Generic { store: "S3", source: body.into() };
        let error = trouble("read", "s3://team/x", said);
        let told: Vec<String> = causes(&error).skip(1).map(ToString::to_string).collect();
        assert_eq!(told, ["s3://team/x", "SignatureDoesNotMatch: It is \"not\" the one & only."]);
    }
}
