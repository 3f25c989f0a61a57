//! Everything that Claude Code keeps of a session, to be carried to another machine and put in its place there.
//!
//! Transcripts only grow, so one that was carried before is brought up to date by what came since. Whatever went on here
//! in another way is never written over.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::{Component, Path, PathBuf};

use serde_json::json;

use crate::claude_folder::ClaudeFolder;
use crate::envelope::Envelope;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::folder_name::folder_name;
use crate::trash::{BESIDE, FILE_HISTORY, TRANSCRIPT};
use crate::walk::is_uuid;

/// How much is compared at once.
const PIECE: usize = 1 << 16;

/// A session's files that come from another machine.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// The session.
    pub session: &'a str,
    /// Where it worked there.
    pub was_at: &'a Path,
    /// Where it goes on here.
    pub cwd: &'a Path,
    /// The names of its files, as [`ClaudeFolder::belongings`] gave them.
    pub names: &'a [&'a str],
    /// Opens one of them.
    pub open: &'a dyn Fn(&str) -> io::Result<Box<dyn Read + 'a>>,
}

/// How a file that is here compares to one that comes.
#[derive(Debug, PartialEq, Eq)]
enum Standing {
    Same,
    /// What is here is the beginning of what comes.
    Behind,
    /// What comes is the beginning of what is here.
    Ahead,
    Apart,
}

impl ClaudeFolder {
    /// Returns the names of all files that belong to a session: its transcript, what is beside it, and its file history.
    /// They say nothing of this machine.
    pub fn belongings(&self, session: &str) -> Result<Vec<String>> {
        let project = self.project_of(session)?;
        let mut names = vec![TRANSCRIPT.to_owned()];
        for (prefix, within) in [(BESIDE, project.join(session)), (FILE_HISTORY, history_of(session))] {
            let Ok(folder) = self.open()?.beneath(&within) else { continue };
            folder.files(Path::new(prefix), &mut names)?;
        }
        Ok(names)
    }

    /// Opens a file that belongs to a session.
    pub fn belonging(&self, session: &str, name: &str) -> Result<File> {
        let place = place(&self.project_of(session)?, session, name)?;
        let folder = self.open()?.beneath(place.parent().unwrap_or(Path::new("")))?;
        folder.read(place.file_name().unwrap_or_default())
    }

    /// Puts a session's files in their places, its transcript last, so that Claude Code can resume it here. Returns the
    /// transcript's path.
    ///
    /// Nothing is written if any of them is here and went on in another way.
    pub fn receive(&self, incoming: &Incoming<'_>) -> Result<PathBuf> {
        let session = incoming.session;
        if !is_uuid(session) {
            let rule = "Claude Code's sessions are named by UUIDs";
            return Err(Error::BadName { what: "session id", text: session.into(), rule });
        }
        if let Some(live) = self.live_on(session) {
            return Err(Error::InUse { session: session.into(), pid: live.pid });
        }
        let project = match self.project_of(session) {
            Ok(project) => project,
            Err(Error::SessionNotFound(_)) => {
                Path::new("projects").join(folder_name(&incoming.cwd.to_string_lossy()))
            }
            Err(error) => return Err(error),
        };
        fs::create_dir_all(self.path()).map_err(Error::io("make", self.path()))?;
        let mut wanted = Vec::new();
        for name in incoming.names {
            let place = place(&project, session, name)?;
            if self.is_wanted(incoming, name, &place)? {
                wanted.push((*name, place));
            }
        }
        // A session is there when its transcript is.
        wanted.sort_by_key(|(name, _)| *name == TRANSCRIPT);
        for (name, place) in wanted {
            let folder = self.open()?.made_beneath(place.parent().unwrap_or(Path::new("")))?;
            let file = place.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let mut content = self.opened(incoming, name)?;
            if name == TRANSCRIPT && incoming.was_at != incoming.cwd {
                content = Box::new(Relocated::new(content, session, incoming.cwd));
            }
            folder.replace_with(file, &mut content)?;
        }
        Ok(self.path().join(project).join(format!("{session}.jsonl")))
    }

    /// Returns whether a file is to be written.
    fn is_wanted(&self, incoming: &Incoming<'_>, name: &str, place: &Path) -> Result<bool> {
        let (path, is_transcript) = (self.path().join(place), name == TRANSCRIPT);
        let folder = self.open()?.beneath(place.parent().unwrap_or(Path::new("")));
        let here = folder.and_then(|folder| folder.read(place.file_name().unwrap_or_default()));
        let mut here = match here {
            Ok(here) => here,
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        let length = if is_transcript { own_length(&mut here) } else { here.metadata().map(|it| it.len()) };
        let length = length.map_err(Error::io("read", &path))?;
        let mut there = self.opened(incoming, name)?;
        let standing = compare(&mut here.take(length), &mut there).map_err(Error::io("compare", &path))?;
        match standing {
            Standing::Same => Ok(false),
            Standing::Behind => Ok(true),
            Standing::Ahead if !is_transcript => Ok(false),
            Standing::Ahead => Err(Error::Ahead(incoming.session.to_owned())),
            Standing::Apart => Err(Error::Apart { session: incoming.session.to_owned(), path }),
        }
    }

    fn opened<'a>(&self, incoming: &Incoming<'a>, name: &str) -> Result<Box<dyn Read + 'a>> {
        (incoming.open)(name).map_err(Error::io("read", name))
    }

    /// Returns the folder that a session's transcript is in, beneath this one.
    fn project_of(&self, session: &str) -> Result<PathBuf> {
        let path = self.find(session)?;
        let project = path.parent().and_then(Path::file_name).unwrap_or_default();
        Ok(Path::new("projects").join(project))
    }
}

fn history_of(session: &str) -> PathBuf {
    Path::new(FILE_HISTORY).join(session)
}

/// Returns where a file belongs, beneath Claude Code's folder. A name may come from anybody.
fn place(project: &Path, session: &str, name: &str) -> Result<PathBuf> {
    if name == TRANSCRIPT {
        return Ok(project.join(format!("{session}.jsonl")));
    }
    let bad = || Error::BadName {
        what: "file of a session",
        text: name.into(),
        rule: "it has to be beneath the session's own folders",
    };
    let (prefix, rest) = name.split_once('/').ok_or_else(bad)?;
    let is_plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    if rest.is_empty() || rest.contains('\0') || rest.ends_with('/') {
        return Err(bad());
    }
    if !Path::new(rest).components().all(is_plain) {
        return Err(bad());
    }
    match prefix {
        BESIDE => Ok(project.join(session).join(rest)),
        FILE_HISTORY => Ok(history_of(session).join(rest)),
        _ => Err(bad()),
    }
}

/// Returns how long a transcript is without what [`ClaudeFolder::receive`] put behind it.
fn own_length(file: &mut File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(PIECE as u64);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.by_ref().take(PIECE as u64).read_to_end(&mut tail)?;
    file.rewind()?;
    let end = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let begin = memchr::memrchr(b'\n', end).map_or(0, |at| at + 1);
    let is_ours = Envelope::of(&end[begin..]).is_some_and(|envelope| envelope.kind() == "relocated");
    Ok(if is_ours { from + begin as u64 } else { length })
}

fn compare(here: &mut dyn Read, there: &mut dyn Read) -> io::Result<Standing> {
    let (mut ours, mut theirs) = (Vec::with_capacity(PIECE), Vec::with_capacity(PIECE));
    loop {
        ours.clear();
        theirs.clear();
        here.take(PIECE as u64).read_to_end(&mut ours)?;
        there.take(PIECE as u64).read_to_end(&mut theirs)?;
        let common = ours.len().min(theirs.len());
        if ours[..common] != theirs[..common] {
            return Ok(Standing::Apart);
        }
        match ours.len().cmp(&theirs.len()) {
            std::cmp::Ordering::Less => return Ok(Standing::Behind),
            std::cmp::Ordering::Greater => return Ok(Standing::Ahead),
            std::cmp::Ordering::Equal if ours.is_empty() => return Ok(Standing::Same),
            std::cmp::Ordering::Equal => {}
        }
    }
}

/// A transcript, and behind it the entry by which Claude Code itself says that a session works elsewhere now.
struct Relocated<'a> {
    transcript: Box<dyn Read + 'a>,
    last: u8,
    rest: Option<Vec<u8>>,
    ending: io::Cursor<Vec<u8>>,
}

impl<'a> Relocated<'a> {
    fn new(transcript: Box<dyn Read + 'a>, session: &str, cwd: &Path) -> Self {
        let entry =
            json!({ "type": "relocated", "relocatedCwd": cwd.to_string_lossy(), "sessionId": session });
        let rest = Some(format!("{entry}\n").into_bytes());
        Self { transcript, last: b'\n', rest, ending: io::Cursor::default() }
    }
}

impl Read for Relocated<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.rest.is_some() {
            let read = self.transcript.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                self.last = buffer[..read].last().copied().unwrap_or(self.last);
                return Ok(read);
            }
            let mut ending = self.rest.take().unwrap_or_default();
            // A line that was torn off does not take this one along.
            if self.last != b'\n' {
                ending.insert(0, b'\n');
            }
            self.ending = io::Cursor::new(ending);
        }
        self.ending.read(buffer)
    }
}

impl Folder {
    /// Adds the names of all files in this folder, in order. Links are left out: what they point to is not the session's.
    fn files(&self, prefix: &Path, names: &mut Vec<String>) -> Result<()> {
        for (name, is_folder) in self.entries()? {
            let path = prefix.join(&name);
            if is_folder {
                self.folder(&name)?.files(&path, names)?;
            } else if let Some(name) = path.to_str() {
                names.push(name.to_owned());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_out_of_the_sessions_own_folders() {
        let place = |name| place(Path::new("projects/-p"), "id", name);
        assert_eq!(place("transcript.jsonl").unwrap(), Path::new("projects/-p/id.jsonl"));
        assert_eq!(place("beside/a/b").unwrap(), Path::new("projects/-p/id/a/b"));
        assert_eq!(place("file-history/x@v1").unwrap(), Path::new("file-history/id/x@v1"));
        for name in
            ["", "beside", "beside/", "beside//etc", "beside/../x", "beside/./../x", "other/x", "/etc/passwd"]
        {
            assert!(place(name).is_err(), "{name}");
        }
    }

    #[test]
    fn of_two_files_it_is_known_which_goes_on_from_the_other() {
        let (short, long) = (vec![b'x'; PIECE], vec![b'x'; PIECE * 2 + 1]);
        let standing = |one: &[u8], other: &[u8]| compare(&mut &*one, &mut &*other).unwrap();
        assert_eq!(standing(&long, &long), Standing::Same);
        assert_eq!(standing(&short, &long), Standing::Behind);
        assert_eq!(standing(&long, &short), Standing::Ahead);
        assert_eq!(standing(b"", b""), Standing::Same);
        assert_eq!(standing(b"ab", b"ac"), Standing::Apart);
        assert_eq!(standing(b"abc", b"ac"), Standing::Apart);
    }
}
