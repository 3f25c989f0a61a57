//! A parallel scan over transcripts. An index can take its place behind the same route.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use jiff::Timestamp;
use regex::bytes::{Regex, RegexBuilder};
use rethread_transcripts::{Block, Entry, Session, Span};
use serde::Serialize;
use utoipa::ToSchema;

use crate::keeper::Keeper;
use crate::scope::Scope;

/// How much stands around what was found, in characters.
const AROUND: usize = 80;
/// How many hits one session may bring.
const PER_SESSION: usize = 20;
/// Lines are read this much at a time.
const CHUNK: usize = 1 << 20;

/// What is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Hunt {
    pub(crate) text: String,
    pub(crate) project: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) role: Option<String>,
    pub(crate) tool: Option<String>,
    pub(crate) after: Option<Timestamp>,
    pub(crate) before: Option<Timestamp>,
    pub(crate) limit: usize,
    pub(crate) scope: Scope,
}

/// A place where it stands.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Hit {
    session_id: String,
    /// The session's name.
    name: Option<String>,
    message: Option<String>,
    role: String,
    /// The tool, if it stands in a call.
    tool: Option<String>,
    timestamp: Option<String>,
    /// Some text around it.
    snippet: String,
    /// Where it stands in the snippet: pairs of characters from and to.
    ranges: Vec<[usize; 2]>,
}

impl Hunt {
    /// Looks through all sessions that may be seen, the newest first; returns what was found, and whether there may be
    /// more.
    pub(crate) fn run(&self, keeper: &Keeper) -> (Vec<Hit>, bool) {
        let build = |text: &str| RegexBuilder::new(&regex::escape(text)).case_insensitive(true).build();
        // What JSON writes otherwise is looked for in what was read; lines are sifted by what it writes as it is.
        let plain = longest_plain(&self.text);
        let (Ok(sieve), Ok(exact)) = (build(plain), build(&self.text)) else { return (Vec::new(), false) };
        let sessions = self.sessions(keeper);
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_enough = |hits: &Vec<(usize, Hit)>| hits.len() >= self.limit;
                if is_enough(&found.lock().unwrap_or_else(PoisonError::into_inner)) {
                    return;
                }
                let Some(session) = sessions.get(at) else { return };
                let hits = self.look_into(keeper, session, &sieve, &exact).unwrap_or_default();
                found
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend(hits.into_iter().map(|hit| (at, hit)));
            }
        };
        let threads = thread::available_parallelism().map_or(2, usize::from).min(8);
        thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(work);
            }
            work();
        });
        let mut hits = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        hits.sort_by_key(|(at, _)| *at);
        let more = hits.len() > self.limit || next.into_inner() < sessions.len();
        (hits.into_iter().take(self.limit).map(|(_, hit)| hit).collect(), more)
    }

    fn sessions(&self, keeper: &Keeper) -> Vec<Arc<Session>> {
        let catalogue = keeper.catalogue();
        let is_there = |session: &Session| {
            let places = [&session.project, &session.cwd];
            let is = |project: &String| {
                places.into_iter().flatten().any(|place| place.as_os_str() == project.as_str())
            };
            self.project.as_ref().is_none_or(is)
                && self.session.as_ref().is_none_or(|wanted| *wanted == session.session_id)
                && self.after.is_none_or(|after| session.updated_at >= after)
                && self.scope.admits(session.cwd.as_deref().and_then(Path::to_str))
        };
        let mut sessions: Vec<_> = catalogue.natives().filter(|session| is_there(session)).cloned().collect();
        sessions.sort_by_key(|session| std::cmp::Reverse(session.updated_at));
        sessions
    }

    fn look_into(
        &self,
        keeper: &Keeper,
        session: &Session,
        sieve: &Regex,
        exact: &Regex,
    ) -> std::io::Result<Vec<Hit>> {
        use std::os::unix::fs::FileExt as _;
        let file = keeper.open_native(&session.path).map_err(std::io::Error::other)?;
        let (mut hits, mut at, mut chunk) = (Vec::new(), 0_u64, vec![0; CHUNK]);
        let most = if self.session.is_some() { self.limit } else { PER_SESSION };
        loop {
            let read = file.read_at(&mut chunk, at)?;
            if read == 0 {
                return Ok(hits);
            }
            let end = match memchr::memrchr(b'\n', &chunk[..read]) {
                Some(newline) => newline + 1,
                None if read < chunk.len() => read,
                None => {
                    let larger = chunk.len() * 2;
                    chunk.resize(larger, 0);
                    continue;
                }
            };
            let mut from = 0;
            while from < end
                && let Some(found) = sieve.find_at(&chunk[..end], from)
            {
                let begins = memchr::memrchr(b'\n', &chunk[..found.start()]).map_or(0, |newline| newline + 1);
                let ends =
                    memchr::memchr(b'\n', &chunk[found.start()..end]).map_or(end, |it| found.start() + it);
                hits.extend(self.look_at(session, &chunk[begins..ends], exact));
                if hits.len() >= most {
                    return Ok(hits);
                }
                // Past its end: a sieve that lets everything through finds nothing there for ever.
                from = ends + 1;
            }
            at += end as u64;
        }
    }

    fn look_at(&self, session: &Session, line: &[u8], exact: &Regex) -> Option<Hit> {
        let entry =
            Entry::of(line, Span { offset: 0, length: line.len() as u32 }).filter(Entry::is_message)?;
        let role = entry.role().to_string();
        if self.role.as_ref().is_some_and(|wanted| *wanted != role) {
            return None;
        }
        let typed = entry.typed();
        let said = typed.timestamp.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        let is_late = self.after.is_some_and(|after| said.is_none_or(|said| said < after));
        if is_late || self.before.is_some_and(|before| said.is_none_or(|said| said > before)) {
            return None;
        }
        typed.blocks.iter().find_map(|block| {
            let (text, tool) = match block {
                Block::Text(text) | Block::Thinking(text) => (text.to_string(), None),
                Block::ToolUse { name, input, .. } => (readable(input.get()), Some(name.to_string())),
                Block::ToolResult { content, .. } => (readable(content.get()), None),
                _ => return None,
            };
            if self.tool.is_some() && self.tool != tool {
                return None;
            }
            let found = exact.find(text.as_bytes())?;
            let (snippet, ranges) = snippet(&text, found.start()..found.end());
            let timestamp = typed.timestamp.as_ref().map(|at| at.to_string());
            let message = typed.uuid.as_ref().map(|uuid| uuid.to_string());
            let (session_id, name) = (session.session_id.clone(), session.name.clone());
            Some(Hit { session_id, name, message, role: role.clone(), tool, timestamp, snippet, ranges })
        })
    }
}

/// Returns the texts within JSON, as a person reads them.
fn readable(json: &str) -> String {
    fn collect(value: &serde_json::Value, into: &mut Vec<String>) {
        match value {
            serde_json::Value::String(text) => into.push(text.clone()),
            serde_json::Value::Array(values) => values.iter().for_each(|value| collect(value, into)),
            serde_json::Value::Object(members) => members.values().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
    let mut texts = Vec::new();
    collect(&serde_json::from_str(json).unwrap_or_default(), &mut texts);
    texts.join("\n")
}

/// Returns the longest part of a text that JSON writes as it is.
fn longest_plain(text: &str) -> &str {
    let is_plain =
        |letter: char| !letter.is_control() && !matches!(letter, '"' | '\\' | '/') && letter.is_ascii();
    let parts = text.split(|letter| !is_plain(letter));
    // Nothing plain in it: every line is looked at.
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

fn snippet(text: &str, found: std::ops::Range<usize>) -> (String, Vec<[usize; 2]>) {
    let before: Vec<char> = text[..found.start].chars().rev().take(AROUND).collect();
    let before: String = before.into_iter().rev().collect();
    let after: String = text[found.end..].chars().take(AROUND).collect();
    let start = before.chars().count();
    let end = start + text[found.clone()].chars().count();
    (format!("{before}{}{after}", &text[found]), vec![[start, end]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_says_where_in_it_the_text_stands() {
        let (text, ranges) = snippet(&format!("{}näedle{}", "ü".repeat(200), "x".repeat(200)), 400..407);
        let [[from, to]] = ranges[..] else { panic!("{ranges:?}") };
        assert_eq!(text.chars().skip(from).take(to - from).collect::<String>(), "näedle");
        assert_eq!(text.chars().count(), 80 + 6 + 80);
    }

    #[test]
    fn lines_are_sifted_by_what_json_does_not_escape() {
        assert_eq!(longest_plain("say \"hello there\""), "hello there");
        assert_eq!(longest_plain("ü"), "");
    }
}
