//! `scan`: secrets in the sessions of both homes.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use rethread_store::backend::{From, LogKey, LogName};
use rethread_store::{Finding, Kind, Redactor, SessionId};
use rethread_transcripts::Subagent;
use serde_json::json;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure, in_one_line};
use crate::named::NamedSession;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

const READ_AHEAD: usize = 4 << 20;
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

/// A session of either home.
enum Home {
    Native(Box<rethread_transcripts::Session>),
    Stored(SessionId),
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
        let (mut all, mut telling) = (0, 0);
        for (number, home) in homes.iter().enumerate() {
            ui.progress("scanning session", number + 1, homes.len());
            let found = match home {
                Home::Native(session) => native(session, &redactor, ui),
                Home::Stored(id) => stored(id, &redactor, context)?,
            };
            all += found.len();
            telling += usize::from(!found.is_empty());
            self.show(home, &found, context, ui)?;
        }
        if self.answer == Answer::Text {
            let looked_at = count(homes.len() as u64, "session");
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
        let stored = pollster::block_on(context.store.ids())?.into_iter().map(Home::Stored);
        Ok(native.chain(stored).collect())
    }

    fn show(&self, home: &Home, found: &[Secret], context: &Context, ui: &mut Ui) -> Result<(), Failure> {
        let (id, name) = match home {
            Home::Native(session) => (session.session_id.as_str(), session.name.as_deref()),
            Home::Stored(id) => (id.as_str(), None),
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
            ui.line(Tone::Strong, &format!("{}  {}", context.short_of(id), name.unwrap_or(home)))?;
        }
        for Secret { kind, length, beginning, place, line } in found {
            let text = format!("  {kind}  {beginning}… of {length} characters, {place}, line {line}");
            ui.line(Tone::Plain, &text)?;
        }
        Ok(())
    }
}

/// Scans a session of Claude Code's, and those of its subagents. A file that cannot be read is said so.
fn native(session: &rethread_transcripts::Session, redactor: &Redactor, ui: &mut Ui) -> Vec<Secret> {
    let subagents = Subagent::all_of(&session.path).into_iter().map(|subagent| subagent.path);
    let mut found = Vec::new();
    for path in std::iter::once(session.path.clone()).chain(subagents) {
        if let Err(error) = scan_file(&path, redactor, &mut found) {
            ui.warn(&format!("{} cannot be read: {}", path.display(), in_one_line(&error)));
        }
    }
    found
}

fn scan_file(path: &Path, redactor: &Redactor, found: &mut Vec<Secret>) -> std::io::Result<()> {
    let place = path.display().to_string();
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let (mut bytes, mut number) = (Vec::new(), 0);
    while file.read_until(b'\n', &mut bytes)? > 0 {
        number += 1;
        scan_line(&String::from_utf8_lossy(&bytes), &place, number, redactor, found);
        bytes.clear();
    }
    Ok(())
}

/// Scans what is stored of a session: what it inherits is scanned with the session it inherits from.
fn stored(id: &SessionId, redactor: &Redactor, context: &Context) -> Result<Vec<Secret>, Failure> {
    let mut found = Vec::new();
    for name in [LogName::Messages, LogName::Transcript] {
        let log = LogKey::new(id.clone(), name);
        let mut from = 0;
        loop {
            let chunk =
                pollster::block_on(context.store.backend().read(&log, From::Position(from), READ_AHEAD))?;
            for line in chunk.lines.iter().filter(|line| line.stamp().kind != Kind::Note) {
                let number = line.stamp().position + 1;
                scan_line(
                    &String::from_utf8_lossy(&line.body()),
                    name.as_str(),
                    number,
                    redactor,
                    &mut found,
                );
            }
            if chunk.next == from {
                break;
            }
            from = chunk.next;
        }
    }
    Ok(found)
}

fn scan_line(text: &str, place: &str, line: u64, redactor: &Redactor, found: &mut Vec<Secret>) {
    for Finding { kind, place: range } in redactor.find(text) {
        let secret = &text[range];
        // Of a password even the beginning is one.
        let shown = if matches!(kind, "secret" | "password-in-url" | "bearer-token") { 0 } else { BEGINNING };
        let beginning = secret.chars().take(shown).collect();
        found.push(Secret { kind, length: secret.chars().count(), beginning, place: place.to_owned(), line });
    }
}
