//! What every command that needs a store works with.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rethread_encrypted::EncryptedBackend;
use rethread_keeper::Problem;
use rethread_store::backend::Backend;
use rethread_store::{Error, Event, Options, Redactor, Result, SessionId, Store};

use crate::failure::{Done, Failure, in_one_line};
use crate::native::Native;
use crate::patience::Patience;
use crate::place::Place;
use crate::short_ids::ShortIds;
use crate::ui::Ui;

/// How long the end of a command waits for writes that failed so far.
const CLOSE_WITHIN: Duration = Duration::from_secs(2);

/// What servers of S3 say when it is the credentials that they do not take.
const REFUSED: [&str; 5] =
    ["AccessDenied", "ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch"];

/// The store that a command works on, and how to speak of it.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) store: Store,
    pub(crate) native: Native,
    place: Place,
    key_file: Option<PathBuf>,
    redactor: Option<Arc<Redactor>>,
    events: async_channel::Receiver<Event>,
    patience: OnceCell<Patience>,
    short: OnceCell<ShortIds>,
}

impl Context {
    /// Opens a store. Nothing is read or made yet.
    pub(crate) fn open(
        place: Place,
        key_file: Option<PathBuf>,
        native: Native,
        redact: bool,
    ) -> Result<Self, Failure> {
        let redactor = redact.then(|| Arc::new(Redactor::new()));
        let options =
            Options { close_within: CLOSE_WITHIN, redactor: redactor.clone(), ..Options::default() };
        let store = Store::on(place.backend()?, options);
        let events = store.events();
        let (patience, short) = (OnceCell::new(), OnceCell::new());
        Ok(Self { store, native, place, key_file, redactor, events, patience, short })
    }

    /// Opens another store, as careful with secrets as this one.
    pub(crate) fn other_store(&self, url: &str) -> Result<Store, Failure> {
        let place = Place::find(Some(url.to_owned()), None, self.key_file.as_deref())?;
        if place.is_same(&self.place) {
            return Err(Failure::wrongly("both stores are the same", "`--to URL` names another one"));
        }
        let backend = place.backend()?;
        let capabilities = backend.capabilities();
        if !capabilities.keeps || capabilities.scheme == "memory" {
            let message = format!("nothing that goes to {} is kept", capabilities.scheme);
            return Err(Failure::wrongly(message, "name a store that is there when this command has ended"));
        }
        let options =
            Options { close_within: CLOSE_WITHIN, redactor: self.redactor.clone(), ..Options::default() };
        Ok(Store::on(backend, options))
    }

    /// Opens a store that several machines use; `None` if that is this one.
    pub(crate) fn shared_store(&self, url: Option<&str>) -> Result<Option<Store>, Failure> {
        let Some(url) = url else { return Ok(None) };
        let place = Place::find(Some(url.to_owned()), None, self.key_file.as_deref())?;
        if place.is_encrypted_otherwise(&self.place) {
            let hint = "a store is encrypted as a whole or not at all: name another one";
            return Err(Failure::wrongly("both stores are in one place, and one is encrypted", hint));
        }
        match place.is_same(&self.place) {
            true => Ok(None),
            false => self.other_store(url).map(Some),
        }
    }

    /// Returns a failure with a hint that names the store it is of: what is not in another one is no better found in ours.
    pub(crate) fn of_other(&self, url: Option<&str>, failure: Failure) -> Failure {
        let other =
            url.and_then(|url| Place::find(Some(url.to_owned()), None, self.key_file.as_deref()).ok());
        match (failure, other) {
            (Failure::Store(error @ Error::SessionNotFound(_)), Some(other)) => {
                let hint = format!("{} shows what there is", other.command("list --all"));
                let message = self.describe(&error);
                Failure::known(Problem::from(error), message, Some(hint))
            }
            (failure, _) => failure,
        }
    }

    /// Returns the store's backend with the keys of its sessions; `None` if it is not encrypted.
    pub(crate) fn encrypted_backend(&self) -> Result<Option<EncryptedBackend<Arc<dyn Backend>>>, Failure> {
        self.place.encrypted_backend()
    }

    /// Returns what names this store on a command line, if that was typed.
    pub(crate) fn store_option(&self) -> Option<String> {
        self.place.option()
    }

    /// Returns whether secrets are left out of what is stored.
    pub(crate) fn leaves_secrets_out(&self) -> bool {
        self.redactor.is_some()
    }

    /// Waits for something that writes, until it is durable or hopeless.
    pub(crate) fn write<T, E: From<Error>>(&self, work: impl Future<Output = Result<T, E>>) -> Result<T, E> {
        self.patience()?.wait(work)
    }

    /// Watches over writes from now on.
    pub(crate) fn patience(&self) -> Result<&Patience> {
        match self.patience.get() {
            Some(patience) => Ok(patience),
            None => {
                let patience = Patience::with(&self.store)?;
                Ok(self.patience.get_or_init(|| patience))
            }
        }
    }

    /// Returns a session's id for people: the shortest beginning that no other session has.
    pub(crate) fn short(&self, id: &SessionId) -> String {
        self.short_of(id.as_str())
    }

    /// Returns the id of a session of either home for people.
    pub(crate) fn short_of(&self, id: &str) -> String {
        let short = self.short.get_or_init(|| {
            // A store that cannot be listed has nothing to confuse an id with.
            let stored = pollster::block_on(self.store.ids()).unwrap_or_default();
            let stored = stored.into_iter().map(|id| id.to_string());
            ShortIds::among(stored.chain(self.native.ids()))
        });
        short.of(id).to_owned()
    }

    /// Returns the store's folder, where it has one.
    pub(crate) fn folder(&self) -> Option<&std::path::Path> {
        self.place.folder()
    }

    /// Returns a command to type, in backquotes.
    pub(crate) fn command(&self, rest: &str) -> String {
        match self.native.option() {
            Some(option) => self.place.command(&format!("{option} {rest}")),
            None => self.place.command(rest),
        }
    }

    /// Returns a command about a session to type, in backquotes.
    pub(crate) fn command_on(&self, verb: &str, id: &SessionId) -> String {
        self.command(&format!("{verb} {}", self.short(id)))
    }

    /// Closes the store, and tells what was found on the way.
    pub(crate) fn finish(&self, done: Result<Done, Failure>, ui: &mut Ui) -> Result<Done, Failure> {
        let closed = self.store.close();
        while let Ok(event) = self.events.try_recv() {
            if let Event::SetAside(log, damage) = event {
                let session = self.short(&log.session);
                ui.warn(&format!("session {session}: {damage}; a copy is in the quarantine"));
            }
        }
        let done = match (done, closed) {
            // That nobody reads our answers is no reason to lose what was accepted.
            (Ok(_) | Err(Failure::PipeClosed), Err(error)) => Err(Failure::Store(error)),
            (done, _) => done,
        };
        done.map_err(|failure| match failure {
            Failure::Store(error) => match self.explain(&error) {
                Failure::Failed { message, hint } => Failure::known(Problem::from(error), message, hint),
                failure => failure,
            },
            failure => failure,
        })
    }

    /// Returns an error as a person reads it, with what to do next.
    pub(crate) fn explain(&self, error: &Error) -> Failure {
        let (message, hint) = (self.describe(error), self.hint(error));
        match error {
            Error::BadName { .. } => Failure::Wrongly { message, hint },
            _ => Failure::Failed { message, hint },
        }
    }

    /// Returns an error and its causes on one line, ids shortened.
    pub(crate) fn describe(&self, error: &Error) -> String {
        let line = in_one_line(error);
        if let Error::Busy { what, .. } = error
            && let Some(Ok(id)) = what.strip_prefix("session ").map(str::parse::<SessionId>)
        {
            return self.shortened(&line, &id);
        }
        match session_of(error) {
            Some(id) => self.shortened(&line, id),
            None => line,
        }
    }

    /// Shortens a session's id where a sentence speaks of it; in a path it stays whole.
    pub(crate) fn shortened(&self, sentence: &str, id: &SessionId) -> String {
        sentence.replace(&format!("session {id}"), &format!("session {}", self.short(id)))
    }

    /// Returns what to type next.
    pub(crate) fn hint(&self, error: &Error) -> Option<String> {
        Some(match error {
            Error::SessionNotFound(_) | Error::Gone(_) => {
                format!("{} shows what there is", self.command("list --all"))
            }
            Error::SessionExists(_) => {
                format!("{} shows it; `--id NEW` takes another id", self.command("list --all"))
            }
            Error::Erased(_) => format!("{} clears away what is left of it", self.command("gc")),
            Error::Trashed(id) => format!("{} takes it out again", self.command_on("restore", id)),
            Error::EntryNotFound { session, .. } => {
                let command = self.command(&format!("show {} --all", self.short(session)));
                format!("{command} shows every entry with its id")
            }
            Error::NothingToContinue(_) => {
                format!("{} shows the sessions of all directories", self.command("list"))
            }
            Error::Held { session, .. } | Error::Fenced { session, .. } => {
                let (tail, fork) = (self.command_on("tail", session), self.command_on("fork", session));
                format!("{tail} follows it, {fork} continues a copy")
            }
            Error::Busy { holder, .. } => match pid_in(holder) {
                Some(pid) => format!("if that process is stopped, `kill -CONT {pid}` lets it go on"),
                None => "wait for that process, or end it; nothing is lost".into(),
            },
            Error::NoSpace { .. } => "make room and type it again".into(),
            Error::ReadOnly { .. } => "`--store PATH` names a place that can be written to".into(),
            Error::Io { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
                "`--store PATH` names a place that you may use".into()
            }
            // EIO: the one error by which a disk says that it is failing; no kind of the standard library names it.
            Error::Io { source, .. } if source.raw_os_error() == Some(5) => {
                "the disk reports a failure: see the system's log, and make a copy of the store first".into()
            }
            Error::Backend { backend: "sqlite", .. } => {
                "see whether the file and its folder can be read and written, and type it again; nothing is lost".into()
            }
            // It may do for others; for us it is no place at all, and nothing has been kept there.
            Error::Backend { backend: "s3", action: "use", .. } => {
                "use a server that keeps conditions on PUT, as Amazon S3, MinIO, Ceph and R2 do".into()
            }
            Error::Backend { backend: "s3", .. } if REFUSED.iter().any(|code| in_one_line(error).contains(code)) => {
                "see whether $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_SESSION_TOKEN and $AWS_REGION are right, \
                 and may use that bucket"
                    .into()
            }
            Error::NewerFormat { .. } => {
                "update rethread: a newer version of it has written to this store".into()
            }
            Error::TooLarge { .. } => "store large content elsewhere and name it in the entry".into(),
            Error::Damaged { .. } => format!("{} says where", self.command("verify")),
            Error::Diverged { .. } => {
                "both stay as they are; `rethread export` and `import --id NEW` bring it over under another id"
                    .into()
            }
            Error::BadImport { .. } => {
                format!("{} writes a file to import", self.command("export ID -o FILE"))
            }
            Error::Key(_) => {
                match self.place.is_encrypted() {
                    false => "`--store encrypted+URL` with `--key-file FILE` opens one that is encrypted".into(),
                    true => "`--key-file FILE` names the key that it was encrypted with; the URL of one that is not \
                             encrypted begins without encrypted+"
                        .into(),
                }
            }
            Error::Contended(_) => "type it again".into(),
            _ => return None,
        })
    }
}

fn session_of(error: &Error) -> Option<&SessionId> {
    match error {
        Error::Trashed(id)
        | Error::Gone(id)
        | Error::Erased(id)
        | Error::Cycle(id)
        | Error::SessionExists(id) => Some(id),
        Error::EntryNotFound { session, .. }
        | Error::Held { session, .. }
        | Error::Fenced { session, .. } => Some(session),
        _ => None,
    }
}

/// Finds the number in `process 4121 on host since …`.
fn pid_in(holder: &str) -> Option<u32> {
    holder.strip_prefix("process ")?.split(' ').next()?.parse().ok()
}
