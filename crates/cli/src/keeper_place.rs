//! Where the keeper of this person is, and how to ask it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rethread_keeper::{Client, Error, Problem, Tls};

use crate::context::Context;
use crate::demo;
use crate::failure::{Failure, in_one_line, named};
use crate::ui::Ui;

/// The keeper's own folder, and the way to it.
#[derive(Debug)]
pub(crate) struct KeeperPlace {
    pub(crate) home: PathBuf,
}

impl KeeperPlace {
    /// Finds the folder. Nothing is asked yet.
    pub(crate) fn find() -> Result<Self, Failure> {
        Ok(Self { home: crate::place::default_home()?.join("keeper") })
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.home)
    }

    /// Runs something that asks the keeper.
    pub(crate) fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> Result<T, Error>) -> Result<T, Failure> {
        let runtime = runtime(Threads::One)?;
        runtime.block_on(work(self.client())).map_err(|error| explain(&error))
    }

    /// Says that everything here is a demonstration, if it is.
    pub(crate) fn label(&self, ui: &mut Ui) {
        if demo::is_marked(&self.home) {
            ui.say(demo::LABEL);
        }
    }

    /// Fails as the keeper does if it does not know a session.
    pub(crate) fn knows(&self, session: &str) -> Result<(), Failure> {
        let path = format!("/sessions/{session}");
        let _: serde::de::IgnoredAny = self.ask(async |client| client.get(&path).await)?;
        Ok(())
    }
}

/// How many threads do the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Threads {
    One,
    Several,
}

pub(crate) fn runtime(threads: Threads) -> Result<tokio::runtime::Runtime, Failure> {
    let mut builder = match threads {
        Threads::One => tokio::runtime::Builder::new_current_thread(),
        Threads::Several => tokio::runtime::Builder::new_multi_thread(),
    };
    let built = builder.enable_all().build();
    built.map_err(|error| Failure::Failed { message: format!("cannot start threads: {error}"), hint: None })
}

/// Reads what protects the way from other machines.
pub(crate) fn read_tls(certificate: &Path, key: &Path) -> Result<Arc<Tls>, Failure> {
    Tls::read(certificate, key).map(Arc::new).map_err(|error| explain(&error))
}

/// Returns an error as a person reads it, with what to do next.
pub(crate) fn explain(error: &Error) -> Failure {
    let message = in_one_line(error);
    let hint = match error {
        Error::NotRunning => Some("`rethread serve` starts one".to_owned()),
        Error::PathTooLong(_) => Some(
            "`export RETHREAD_HOME=DIR` with a shorter path; `--store PATH` names a store that stays where it is".into(),
        ),
        Error::AddressTaken(_) => {
            Some("`rethread status` shows a keeper that runs; `--listen 127.0.0.1:0` picks a free port".into())
        }
        Error::RunsAlready { what: "page", pid } => {
            Some(format!("`kill {pid}` ends it; with another RETHREAD_HOME both can run"))
        }
        Error::RunsAlready { .. } => Some("`rethread open` logs a browser in, `rethread stop` ends it".into()),
        Error::NotLoopback(_) => {
            Some("give it a certificate with --tls-cert and --tls-key, or listen on 127.0.0.1 and let a proxy with TLS or an ssh tunnel lead there".into())
        }
        Error::NoHostName(_) => {
            Some("`--allow-host NAME` says by which name others call this machine, as its certificate has it".into())
        }
        Error::BadTls { .. } => Some("name a certificate and its key, both in PEM".into()),
        Error::NoSuchRoot(_) => Some("name a directory that is there".into()),
        Error::BadKeeperUrl { .. } => Some(
            "`--keeper https://HOST:7717` goes over TLS; `ssh -L 7717:localhost:7717 HOST` brings a keeper here, as http://localhost:7717".into(),
        ),
        Error::NoToken { .. } => {
            Some("copy `keeper/token` from that keeper's RETHREAD_HOME here, and name it with --token-file".into())
        }
        Error::WrongToken { .. } => {
            Some("`--token-file F` names a copy of `keeper/token` from that keeper's RETHREAD_HOME".into())
        }
        Error::Unreachable { .. } => Some(
            "`rethread serve` starts one there; `ssh -L 7717:localhost:7717 HOST` brings one of another machine here".into(),
        ),
        Error::NotAKeeper { .. } => Some("`rethread status` on the keeper's machine prints its address".into()),
        Error::OtherVersion { .. } => Some("install the same version of rethread on both sides".into()),
        Error::Refused(problem) => problem.hint.as_deref().map(str::to_owned),
        _ => None,
    };
    match error {
        Error::NotLoopback(_)
        | Error::NoHostName(_)
        | Error::BadTls { .. }
        | Error::NoSuchRoot(_)
        | Error::BadKeeperUrl { .. } => Failure::Wrongly { message, hint },
        Error::Refused(problem) => Failure::known((**problem).clone(), message, hint),
        Error::NotRunning => {
            let missing = Problem { retryable: true, ..named("no-keeper", "Service Unavailable", 503) };
            Failure::known(missing, message, hint)
        }
        _ => Failure::Failed { message, hint },
    }
}

/// Returns a session's whole id, for the keeper to find.
pub(crate) fn session_id(named: &crate::named::NamedSession, context: &Context) -> Result<String, Failure> {
    if let Some(id) = named.native(context)? {
        return Ok(id);
    }
    match pollster::block_on(named.find(context)) {
        Ok(id) => Ok(id.to_string()),
        // One that was just begun has no file yet; the keeper knows it by its whole id.
        Err(_) if named.text().len() == 36 => Ok(named.text().to_owned()),
        Err(failure) => Err(failure),
    }
}
