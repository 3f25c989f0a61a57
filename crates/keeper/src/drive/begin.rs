//! How a session is driven.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a session is driven.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Begin {
    pub(crate) session: String,
    pub(crate) cwd: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) permission_mode: Option<String>,
    pub(crate) model: Option<String>,
}
