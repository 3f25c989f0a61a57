//! How a command ended: done, done in part, or not, and the exit code that says so.

use std::process::ExitCode;

use rethread_keeper::Problem;
use rethread_store::Error;

/// A command that came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    /// All of it.
    Fully,
    /// What could be done; what could not was said in warnings.
    Partly,
}

impl Done {
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::from(self == Done::Partly))
    }
}

/// A command that could not do what it was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The store refused; [`Context`](crate::context::Context) knows what to type next.
    Store(Error),
    /// It was asked wrongly.
    Wrongly { message: String, hint: Option<String> },
    /// It could not be done.
    Failed { message: String, hint: Option<String> },
    /// It could not be done, for a reason that programs know by name.
    Known(Box<Problem>),
    /// Whoever read our answers has left. They know, so nothing is said.
    PipeClosed,
}

impl Failure {
    /// Returns a failure of what was asked for.
    pub(crate) fn wrongly(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Wrongly { message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns a failure of what was tried.
    pub(crate) fn failed(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Failure::Failed { message: message.into(), hint: Some(hint.into()) }
    }

    /// Returns what was tried and failed for a known reason, as a person reads it.
    pub(crate) fn known(problem: Problem, message: String, hint: Option<String>) -> Self {
        let (detail, hint) = (Some(message.into()), hint.map(Into::into));
        Failure::Known(Box::new(Problem { detail, hint, ..problem }))
    }

    /// Returns it as programs read it: the same object that the keeper answers with. None if nobody is to hear of it.
    pub(crate) fn problem(&self) -> Option<Problem> {
        match self {
            Failure::PipeClosed => None,
            Failure::Known(problem) => Some((**problem).clone()),
            Failure::Store(error) => Some(Problem::from(error.clone())),
            Failure::Wrongly { message, hint } => Some(Problem {
                detail: Some(message.as_str().into()),
                hint: hint.as_deref().map(Into::into),
                ..named("bad-request", "Bad Request", 400)
            }),
            Failure::Failed { message, hint } => Some(Problem {
                detail: Some(message.as_str().into()),
                hint: hint.as_deref().map(Into::into),
                ..named("failed", "Internal Server Error", 500)
            }),
        }
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Failure::PipeClosed => 0,
            Failure::Store(_) | Failure::Failed { .. } | Failure::Known(_) => 1,
            Failure::Wrongly { .. } => 2,
        })
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Store(error)
    }
}

impl From<rethread_transcripts::Error> for Failure {
    fn from(error: rethread_transcripts::Error) -> Self {
        use rethread_transcripts::Error;
        let hint = match &error {
            Error::SessionNotFound(_) => Some("`rethread list --all` shows what there is".to_owned()),
            Error::SessionExists(_) => Some("`rethread list --all` shows it".to_owned()),
            Error::EntryNotFound { .. } => {
                Some("`rethread show ID --all` shows every entry with its id".to_owned())
            }
            Error::Ahead(id) => Some(format!("`rethread handoff {id} --to URL` hands over what is here")),
            Error::Apart { session, .. } => Some(format!(
                "`rethread fork {session}` keeps what is here under another id, `rethread delete native:{session}` \
                 makes room; then type it again"
            )),
            Error::InUse { pid, .. } => Some(format!("end process {pid} first, or wait for it")),
            _ => None,
        };
        let message = in_one_line(&error);
        match error {
            Error::BadName { .. } => Failure::Wrongly { message, hint },
            error => Failure::known(Problem::from(error), message, hint),
        }
    }
}

impl From<rethread_bridge::Error> for Failure {
    fn from(error: rethread_bridge::Error) -> Self {
        match error {
            rethread_bridge::Error::Store(error) => error.into(),
            rethread_bridge::Error::Transcripts(error) => error.into(),
            error => Failure::Failed { message: in_one_line(&error), hint: None },
        }
    }
}

/// Names a problem as the keeper would.
pub(crate) fn named(code: &str, title: &str, status: u16) -> Problem {
    Problem {
        kind: format!("urn:rethread:problem:{code}").into(),
        title: title.into(),
        status,
        detail: None,
        code: code.into(),
        retryable: false,
        hint: None,
        about: None,
    }
}

/// Returns an error and its causes on one line.
pub(crate) fn in_one_line(error: &dyn std::error::Error) -> String {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(without_number(&error.to_string()));
        cause = error.source();
    }
    line
}

/// Cuts off the number that says the same as the words before it: `(os error 2)`.
pub(crate) fn without_number(cause: &str) -> &str {
    cause.split_once(" (os error ").map_or(cause, |(words, _)| words)
}
