//! `scan`: secrets in the sessions of both homes, and in what is remembered of projects.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};

use rethread_checkpoint::{Read, TreePath, read_contents};
use rethread_store::backend::{From, LogKey, LogName};
use rethread_store::{Error, Finding, Redactor, SessionId};
use rethread_transcripts::Subagent;
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, in_one_line};
use crate::named::NamedSession;
use crate::native::Handoff;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

const READ_AHEAD: usize = 4 << 20;
/// How much of a file's content is looked at, and of a line in it.
const LARGEST: usize = 16 << 20;
/// How much of a secret is shown: what its provider begins all of them with.
const BEGINNING: usize = 4;

#[derive(Debug)]
pub(crate) struct Scan {
    session: Option<NamedSession>,
    answer: Answer,
}

impl std::convert::From<args::Scan> for Scan {
    fn from(typed: args::Scan) -> Self {
        Self { session: typed.id, answer: Answer::of(typed.json) }
    }
}

/// A session of either home, or what the store remembers of a project.
enum Home {
    Native(Box<rethread_transcripts::Session>),
    Stored(SessionId),
    Memory { project: String, text: String },
}

/// A secret that was found.
struct Secret {
    kind: &'static str,
    length: usize,
    /// How it begins, if that says nothing.
    beginning: String,
    /// In which file or log, and in which line of it, counted from one.
    place: String,
    line: u64,
}

impl Scan {
    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let homes = self.sessions(context)?;
        let redactor = Redactor::new();
        let (mut all, mut telling, mut read) = (0, 0, Read::default());
        for (number, home) in homes.iter().enumerate() {
            ui.progress("scanning session", number + 1, homes.len());
            let mut scan = Scanned { redactor: &redactor, found: Vec::new() };
            match home {
                Home::Native(session) => native(session, context, &mut scan, ui),
                Home::Stored(id) => stored(id, context, &mut read, &mut scan, ui)?,
                Home::Memory { project, text } => {
                    scan.content(text.as_bytes(), &format!("memory of {project}"))
                }
            }
            let found = scan.found;
            all += found.len();
            telling += usize::from(!found.is_empty());
            self.show(home, &found, context, ui)?;
        }
        if self.answer == Answer::Text {
            let memories = homes.iter().filter(|home| matches!(home, Home::Memory { .. })).count();
            let mut looked_at = count((homes.len() - memories) as u64, "session");
            if memories > 0 {
                looked_at =
                    format!("{looked_at} and what is remembered of {}", count(memories as u64, "project"));
            }
            let sum = match all {
                0 => "no secret found".into(),
                _ => format!("{} in {telling} of them", count(all as u64, "secret")),
            };
            ui.say(&format!("Looked at {looked_at}: {sum}."));
            if all > 0 {
                ui.hint(
                    "what was written down is no secret any more: have the keys revoked; `--redact` keeps new ones out",
                );
            }
        }
        Ok(if all > 0 { Done::Partly } else { Done::Fully })
    }

    fn sessions(&self, context: &Context) -> Result<Vec<Home>, Failure> {
        if let Some(named) = &self.session {
            return Ok(vec![match named.native(context)? {
                Some(id) => Home::Native(Box::new(context.native.session(&id)?)),
                None => Home::Stored(pollster::block_on(named.find(context))?),
            }]);
        }
        let native = context.native.list()?.into_iter().map(|session| Home::Native(Box::new(session)));
        let mut homes: Vec<Home> = native.collect();
        for id in pollster::block_on(context.store.ids())? {
            // Nobody finds a secret there any more.
            if !pollster::block_on(context.store.backend().is_erased(&id))? {
                homes.push(Home::Stored(id));
            }
        }
        let memories = pollster::block_on(context.store.project_memories())?.into_iter();
        homes.extend(memories.map(|(project, memory)| Home::Memory { project, text: memory.text }));
        Ok(homes)
    }

    fn show(&self, home: &Home, found: &[Secret], context: &Context, ui: &mut Ui) -> Result<(), Failure> {
        let (id, name) = match home {
            Home::Native(session) => (Some(session.session_id.as_str()), session.name.as_deref()),
            Home::Stored(id) => (Some(id.as_str()), None),
            Home::Memory { project, .. } => (None, Some(project.as_str())),
        };
        let home = if matches!(home, Home::Native(_)) { "native" } else { "stored" };
        if self.answer == Answer::Json {
            for Secret { kind, length, place, line, .. } in found {
                let json = json!({
                    "session_id": id, "home": home, "kind": kind, "place": place, "line": line, "length": length,
                });
                ui.data(json.to_string().as_bytes())?;
            }
            return Ok(());
        }
        if !found.is_empty() {
            let id = id.map_or_else(|| "memory".into(), |id| context.short_of(id));
            ui.line(Tone::Strong, &format!("{id}  {}", name.unwrap_or(home)))?;
        }
        for Secret { kind, length, beginning, place, line } in found {
            let text = format!("  {kind}  {beginning}… of {length} characters, {place}, line {line}");
            ui.line(Tone::Plain, &text)?;
        }
        Ok(())
    }
}

/// Scans everything that Claude Code keeps of a session: transcripts, large outputs, file history. A file that cannot be read
/// is said so.
fn native(session: &rethread_transcripts::Session, context: &Context, scan: &mut Scanned, ui: &mut Ui) {
    let subagents = Subagent::all_of(&session.path).into_iter().map(|subagent| subagent.path);
    for path in std::iter::once(session.path.clone()).chain(subagents) {
        let place = path.display().to_string();
        if let Err(error) = File::open(&path).and_then(|file| scan.file(file, &place)) {
            ui.warn(&format!("{place} cannot be read: {}", in_one_line(&error)));
        }
    }
    let Ok(claude) = context.native.claude() else { return };
    let Ok(belongings) = claude.belongings(&session.session_id) else { return };
    for name in belongings.names().iter().filter(|name| !name.ends_with(".jsonl")) {
        let scanned = belongings.open(name).map_err(std::io::Error::other);
        if let Err(error) = scanned.and_then(|file| scan.file(file, name)) {
            ui.warn(&format!("{name} cannot be read: {}", in_one_line(&error)));
        }
    }
}

/// Scans what is stored of a session, what is said about it, and what its checkpoints and handoffs keep of files. What it
/// inherits is scanned with the session it inherits from.
fn stored(
    id: &SessionId,
    context: &Context,
    read: &mut Read,
    scan: &mut Scanned,
    ui: &mut Ui,
) -> Result<(), Failure> {
    let backend = context.store.backend();
    for name in [LogName::Messages, LogName::Transcript] {
        let log = LogKey::new(id.clone(), name);
        let mut from = 0;
        loop {
            let chunk = pollster::block_on(backend.read(&log, From::Position(from), READ_AHEAD))?;
            for line in &chunk.lines {
                scan.line(&String::from_utf8_lossy(&line.body()), name.as_str(), line.stamp().position + 1);
            }
            if chunk.next == from {
                break;
            }
            from = chunk.next;
        }
    }
    let mut take = |path: &TreePath, content: &[u8]| scan.content(content, &format!("contents of {path}"));
    let contents = read_contents(&context.store, id, read, LARGEST, &mut take);
    pollster::block_on(contents).map_err(crate::files::failure)?;
    let session = match pollster::block_on(context.store.load(id)) {
        Ok(Some(session)) => session,
        // What is in the trash has been scanned as far as it is a session.
        Ok(None) | Err(Error::Trashed(_)) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    for file in Handoff::of(&session)?.into_iter().flat_map(|handoff| handoff.files) {
        let place = format!("handed over: {}", file.name);
        if let Err(error) = scan.file(file.open(backend), &place) {
            ui.warn(&format!("{place} cannot be read: {}", in_one_line(&error)));
        }
    }
    Ok(())
}

/// What was found in a session so far.
struct Scanned<'a> {
    redactor: &'a Redactor,
    found: Vec<Secret>,
}

impl Scanned<'_> {
    fn file(&mut self, file: impl std::io::Read, place: &str) -> std::io::Result<()> {
        let mut file = BufReader::with_capacity(1 << 20, file);
        let (mut bytes, mut number) = (Vec::new(), 0);
        while file.by_ref().take(LARGEST as u64).read_until(b'\n', &mut bytes)? > 0 {
            number += 1;
            self.line(&String::from_utf8_lossy(&bytes), place, number);
            bytes.clear();
        }
        Ok(())
    }

    fn content(&mut self, content: &[u8], place: &str) {
        for (number, line) in content.split(|byte| *byte == b'\n').enumerate() {
            self.line(&String::from_utf8_lossy(line), place, number as u64 + 1);
        }
    }

    fn line(&mut self, text: &str, place: &str, line: u64) {
        for Finding { kind, place: range } in self.redactor.find(text) {
            let secret = &text[range];
            // Of a password even the beginning is one.
            let shown =
                if matches!(kind, "secret" | "password-in-url" | "password-in-command" | "bearer-token") {
                    0
                } else {
                    BEGINNING
                };
            let beginning = secret.chars().take(shown).collect();
            let (length, place) = (secret.chars().count(), place.to_owned());
            self.found.push(Secret { kind, length, beginning, place, line });
        }
    }
}
