//! A session written again under another id: a fork, or what could be saved of a damaged one.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use uuid::Uuid;

use crate::chain::Chain;
use crate::change::{append, name_beside, naming, title};
use crate::claude_folder::ClaudeFolder;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::folder_name::folder_name;
use crate::lines::each_entry;
use crate::object::Object;
use crate::rewrite::Rewrite;
use crate::text::lossy;
use crate::text_flaw::without_lone_surrogates;
use crate::transcript::Transcript;
use crate::walk::is_uuid;

/// How to fork a session.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct NativeFork {
    /// The last entry to take over; the active conversation's last if none is named.
    pub at: Option<String>,
    /// The new session's id, a UUID; a new one if none is given.
    pub id: Option<String>,
    /// The new session's name, written as [`ClaudeFolder::rename`] does.
    pub name: Option<String>,
}

/// A session that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its id.
    pub session_id: String,
    /// Its transcript.
    pub path: PathBuf,
    /// How many entries it has.
    pub entries: usize,
    /// What it was called, as far as Claude Code keeps that; `None` if nobody gave it a name now.
    pub name: Option<String>,
}

impl ClaudeFolder {
    /// Writes the conversation up to an entry as a session of its own, which Claude Code can resume. The entries keep
    /// their ids, as in Claude Code's own forks, and say where they come from.
    pub fn fork(&self, session: &str, fork: &NativeFork) -> Result<Written> {
        let path = self.find(session)?;
        let (folder, file) = self.place(&path)?;
        let transcript = Transcript::of(folder.read(file)?, &path)?;
        let chain = match &fork.at {
            Some(uuid) => transcript.chain_to(uuid)?,
            None => transcript.active(),
        };
        let new = new_id(fork.id.as_deref())?;
        let name = fork.name.as_deref().map(title).transpose()?;
        let mut lines: Vec<Vec<u8>> = Vec::new();
        lines.extend(name.iter().flat_map(|name| naming(&new, name)).map(String::into_bytes));
        let before = lines.len();
        let leaf = copy_chain(&transcript, &chain, fork.at.as_deref(), (session, &new), &mut lines)?;
        let leaf = leaf.ok_or_else(|| Error::NothingToResume(path.clone()))?;
        let entries = lines.len() - before;
        lines.push(last_prompt(&new, &leaf));
        let to = path.with_file_name(format!("{new}.jsonl"));
        write_new(&folder, &new, &lines)?;
        if let Some(name) = &name {
            name_beside(&folder, &new, name)?;
        }
        self.link_file_history(session, &new)?;
        Ok(Written { session_id: new, path: to, entries, name })
    }

    /// Writes what can be read of a session as a session of its own, which Claude Code can resume. The damaged one is
    /// left as it is.
    pub fn repaired_copy(&self, session: &str) -> Result<Written> {
        let path = self.find(session)?;
        let (folder, file) = self.place(&path)?;
        let transcript = Transcript::of(folder.read(file)?, &path)?;
        let new = new_id(None)?;
        let mended = transcript.mended_parents(None);
        let (mut lines, mut doubled) = (Vec::new(), transcript.doubled()?);
        each_entry(transcript.file(), transcript.length(), |span, raw| {
            // Of entries with one id the last counts, at the place of the first.
            let (offset, raw) = match doubled.get_mut(&span.offset) {
                Some(last) => match last.take() {
                    Some((offset, raw)) => (offset, Cow::Owned(raw)),
                    None => return,
                },
                None => (span.offset, Cow::Borrowed(raw)),
            };
            let parent = mended.get(&offset).cloned();
            // The API takes no half of a surrogate pair, and a session that has one could not go on.
            let raw = without_lone_surrogates(&raw);
            lines.extend(Rewrite { session: &new, parent, forked_from: None }.of(&raw));
        })
        .map_err(Error::io("read", &path))?;
        let active = transcript.active();
        let leaf = Chain { links: active.links.last().copied().into_iter().collect() };
        let leaf = transcript.read(&leaf).next().transpose()?.and_then(|entry| entry.text("uuid"));
        let leaf = leaf.ok_or_else(|| Error::NothingToResume(path.clone()))?;
        let entries = lines.len();
        lines.push(last_prompt(&new, &leaf));
        let to = path.with_file_name(format!("{new}.jsonl"));
        write_new(&folder, &new, &lines)?;
        // Entries keep their ids, and what was kept of files is found by those.
        self.link_file_history(session, &new)?;
        Ok(Written { session_id: new, path: to, entries, name: None })
    }

    /// Writes entries as a session of a working directory, which Claude Code can resume if they are its own or like
    /// them. Their `sessionId` is made to fit.
    pub fn write_session<'a>(
        &self,
        session: &str,
        cwd: &Path,
        entries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Written> {
        let session = new_id(Some(session))?;
        if self.find(&session).is_ok() {
            return Err(Error::SessionExists(session));
        }
        let rewrite = Rewrite { session: &session, ..Rewrite::default() };
        let lines: Vec<Vec<u8>> = entries.into_iter().filter_map(|entry| rewrite.of(entry)).collect();
        let cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
        let folder = self.projects().join(folder_name(&cwd.to_string_lossy()));
        fs::create_dir_all(self.path()).map_err(Error::io("make", self.path()))?;
        let path = folder.join(format!("{session}.jsonl"));
        let within = folder.strip_prefix(self.path()).unwrap_or(Path::new(""));
        write_new(&self.open()?.made_beneath(within)?, &session, &lines)?;
        Ok(Written { session_id: session, path, entries: lines.len(), name: None })
    }

    /// Adds entries to the end of a session that nobody is at work on, with one call. Their `sessionId` is made to fit.
    pub fn extend_session<'a>(
        &self,
        session: &str,
        entries: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<Written> {
        let path = self.find(session)?;
        if let Some(live) = self.live().into_iter().find(|live| live.session == session) {
            return Err(Error::InUse { session: session.into(), pid: live.pid });
        }
        let rewrite = Rewrite { session, ..Rewrite::default() };
        let lines: Vec<Vec<u8>> = entries.into_iter().filter_map(|entry| rewrite.of(entry)).collect();
        let (folder, file) = self.place(&path)?;
        append(folder.append(file)?, &path, &lines.join(&b'\n'))?;
        Ok(Written { session_id: session.to_owned(), path, entries: lines.len(), name: None })
    }

    /// Gives a copy the file history of its origin, as Claude Code does: the same files, linked.
    fn link_file_history(&self, from: &str, to: &str) -> Result<()> {
        let Ok(all) = self.open()?.folder("file-history") else { return Ok(()) };
        let Ok(from) = all.folder(from) else { return Ok(()) };
        from.link_all(&all.made_folder(to)?)
    }
}

/// Copies a chain, with the file history that belongs to it, and returns the id of its last entry.
fn copy_chain(
    transcript: &Transcript,
    chain: &Chain,
    at: Option<&str>,
    (from, to): (&str, &str),
    lines: &mut Vec<Vec<u8>>,
) -> Result<Option<String>> {
    let mended = transcript.mended_parents(at);
    let (mut copied, mut last, mut groups) = (HashSet::with_capacity(chain.len()), None, HashSet::new());
    let (mut reader, mut links) = (transcript.read(chain), chain.links.iter());
    while let (Some(entry), Some(link)) = (reader.next().transpose()?, links.next()) {
        let parent = mended.get(&entry.span().offset).cloned();
        // A line of an API message that is there already, from another branch: 2.0.0 wrote all it knew anew when it
        // resumed a session. Without what it follows it would be the end of the fork, and all of it.
        let strays = entry.text("parentUuid").is_some_and(|parent| !copied.contains(&parent));
        let is_new = link.group == 0 || groups.insert(link.group);
        if strays && !is_new && parent.is_none() {
            continue;
        }
        last = entry.text("uuid").or(last);
        copied.extend(entry.text("uuid"));
        lines.extend(Rewrite { session: to, parent, forked_from: Some(from) }.of(entry.raw()));
    }
    let mut moved = None;
    each_entry(transcript.file(), transcript.length(), |_, raw| {
        let kind = Envelope::of(raw);
        if kind.as_ref().is_some_and(|envelope| envelope.kind() == "relocated") {
            moved = Some(raw.to_vec());
        }
        if kind.is_some_and(|envelope| envelope.kind().starts_with("file-history-")) {
            let text = lossy(raw);
            let object = Object::of(&text);
            // A delta belongs to the snapshot it names.
            let owner =
                object.and_then(|it| it.string("snapshotMessageId").or_else(|| it.string("messageId")));
            if owner.is_some_and(|owner| copied.contains(&owner.to_string())) {
                lines.push(raw.to_vec());
            }
        }
    })
    .map_err(Error::io("read", transcript.path()))?;
    // It works where its origin did last.
    lines.extend(moved.and_then(|moved| Rewrite { session: to, ..Rewrite::default() }.of(&moved)));
    Ok(last)
}

fn last_prompt(session: &str, leaf: &str) -> Vec<u8> {
    json!({ "type": "last-prompt", "leafUuid": leaf, "sessionId": session }).to_string().into_bytes()
}

fn new_id(wanted: Option<&str>) -> Result<String> {
    match wanted {
        None => Ok(Uuid::new_v4().to_string()),
        Some(id) if is_uuid(id) => Ok(id.to_owned()),
        Some(id) => {
            let rule = "Claude Code's sessions are named by UUIDs";
            Err(Error::BadName { what: "session id", text: id.into(), rule })
        }
    }
}

/// Writes a transcript that is not there yet, whole or not at all.
fn write_new(folder: &Folder, session: &str, lines: &[Vec<u8>]) -> Result<()> {
    let mut bytes = lines.join(&b'\n');
    bytes.push(b'\n');
    folder.add(&format!("{session}.jsonl"), &bytes).map_err(|error| match &error {
        Error::Io { source, .. } if source.kind() == std::io::ErrorKind::AlreadyExists => {
            Error::SessionExists(session.to_owned())
        }
        _ => error,
    })
}
