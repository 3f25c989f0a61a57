//! How checkpoints are made.

use std::path::PathBuf;
use std::sync::Arc;

use crate::hands::{Hands, RealHands};

/// How checkpoints are made.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whether they are made at all.
    pub switch: Switch,
    /// Files that a tool names are kept up to this size.
    pub named_limit: u64,
    /// Files that a whole-tree capture finds are kept up to this size.
    pub tree_file_limit: u64,
    /// How much new content one whole-tree capture keeps at most.
    pub tree_total_limit: u64,
    /// How many paths one whole-tree capture looks at at most.
    pub tree_paths_limit: u64,
    /// Where to remember what files looked like, so that a whole-tree capture reads only what changed. A cache:
    /// deleting it costs time and nothing else.
    pub cache: Option<PathBuf>,
    /// Folders that are never captured nor changed, beside every `.git` and the store itself.
    pub never: Vec<PathBuf>,
    /// Where the root was when some of the records were made: on another machine, or before it was moved. What was
    /// recorded there counts as recorded here.
    pub formerly: Vec<PathBuf>,
    /// The calls that change the tree.
    pub hands: Arc<dyn Hands>,
}

/// Whether checkpoints are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Switch {
    /// They are.
    #[default]
    On,
    /// Captures do nothing, and there is nothing to rewind to.
    Off,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            switch: Switch::On,
            named_limit: 16 << 30,
            tree_file_limit: 64 << 20,
            tree_total_limit: 4 << 30,
            tree_paths_limit: 2_000_000,
            cache: None,
            never: Vec::new(),
            formerly: Vec::new(),
            hands: Arc::new(RealHands),
        }
    }
}
