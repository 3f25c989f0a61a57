//! Everything that Claude Code keeps of a session, to be carried to another machine and put in its place there.
//!
//! Transcripts only grow, so one that was carried before is brought up to date by what came since. Whatever went on here
//! in another way is never written over.

use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::json;

use crate::claude_folder::ClaudeFolder;
use crate::error::{Error, Result};
use crate::folder::Folder;
use crate::folder_name::folder_name;
use crate::trash::{BESIDE, FILE_HISTORY, TRANSCRIPT};
use crate::walk::is_uuid;

/// How much is compared at once.
const PIECE: usize = 1 << 16;

/// Everything that belongs to a session: its transcript, what is beside it, and its file history.
#[derive(Debug)]
pub struct Belongings<'a> {
    claude: &'a ClaudeFolder,
    session: String,
    project: PathBuf,
    names: Vec<String>,
}

impl Belongings<'_> {
    /// Returns the names of the files. They say nothing of this machine.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Opens one of them.
    pub fn open(&self, name: &str) -> Result<File> {
        let place = place(&self.project, &self.session, name)?;
        let folder = self.claude.open()?.beneath(place.parent().unwrap_or(Path::new("")))?;
        folder.read(place.file_name().unwrap_or_default())
    }

    /// Opens one of them without what a [`Reception`] put behind it: where a session works is for each machine to say.
    pub fn open_own(&self, name: &str) -> Result<io::Take<File>> {
        let mut file = self.open(name)?;
        let length = match name == TRANSCRIPT {
            true => own_length(&mut file).map_err(Error::io("read", Path::new(name)))?.0,
            false => u64::MAX,
        };
        Ok(file.take(length))
    }
}

/// A session's files that come from another machine.
#[derive(Clone, Copy)]
pub struct Incoming<'a> {
    /// The session.
    pub session: &'a str,
    /// Where it worked there.
    pub was_at: &'a Path,
    /// Where it goes on here.
    pub cwd: &'a Path,
    /// The names of its files, as [`Belongings::names`] gave them.
    pub names: &'a [&'a str],
    /// Opens one of them.
    pub open: &'a dyn Fn(&str) -> io::Result<Box<dyn Read + 'a>>,
    /// Says whether a file that is here is as it was when it last came or went: then it may be replaced by whatever
    /// comes.
    pub is_as_it_was: &'a dyn Fn(&str, &mut dyn Read) -> io::Result<bool>,
}

/// What is to be done for a session to be here, once nothing speaks against it.
pub struct Reception<'a> {
    claude: &'a ClaudeFolder,
    incoming: Incoming<'a>,
    project: PathBuf,
    wanted: Vec<Wanted<'a>>,
}

/// A file that is to be written.
struct Wanted<'a> {
    name: &'a str,
    place: PathBuf,
    /// What is in its place, as it was looked at.
    here: Option<Identity>,
}

/// Tells a file from what others made of it since.
type Identity = (u64, u64, u64, i64, i64);

fn identity(file: &File) -> io::Result<Identity> {
    let it = file.metadata()?;
    Ok((it.dev(), it.ino(), it.len(), it.mtime(), it.mtime_nsec()))
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
    /// Returns everything that belongs to a session.
    pub fn belongings(&self, session: &str) -> Result<Belongings<'_>> {
        let project = self.project_of(session)?;
        let mut names = vec![TRANSCRIPT.to_owned()];
        for (prefix, within) in [(BESIDE, project.join(session)), (FILE_HISTORY, history_of(session))] {
            let Ok(folder) = self.open()?.beneath(&within) else { continue };
            folder.files(Path::new(prefix), &mut names)?;
        }
        Ok(Belongings { claude: self, session: session.to_owned(), project, names })
    }

    /// Looks whether a session's files can be put in their places. Nothing is written yet; an error if a process is at
    /// work on it, or if any of them is here and went on in another way.
    pub fn receive<'a>(&'a self, incoming: Incoming<'a>) -> Result<Reception<'a>> {
        let session = incoming.session;
        if !is_uuid(session) {
            let rule = "Claude Code's sessions are named by UUIDs";
            return Err(Error::BadName { what: "session id", text: session.into(), rule });
        }
        self.refuse_if_live(session)?;
        let project = match self.project_of(session) {
            Ok(project) => project,
            Err(Error::SessionNotFound(_)) => {
                Path::new("projects").join(folder_name(&incoming.cwd.to_string_lossy()))
            }
            Err(error) => return Err(error),
        };
        let mut wanted = Vec::new();
        for name in incoming.names {
            wanted.extend(self.wanted(&incoming, name, place(&project, session, name)?)?);
        }
        // A session is there when its transcript is.
        wanted.sort_by_key(|wanted| wanted.name == TRANSCRIPT);
        Ok(Reception { claude: self, incoming, project, wanted })
    }

    fn refuse_if_live(&self, session: &str) -> Result<()> {
        match self.live_on(session) {
            Some(live) => Err(Error::InUse { session: session.into(), pid: live.pid }),
            None => Ok(()),
        }
    }

    /// Returns what is to be done about a file.
    fn wanted<'a>(
        &self,
        incoming: &Incoming<'a>,
        name: &'a str,
        place: PathBuf,
    ) -> Result<Option<Wanted<'a>>> {
        let (path, is_transcript) = (self.path().join(&place), name == TRANSCRIPT);
        let Some(mut here) = self.here(&place)? else { return Ok(Some(Wanted { name, place, here: None })) };
        let read = |error| Error::io("read", &path)(error);
        let identity = identity(&here).map_err(read)?;
        let (length, moved_to) = match is_transcript {
            true => own_length(&mut here).map_err(read)?,
            false => (identity.2, None),
        };
        let compared = |error| Error::io("compare", &path)(error);
        let mut there = opened(incoming, name)?;
        let standing = compare(&mut (&here).take(length), &mut there).map_err(compared)?;
        here.rewind().map_err(read)?;
        let is_as_it_was = || (incoming.is_as_it_was)(name, &mut (&here).take(length)).map_err(compared);
        let is_wanted = match standing {
            // Only where it works may have to be said.
            Standing::Same => is_transcript && moved_to.as_deref().unwrap_or(incoming.was_at) != incoming.cwd,
            Standing::Behind => true,
            Standing::Ahead if !is_transcript => false,
            // A transcript only grows: one that is here and is not its beginning has something that would be lost.
            Standing::Apart if !is_transcript && is_as_it_was()? => true,
            Standing::Ahead => return Err(Error::Ahead(incoming.session.to_owned())),
            Standing::Apart => return Err(Error::Apart { session: incoming.session.to_owned(), path }),
        };
        Ok(is_wanted.then_some(Wanted { name, place, here: Some(identity) }))
    }

    fn here(&self, place: &Path) -> Result<Option<File>> {
        if !self.path().try_exists().map_err(Error::io("look at", self.path()))? {
            return Ok(None);
        }
        let folder = self.open()?.beneath(place.parent().unwrap_or(Path::new("")));
        match folder.and_then(|folder| folder.read(place.file_name().unwrap_or_default())) {
            Ok(file) => Ok(Some(file)),
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the folder that a session's transcript is in, beneath this one.
    fn project_of(&self, session: &str) -> Result<PathBuf> {
        let path = self.find(session)?;
        let project = path.parent().and_then(Path::file_name).unwrap_or_default();
        Ok(Path::new("projects").join(project))
    }
}

impl Reception<'_> {
    /// Puts the files in their places, the transcript last, so that Claude Code can resume the session here. Returns the
    /// transcript's path. What somebody wrote meanwhile is not written over: that is an error.
    pub fn finish(self) -> Result<PathBuf> {
        let Self { claude, incoming, project, wanted } = self;
        fs::create_dir_all(claude.path()).map_err(Error::io("make", claude.path()))?;
        for Wanted { name, place, here } in wanted {
            let folder = claude.open()?.made_beneath(place.parent().unwrap_or(Path::new("")))?;
            let file = place.file_name().and_then(|file| file.to_str()).unwrap_or_default();
            let mut content = opened(&incoming, name)?;
            if name == TRANSCRIPT && incoming.was_at != incoming.cwd {
                content = Box::new(Relocated::new(content, incoming.session, incoming.cwd));
            }
            let check = || {
                claude.refuse_if_live(incoming.session)?;
                let now = claude.here(&place)?.map(|file| identity(&file)).transpose();
                let path = claude.path().join(&place);
                match now.map_err(Error::io("look at", &path))? == here {
                    true => Ok(()),
                    false => Err(Error::Apart { session: incoming.session.to_owned(), path }),
                }
            };
            match here {
                Some(_) => folder.replace_with(file, &mut content, &check)?,
                None => folder.add_with(file, &mut content, &check)?,
            }
        }
        Ok(claude.path().join(project).join(format!("{}.jsonl", incoming.session)))
    }
}

fn opened<'a>(incoming: &Incoming<'a>, name: &str) -> Result<Box<dyn Read + 'a>> {
    (incoming.open)(name).map_err(Error::io("read", name))
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

/// Returns how long a transcript is without what a [`Reception`] put behind it, and where that says that it works.
fn own_length(file: &mut File) -> io::Result<(u64, Option<PathBuf>)> {
    let length = file.metadata()?.len();
    let from = length.saturating_sub(PIECE as u64);
    let mut tail = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.by_ref().take(PIECE as u64).read_to_end(&mut tail)?;
    file.rewind()?;
    let end = tail.strip_suffix(b"\n").unwrap_or(&tail);
    let begin = memchr::memrchr(b'\n', end).map_or(0, |at| at + 1);
    let moved: Option<Moved> = serde_json::from_slice(&end[begin..]).ok();
    Ok(match moved.filter(|moved| moved.kind == "relocated" && moved.by == BY) {
        Some(moved) => (from + begin as u64, Some(moved.to.into())),
        None => (length, None),
    })
}

/// How we tell our own entry from Claude Code's.
const BY: &str = "rethread";

#[derive(Deserialize)]
struct Moved {
    #[serde(rename = "type")]
    kind: String,
    #[serde(rename = "relocatedCwd")]
    to: String,
    by: String,
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
        let entry = json!({
            "type": "relocated", "relocatedCwd": cwd.to_string_lossy(), "sessionId": session, "by": BY,
        });
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

    #[test]
    fn what_is_written_while_files_come_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let claude = ClaudeFolder::new(folder.path().join(".claude"));
        let session = "11111111-1111-4111-8111-111111111111";
        let open = |_: &str| -> io::Result<Box<dyn Read>> { Ok(Box::new(&b"{}\n{}\n"[..])) };
        let never = |_: &str, _: &mut dyn Read| Ok(false);
        let incoming = Incoming {
            session,
            was_at: Path::new("/work"),
            cwd: Path::new("/work"),
            names: &[TRANSCRIPT],
            open: &open,
            is_as_it_was: &never,
        };
        let path = claude.receive(incoming).unwrap().finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"{}\n{}\n");
        fs::write(&path, "{}\n").unwrap();
        let reception = claude.receive(incoming).unwrap();
        fs::write(&path, "{}\n{\"mine\":1}\n").unwrap();
        assert!(matches!(reception.finish(), Err(Error::Apart { .. })));
        assert_eq!(fs::read(&path).unwrap(), b"{}\n{\"mine\":1}\n");
        // One that came into being meanwhile is not written over either.
        fs::remove_file(&path).unwrap();
        let reception = claude.receive(incoming).unwrap();
        fs::write(&path, "mine").unwrap();
        assert!(reception.finish().is_err());
        assert_eq!(fs::read(&path).unwrap(), b"mine");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left beside it");
    }
}
