//! What is damaged, how much there is of it, and what should not be there.

use clap::Args as Arguments;

use crate::named::NamedSession;

/// Read every byte and say what is damaged
#[derive(Debug, Arguments)]
pub(crate) struct Verify {
    /// The session; all of them if none is given
    pub(crate) id: Option<NamedSession>,
    /// Print each session's report as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Mend a damaged session, or say how; the files as they were are kept
#[derive(Debug, Arguments)]
pub(crate) struct Repair {
    /// The session
    pub(crate) id: NamedSession,
    /// Do it
    #[arg(long)]
    pub(crate) yes: bool,
    /// Print what was found and done as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Clear away what nothing needs any more
#[derive(Debug, Arguments)]
pub(crate) struct Gc {
    /// Also purge sessions that have been in the trash for this many days
    #[arg(long, value_name = "DAYS")]
    pub(crate) trash_after: Option<u32>,
    /// Also give up checkpoints that are older than this many days
    #[arg(long, value_name = "DAYS")]
    pub(crate) checkpoints_after: Option<u32>,
    /// Also give up all but this many checkpoints of each session, the oldest first
    #[arg(long, value_name = "N")]
    pub(crate) checkpoints_keep: Option<usize>,
    /// Also give up the oldest checkpoints of each session until the rest keep at most so many bytes of contents
    #[arg(long, value_name = "BYTES")]
    pub(crate) checkpoints_bytes: Option<u64>,
    /// Only say what would be cleared away
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print what was cleared away as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show what takes how much of the disk
#[derive(Debug, Arguments)]
pub(crate) struct Du {
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look for everything damaged or surprising in Claude Code's own sessions, and say what to do
#[derive(Debug, Arguments)]
pub(crate) struct Doctor {
    /// The session; all of them if none is given
    pub(crate) id: Option<NamedSession>,
    /// Write what can be read of the session as a new one
    #[arg(long, requires = "id")]
    pub(crate) copy: bool,
    /// Print each session's faults as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Look for secrets in sessions: keys, tokens, passwords. Nothing is changed, and no secret is printed
///
/// It exits with 1 if it finds any.
#[derive(Debug, Arguments)]
pub(crate) struct Scan {
    /// The session; all of them, of both homes, if none is given
    pub(crate) id: Option<NamedSession>,
    /// Print each secret's kind and place as JSON, one object per line
    #[arg(long)]
    pub(crate) json: bool,
}
