//! A parallel scan over conversations of both homes. An index can take its place behind the same route.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use regex::bytes::{Regex, RegexBuilder};
use rethread_store::view;
use rethread_transcripts::{Block, Entry, Session, Span, Subagent};
use serde::Serialize;
use tokio::runtime::Handle;
use utoipa::ToSchema;

use crate::card::{Home, SessionCard};
use crate::keeper::Keeper;
use crate::scope::Scope;

/// How much stands around what was found, in characters.
const AROUND: usize = 80;
/// How many hits one session may bring.
const PER_SESSION: usize = 20;
/// Lines are read this much at a time.
const CHUNK: usize = 1 << 20;
/// For how long stored sessions are looked at: the store may be on another machine, and somebody waits.
const STORED_WITHIN: Duration = Duration::from_secs(10);

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
    home: Home,
    /// The subagent that said it, or was told it.
    agent_id: Option<String>,
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
        let (until, runtime) = (Instant::now() + STORED_WITHIN, Handle::current());
        let hunter = Hunter { hunt: self, keeper, sieve, exact, until, runtime };
        let sessions = self.sessions(keeper);
        let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        let left_out = AtomicUsize::new(0);
        let work = || {
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let is_enough = |hits: &Vec<(usize, Hit)>| hits.len() >= self.limit;
                if is_enough(&found.lock().unwrap_or_else(PoisonError::into_inner)) {
                    return;
                }
                let Some(session) = sessions.get(at) else { return };
                let mut hits = Vec::new();
                if let Err(NotRead) = hunter.look_into(session, &mut hits) {
                    left_out.fetch_add(1, Ordering::Relaxed);
                }
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
        let is_partial = left_out.into_inner() > 0 || next.into_inner() < sessions.len();
        let more = hits.len() > self.limit || is_partial;
        (hits.into_iter().take(self.limit).map(|(_, hit)| hit).collect(), more)
    }

    /// Returns the sessions to look at, the newest first.
    fn sessions(&self, keeper: &Keeper) -> Vec<Place> {
        let catalogue = keeper.catalogue();
        let is_there = |card: &SessionCard| {
            let is =
                |project: &String| [&card.project, &card.cwd].into_iter().flatten().any(|it| it == project);
            let is_named = |wanted: &String| match wanted.strip_prefix("stored:") {
                Some(wanted) => card.home == Home::Stored && *wanted == card.session_id,
                None => *wanted == card.session_id,
            };
            self.project.as_ref().is_none_or(is)
                && self.session.as_ref().is_none_or(is_named)
                && self.after.is_none_or(|after| card.updated_at >= after)
                && self.scope.admits(card.cwd.as_deref())
        };
        let listed = catalogue.after(None).filter(|(_, card)| is_there(card));
        let places = listed.filter_map(|(rank, card)| {
            let known = catalogue.find(Some(rank.key().home), &card.session_id)?;
            Some(Place { card: Arc::clone(card), native: known.native.clone() })
        });
        places.collect()
    }
}

/// A session to look at.
struct Place {
    card: Arc<SessionCard>,
    native: Option<Arc<Session>>,
}

/// A session was not read, or not all of it.
struct NotRead;

/// What somebody said.
struct Said {
    message: Option<String>,
    role: String,
    timestamp: Option<String>,
    /// Texts, and the tool that was called with them.
    texts: Vec<(String, Option<String>)>,
}

/// Looks for it, in one session after another.
struct Hunter<'a> {
    hunt: &'a Hunt,
    keeper: &'a Keeper,
    /// Finds lines that may have it.
    sieve: Regex,
    exact: Regex,
    /// Until when stored sessions are looked at.
    until: Instant,
    /// Stores are read in it.
    runtime: Handle,
}

impl Hunter<'_> {
    /// Returns how many places one session may bring.
    fn most(&self) -> usize {
        if self.hunt.session.is_some() { self.hunt.limit } else { PER_SESSION }
    }

    /// Adds what is found in a session. What was found stays found if the rest cannot be read.
    fn look_into(&self, place: &Place, hits: &mut Vec<Hit>) -> Result<(), NotRead> {
        let card = &place.card;
        match &place.native {
            Some(session) => {
                self.look_into_file(&session.path, card, None, hits).map_err(|_| NotRead)?;
                for agent in &session.subagents {
                    if hits.len() >= self.most() {
                        break;
                    }
                    let path = Subagent::path_of(&session.path, agent);
                    self.look_into_file(&path, card, Some(agent), hits).map_err(|_| NotRead)?;
                }
                Ok(())
            }
            // It has no transcript yet.
            None if card.home == Home::Native => Ok(()),
            None => self.look_into_stored(card, hits),
        }
    }

    fn look_into_stored(&self, card: &SessionCard, hits: &mut Vec<Hit>) -> Result<(), NotRead> {
        if Instant::now() > self.until {
            return Err(NotRead);
        }
        let id = card.session_id.parse().map_err(|_| NotRead)?;
        let read = async { self.keeper.store().open(&id).await?.messages().await };
        let history = self.runtime.block_on(read).map_err(|_| NotRead)?;
        let sifted = history.records.iter().filter(|record| self.sieve.is_match(record.entry.as_bytes()));
        let found = sifted.filter_map(|record| {
            let said = Said::in_store(record.entry.as_bytes(), record.entry.id().as_str())?;
            self.look_at(said, card, None)
        });
        hits.extend(found.take(self.most()));
        Ok(())
    }

    fn look_into_file(
        &self,
        path: &Path,
        card: &SessionCard,
        agent: Option<&String>,
        hits: &mut Vec<Hit>,
    ) -> std::io::Result<()> {
        use std::os::unix::fs::FileExt as _;
        let file = self.keeper.open_native(path).map_err(std::io::Error::other)?;
        let (mut at, mut chunk) = (0_u64, vec![0; CHUNK]);
        loop {
            let read = file.read_at(&mut chunk, at)?;
            if read == 0 {
                return Ok(());
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
            // An empty sieve finds every place: each line is looked at once all the same.
            while from < end
                && let Some(found) = self.sieve.find_at(&chunk[..end], from)
            {
                let begins = memchr::memrchr(b'\n', &chunk[..found.start()]).map_or(0, |newline| newline + 1);
                let ends =
                    memchr::memchr(b'\n', &chunk[found.start()..end]).map_or(end, |it| found.start() + it);
                let said = Said::on_line(&chunk[begins..ends]);
                hits.extend(said.and_then(|said| self.look_at(said, card, agent)));
                if hits.len() >= self.most() {
                    return Ok(());
                }
                from = ends + 1;
            }
            at += end as u64;
        }
    }

    fn look_at(&self, said: Said, card: &SessionCard, agent: Option<&String>) -> Option<Hit> {
        let Hunt { role, tool, after, before, .. } = self.hunt;
        if role.as_ref().is_some_and(|wanted| *wanted != said.role) {
            return None;
        }
        let at = said.timestamp.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
        let is_late = after.is_some_and(|after| at.is_none_or(|at| at < after));
        if is_late || before.is_some_and(|before| at.is_none_or(|at| at > before)) {
            return None;
        }
        let mut texts = said.texts.into_iter().filter(|(_, of)| tool.is_none() || tool == of);
        let (text, tool, found) = texts.find_map(|(text, tool)| {
            let found = self.exact.find(text.as_bytes())?.range();
            Some((text, tool, found))
        })?;
        let (snippet, ranges) = snippet(&text, found);
        let (session_id, name) = (card.session_id.clone(), card.name.clone());
        let Said { message, role, timestamp, .. } = said;
        let agent_id = agent.cloned();
        Some(Hit {
            session_id,
            home: card.home,
            agent_id,
            name,
            message,
            role,
            tool,
            timestamp,
            snippet,
            ranges,
        })
    }
}

impl Said {
    /// Reads a line of a transcript; `None` if it is no message.
    fn on_line(line: &[u8]) -> Option<Self> {
        let entry =
            Entry::of(line, Span { offset: 0, length: line.len() as u32 }).filter(Entry::is_message)?;
        let typed = entry.typed();
        let texts = typed.blocks.iter().filter_map(|block| match block {
            Block::Text(text) | Block::Thinking(text) => Some((text.to_string(), None)),
            Block::ToolUse { name, input, .. } => Some((readable(input.get()), Some(name.to_string()))),
            Block::ToolResult { content, .. } => Some((readable(content.get()), None)),
            _ => None,
        });
        Some(Self {
            message: typed.uuid.as_ref().map(ToString::to_string),
            role: entry.role().to_string(),
            timestamp: typed.timestamp.as_ref().map(ToString::to_string),
            texts: texts.collect(),
        })
    }

    /// Reads an entry of a store; `None` if it is no message.
    fn in_store(bytes: &[u8], id: &str) -> Option<Self> {
        let message = view::Message::of(bytes)?;
        let texts = message.blocks.iter().filter_map(|block| match block {
            view::Block::Text(text) | view::Block::Thinking { thinking: text, .. } => {
                Some((text.to_string(), None))
            }
            view::Block::ToolUse(call) => Some((readable(call.input.get()), Some(call.name.to_string()))),
            view::Block::ToolResult(result) => Some((readable(result.content.get()), None)),
            _ => None,
        });
        Some(Self {
            message: Some(id.to_owned()),
            role: message.role.as_str().to_owned(),
            timestamp: message.timestamp.as_ref().map(ToString::to_string),
            texts: texts.collect(),
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
