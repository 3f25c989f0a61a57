//! What a whole-tree capture leaves out: what `.gitignore` and `.rethreadignore` say.

use std::ffi::OsStr;
use std::io::Read;
use std::os::fd::BorrowedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::root::open_in;

/// Why a path was left out that some rule speaks of.
pub(crate) const IGNORED: &str = "ignored";

/// The files that say so, the more important one first.
const FILES: [&str; 2] = [".rethreadignore", ".gitignore"];
/// A larger file is no list of patterns.
const MOST: u64 = 1 << 20;

/// The rules of a folder, and of those that it is in.
#[derive(Debug)]
pub(crate) struct Ignored {
    rules: Gitignore,
    outer: Option<Arc<Ignored>>,
}

impl Ignored {
    /// Returns whether a name in a folder has rules in it.
    pub(crate) fn is_rules(name: &[u8]) -> bool {
        FILES.iter().any(|file| file.as_bytes() == name)
    }

    /// Adds the rules that are in a folder to those of the folders around it.
    pub(crate) fn within(
        outer: Option<Arc<Ignored>>,
        folder: BorrowedFd<'_>,
        path: &[u8],
    ) -> Option<Arc<Ignored>> {
        let mut inner = outer;
        for file in FILES.iter().rev() {
            let mut text = String::new();
            let read =
                open_in(folder, OsStr::new(file)).and_then(|file| file.take(MOST).read_to_string(&mut text));
            if read.is_err() {
                // Without its rules more is captured, which does no harm.
                continue;
            }
            let mut builder = GitignoreBuilder::new(Path::new("/").join(OsStr::from_bytes(path)));
            for line in text.lines() {
                // A line that is no pattern means nothing, as in git.
                let _ = builder.add_line(None, line);
            }
            if let Ok(rules) = builder.build()
                && !rules.is_empty()
            {
                inner = Some(Arc::new(Ignored { rules, outer: inner }));
            }
        }
        inner
    }

    /// Returns whether the rules leave a path out.
    pub(crate) fn leaves_out(&self, path: &[u8], is_folder: bool) -> bool {
        let full = Path::new("/").join(OsStr::from_bytes(path));
        let mut rules = Some(self);
        while let Some(inner) = rules {
            match inner.rules.matched(&full, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => rules = inner.outer.as_deref(),
            }
        }
        false
    }
}
