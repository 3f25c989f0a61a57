//! What goes wrong with a call, and with which one.

use std::path::{Path, PathBuf};

/// A call to the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Call {
    Open,
    Create,
    Look,
    List,
    MakeFolder,
    Rename,
    Remove,
    SyncFolder,
    SyncAll,
    Touch,
    Read,
    Append,
    Write,
    Cut,
    Reserve,
    Sync,
    Lock,
}

impl Call {
    /// Returns whether it makes a difference to what a crash leaves.
    pub(crate) fn changes(self) -> bool {
        !matches!(self, Call::Open | Call::Look | Call::List | Call::Read | Call::Reserve | Call::Lock)
    }

    fn is_write(self) -> bool {
        matches!(self, Call::Append | Call::Write)
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// `EIO`.
    Io,
    /// `ENOSPC`; a write gets half of it in before.
    NoSpace,
    /// The same, but only where something new is to be made.
    NoMoreFiles,
    /// `EROFS`.
    ReadOnly,
    /// `EMFILE`.
    TooManyFiles,
    /// `EACCES`.
    Denied,
    /// A write takes half of what it is given.
    ShortWrite,
    /// A sync of a log, or of its journal, says `EIO`, loses what it likes, and says that all is well from then on.
    FailedSync,
    /// The process is killed before the call.
    Death,
}

impl Failure {
    /// Returns whether this can happen to such a call.
    fn concerns(self, call: Call, path: &Path) -> bool {
        match self {
            Failure::Io => true,
            Failure::NoSpace => {
                call == Call::Reserve
                    || call.changes() && !matches!(call, Call::Remove | Call::Touch | Call::Cut)
            }
            Failure::NoMoreFiles => matches!(call, Call::Create | Call::MakeFolder),
            Failure::ReadOnly | Failure::Death => call.changes(),
            Failure::TooManyFiles => {
                matches!(call, Call::Open | Call::Create | Call::List | Call::SyncFolder | Call::Touch)
            }
            Failure::Denied => {
                !matches!(call, Call::Read | Call::Sync | Call::SyncAll | Call::Lock) && !call.is_write()
            }
            Failure::ShortWrite => call.is_write(),
            Failure::FailedSync => {
                call == Call::Sync && path.extension().is_some_and(|it| it == "jsonl" || it == "journal")
            }
        }
    }

    pub(crate) fn code(self) -> i32 {
        match self {
            Failure::NoSpace | Failure::NoMoreFiles => 28,
            Failure::ReadOnly => 30,
            Failure::TooManyFiles => 24,
            Failure::Denied => 13,
            Failure::Io | Failure::ShortWrite | Failure::FailedSync | Failure::Death => 5,
        }
    }
}

/// How long it goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Once,
    Lasting,
}

/// A failure of the n-th call that it concerns, counted from when it was set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) failure: Failure,
    pub(crate) at: u64,
    pub(crate) span: Span,
}

/// A fault on its way.
#[derive(Clone, Debug)]
pub(super) struct Armed {
    pub(super) fault: Fault,
    pub(super) process: u64,
    /// The calls that it concerned so far.
    pub(super) seen: Vec<(Call, PathBuf)>,
    /// A full disk took half of a write; the rest of it is refused.
    full: bool,
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Done,
    Half,
    Failed(Failure),
}

impl Armed {
    pub(super) fn new(fault: Fault, process: u64) -> Self {
        Self { fault, process, seen: Vec::new(), full: false }
    }

    pub(super) fn strikes(&mut self, call: Call, path: &Path) -> Fate {
        let Fault { failure, at, span } = self.fault;
        if !failure.concerns(call, path) {
            return Fate::Done;
        }
        if std::mem::take(&mut self.full) && call.is_write() {
            return Fate::Failed(failure);
        }
        let number = self.seen.len() as u64;
        self.seen.push((call, path.to_owned()));
        let due = match span {
            Span::Once => number == at,
            Span::Lasting => number >= at,
        };
        match failure {
            _ if !due => Fate::Done,
            Failure::ShortWrite => Fate::Half,
            Failure::NoSpace if call.is_write() => {
                self.full = true;
                Fate::Half
            }
            _ => Fate::Failed(failure),
        }
    }
}
