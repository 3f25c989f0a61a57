//! Where sessions are kept that are under fire.

use crate::kit::Home;

/// Where sessions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    InFiles,
    InSqlite,
}

impl Kept {
    /// Has a home keep its sessions beneath one of its folders, which need not be there yet.
    pub(crate) fn beneath(self, folder: &str, home: &mut Home) {
        match self {
            Kept::InFiles => home.move_to(format!("{folder}/store")),
            Kept::InSqlite => home.set([("RETHREAD_STORE", &format!("sqlite:{folder}/sessions.db"))]),
        }
    }
}
