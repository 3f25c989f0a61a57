//! Claude Code's own sessions, and where rethread keeps what it needs for them.

mod branches;
mod driven;
mod examination;
mod export;
mod handoff;
mod history;
mod import;
mod show;
mod subagent;
mod table;
mod trashed;

use std::path::{Path, PathBuf};

use rethread_transcripts::{ClaudeFolder, ListOptions, Listing, Session};
use sha2::{Digest as _, Sha256};

use crate::demo::DemoPlace;
use crate::failure::Failure;
use crate::place::default_home;

pub(crate) use branches::list_branches;
pub(crate) use driven::Driven;
pub(crate) use examination::{Examination, Surroundings};
pub(crate) use export::export;
pub(crate) use handoff::Handoff;
pub(crate) use history::{checkpoints, diff};
pub(crate) use import::{bring_in, import};
pub(crate) use show::{Form, Part, find_entry, show, tail};
pub(crate) use subagent::list_subagents;
pub(crate) use table::{Item, table};
pub(crate) use trashed::TrashedSession;

/// Claude Code's folder, and what belongs to it elsewhere.
#[derive(Debug)]
pub(crate) struct Native {
    /// None if nothing says where it is.
    claude: Option<ClaudeFolder>,
    cache: Option<PathBuf>,
    data: Option<PathBuf>,
    /// The folder was typed: a hint has to name it.
    typed: Option<PathBuf>,
    /// The folder was typed or configured: whatever we start has to be told.
    named: Option<PathBuf>,
}

impl Native {
    /// Takes what was typed, else what belongs to a demo's home, else what the environment says, else what is configured,
    /// else the usual place. Nothing is read yet.
    pub(crate) fn find(typed: Option<PathBuf>, configured: Option<PathBuf>) -> Self {
        let demo = default_home().ok().and_then(|home| DemoPlace::of(&home));
        if let Some(demo) = demo.filter(|_| typed.is_none()) {
            return Self::of_demo(&demo);
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let told = set("CLAUDE_CONFIG_DIR");
        let named = typed.clone().or_else(|| configured.filter(|_| told.is_none()));
        let home = set("HOME");
        let within = |folder: &str| home.as_ref().map(|home| home.join(folder));
        let folder = named.clone().or(told).or_else(|| within(".claude"));
        let absolute = |name: &str| set(name).filter(|path| path.is_absolute());
        let cache = absolute("XDG_CACHE_HOME").or_else(|| within(".cache"));
        let data = absolute("XDG_DATA_HOME").or_else(|| within(".local/share"));
        Self { claude: folder.map(ClaudeFolder::new), cache, data, typed, named }
    }

    /// Takes what belongs to a demo: none of it is the person's own.
    pub(crate) fn of_demo(demo: &DemoPlace) -> Self {
        let claude = Some(ClaudeFolder::new(demo.claude()));
        let (cache, data) = (Some(demo.cache()), Some(demo.data()));
        Self { claude, cache, data, typed: None, named: Some(demo.claude()) }
    }

    /// Returns Claude Code's folder.
    pub(crate) fn claude(&self) -> Result<&ClaudeFolder, Failure> {
        self.claude.as_ref().ok_or_else(|| {
            Failure::wrongly("nothing says where Claude Code's folder is", "`--claude-dir DIR` names it")
        })
    }

    /// Returns the ids of all sessions.
    pub(crate) fn ids(&self) -> Vec<String> {
        self.claude.as_ref().map(ClaudeFolder::ids).unwrap_or_default()
    }

    /// Lists sessions, the newest first.
    pub(crate) fn list(&self) -> Result<Vec<Session>, Failure> {
        Ok(self.listing()?.sessions)
    }

    /// Lists sessions, the newest first, and folders that cannot be looked into.
    pub(crate) fn listing(&self) -> Result<Listing, Failure> {
        let Some(claude) = &self.claude else { return Ok(Listing::default()) };
        let with_index = self.index().map(|index| ListOptions::default().index(index));
        // A cache that cannot be written is no reason not to answer.
        Ok(match with_index.map(|options| claude.list(&options)) {
            Some(Ok(listing)) => listing,
            _ => claude.list(&ListOptions::default())?,
        })
    }

    /// Returns one session.
    pub(crate) fn session(&self, id: &str) -> Result<Session, Failure> {
        let found = self.list()?.into_iter().find(|session| session.session_id == id);
        found.ok_or_else(|| rethread_transcripts::Error::SessionNotFound(id.to_owned()).into())
    }

    /// Returns where deleted sessions go: never into Claude Code's folder.
    pub(crate) fn trash(&self) -> Result<PathBuf, Failure> {
        let data = self.data.as_ref().ok_or_else(|| {
            Failure::wrongly(
                "there is no place for a trash: neither XDG_DATA_HOME nor HOME is set",
                "set HOME",
            )
        })?;
        Ok(data.join("rethread-native-trash"))
    }

    /// Counts the messages of sessions that nobody counted since they changed, and remembers the counts.
    pub(crate) fn count(&self, go_on: impl FnMut() -> bool) -> Result<(), Failure> {
        let (Some(claude), Some(index)) = (&self.claude, self.index()) else { return Ok(()) };
        claude.count(&index, go_on)?;
        Ok(())
    }

    /// Returns what Claude Code's environment has to say of its folder. Nothing where the folder is the usual one: then
    /// it keeps some of its settings beside it.
    pub(crate) fn environment(&self) -> Vec<(String, String)> {
        let absolute = self.named.as_ref().and_then(|named| std::path::absolute(named).ok());
        let told = |folder: PathBuf| ("CLAUDE_CONFIG_DIR".to_owned(), folder.to_string_lossy().into_owned());
        absolute.map(told).into_iter().collect()
    }

    /// Returns what a command has to say to mean the same folder.
    pub(crate) fn option(&self) -> Option<String> {
        self.typed.as_deref().map(|typed| format!("--claude-dir {}", quoted(typed)))
    }

    /// Returns where to keep what was learnt of transcripts.
    pub(crate) fn cache(&self) -> Option<PathBuf> {
        self.cache.as_deref().map(|cache| cache.join("rethread").join("keeper"))
    }

    fn index(&self) -> Option<PathBuf> {
        let folder = self.claude.as_ref()?.path();
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let name = Sha256::digest(folder.as_os_str().as_encoded_bytes());
        let name: String = name.iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        Some(self.cache.as_deref()?.join("rethread").join(format!("claude-{name}.index")))
    }
}

/// Returns a path that a command line can hold.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy();
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/:._-+~@%,=".contains(&byte);
    if text.bytes().all(plain) { text.into_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}
