//! What says in the root itself that a rewind is under way: whoever looks there next knows, whichever session and
//! whichever store the rewind is of.

use std::ffi::OsStr;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rethread_store::{EntryId, SessionId};
use rustix::fs::CWD;
use rustix::io::Errno;

use crate::defect::Defect;
use crate::hands::Hands;
use crate::root::stat_in;

/// The name of the link that is the mark. It points nowhere; what it says is its target.
pub(crate) const NAME: &str = ".rethread-rewind";
/// What a link can hold, with room to spare.
const LONGEST: usize = 3000;

/// A rewind that is under way, or was when its process died.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) receipt: EntryId,
    /// In whose log it is recorded.
    pub(crate) session: SessionId,
    /// The store that has the log, for people.
    pub(crate) store: String,
}

impl Mark {
    /// Marks a root. It is durable once the root's folder is synced.
    ///
    /// A link, and not a file, because it is there with all that it says or not at all.
    pub(crate) fn set(&self, hands: &dyn Hands, root: BorrowedFd<'_>) -> io::Result<()> {
        if Defect::LeaveNoMark.is_on() {
            return Ok(());
        }
        let store: String = self.store.chars().take(LONGEST).collect();
        let target = format!("{} {} {store}", self.receipt, self.session);
        match hands.make_link(root, OsStr::new(NAME), OsStr::new(&target)) {
            // A file system without links: the session itself still knows.
            Err(error) if has_no_links(&error) => Ok(()),
            made => made,
        }
    }

    /// Takes the mark away. If that does not last, whoever sees it again sees that the rewind has ended.
    pub(crate) fn clear(hands: &dyn Hands, root: BorrowedFd<'_>) -> io::Result<()> {
        match hands.remove(root, OsStr::new(NAME)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Returns what a folder's mark says. What a stranger put there counts for nothing: anybody may write to `/tmp`.
    pub(crate) fn of(folder: &Path) -> Option<Self> {
        let target = rustix::fs::readlinkat(CWD, folder.join(NAME), Vec::new()).ok()?;
        let owner = |path: &Path| stat_in(CWD, path.as_os_str()).map(|stat| stat.st_uid);
        let made_by = owner(&folder.join(NAME)).ok()?;
        let trusted = [0, rustix::process::geteuid().as_raw(), owner(folder).ok()?];
        if !trusted.contains(&made_by) {
            return None;
        }
        let text = String::from_utf8_lossy(target.as_bytes()).into_owned();
        let mut words = text.splitn(3, ' ');
        let (receipt, session) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        Some(Self { receipt, session, store: words.next().unwrap_or_default().to_owned() })
    }
}

/// Returns whether a name is that of a mark.
pub(crate) fn is_mark(name: &[u8]) -> bool {
    OsStr::from_bytes(name) == NAME
}

fn has_no_links(error: &io::Error) -> bool {
    [Errno::PERM, Errno::OPNOTSUPP, Errno::NOSYS]
        .map(|errno| Some(errno.raw_os_error()))
        .contains(&error.raw_os_error())
}
