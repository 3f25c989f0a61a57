//! A listing, put together from what the files say and what lies beside them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use jiff::Timestamp;
use serde::Deserialize;

use crate::catalog::Record;
use crate::facts::{first_of, shortened};
use crate::live::Live;
use crate::project::Projects;
use crate::session::{Directory, Health, Session, folder_of};
use crate::skim::Skim;
use crate::subagent;
use crate::walk::{Found, State};

/// From how many sessions on two threads are faster than one.
const MANY: usize = 512;

/// Sessions, the newest first.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// The sessions. None is left out for being damaged.
    pub sessions: Vec<Session>,
    /// Folders of projects that the system does not let us look into: what is in them is not listed.
    pub unreadable: Vec<PathBuf>,
}

/// Puts a listing together. The records are in the order of the files.
#[expect(clippy::vec_box, reason = "records are large and come from the catalog without being copied")]
pub(crate) fn assemble(found: Vec<Found>, records: Vec<Box<Record>>, live: &[Live]) -> Listing {
    let origins = origins(&records);
    let mut known: Vec<(Found, Box<Record>)> = found.into_iter().zip(records).collect();
    let some = |known: Vec<(Found, Box<Record>)>| {
        let mut projects = Projects::default();
        known.into_iter().map(|(found, record)| session(found, record, &mut projects)).collect::<Vec<_>>()
    };
    let mut sessions = if known.len() < MANY {
        some(known)
    } else {
        let others = known.split_off(known.len() / 2);
        thread::scope(|scope| {
            let others = scope.spawn(|| some(others));
            let mut sessions = some(known);
            sessions.extend(others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            sessions
        })
    };
    for live in live {
        if let Some(session) = sessions.iter_mut().find(|session| session.session_id == live.session) {
            session.live.get_or_insert_with(|| live.clone());
        }
    }
    for (fork, origin) in origins {
        let origin = sessions[origin].session_id.clone();
        sessions[fork].forked_from.get_or_insert(origin);
    }
    tell_origins(&mut sessions);
    Listing { sessions, unreadable: Vec::new() }
}

/// Finds forks that do not say what they were forked from: Claude Code copies the entries as they are. The session that
/// began first is the origin. Returns the numbers of fork and origin.
fn origins(records: &[Box<Record>]) -> HashMap<usize, usize> {
    let began = |at: usize| (records[at].skim.opening.began_at.as_deref().unwrap_or("~"), at);
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(records.len());
    let mut sharing = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let Some(root) = record.skim.opening.root.as_deref() else { continue };
        let origin = first.entry(root).or_insert(at);
        if *origin != at {
            sharing.extend([(root, at), (root, *origin)]);
            *origin = if began(at) < began(*origin) { at } else { *origin };
        }
    }
    let forks = sharing.into_iter().map(|(root, at)| (at, first[root]));
    forks.filter(|(fork, origin)| fork != origin).collect()
}

/// Tells each origin of its forks.
fn tell_origins(sessions: &mut [Session]) {
    let forks: Vec<usize> = (0..sessions.len()).filter(|&at| sessions[at].forked_from.is_some()).collect();
    if forks.is_empty() {
        return;
    }
    // The newest of one id, as everywhere.
    let places: HashMap<String, usize> =
        sessions.iter().enumerate().rev().map(|(at, session)| (session.session_id.clone(), at)).collect();
    for fork in forks {
        let origin = sessions[fork].forked_from.as_deref().and_then(|origin| places.get(origin));
        if let Some(&origin) = origin {
            let id = sessions[fork].session_id.clone();
            sessions[origin].forks.push(id);
        }
    }
}

fn session(found: Found, record: Box<Record>, projects: &mut Projects) -> Session {
    let folder = found.has_folder.then(|| folder_of(&found.path));
    let beside = folder.as_deref().map(Beside::of).unwrap_or_default();
    let health = health(&record);
    let Record { message_count, skim: Skim { opening, ending }, .. } = *record;
    let custom_title = ending.custom_title.or(beside.custom_title);
    let last_prompt = ending.last_prompt.map(|prompt| shortened(&prompt));
    let names = [&custom_title, &ending.ai_title, &last_prompt, &ending.summary, &opening.first_prompt];
    let name = first_of(names).map(std::borrow::Cow::into_owned);
    let is_moved = ending.relocated.is_some();
    let cwd = ending.relocated.or(opening.cwd);
    let place = cwd.as_deref().map(|cwd| projects.of(cwd));
    let directory = match &place {
        None => Directory::Unknown,
        Some(place) if !place.exists => Directory::Vanished,
        Some(_) if is_moved => Directory::Moved,
        Some(_) => Directory::Present,
    };
    let project =
        opening.worktree_of.map(|main| projects.of(&main).project).or(place.map(|place| place.project));
    let updated_at =
        Timestamp::from_nanosecond(i128::from(found.state.modified)).unwrap_or(Timestamp::UNIX_EPOCH);
    Session {
        session_id: found.id,
        cwd: cwd.map(Into::into),
        directory,
        project,
        name,
        custom_title,
        first_prompt: opening.first_prompt,
        message_count,
        created_at: opening.began_at.and_then(|at| at.parse().ok()),
        updated_at,
        git_branch: ending.branch.or(opening.branch),
        model: ending.model,
        tag: ending.tag.filter(|tag| !tag.is_empty()),
        archived: beside.archived,
        size: found.state.size,
        health,
        live: None,
        subagents: folder.as_deref().map(subagent::ids).unwrap_or_default(),
        forked_from: opening.forked_from,
        forks: Vec::new(),
        version: opening.version,
        path: found.path,
    }
}

fn health(record: &Record) -> Health {
    match record {
        Record { state: State { inode: 0, .. }, .. } => Health::Unreadable,
        Record { state: State { size: 0, .. }, .. } => Health::Empty,
        Record { skim, .. } if skim.ending.is_unreadable => Health::Garbage,
        Record { skim, .. } if skim.ending.is_torn => Health::Torn,
        _ => Health::Sound,
    }
}

/// What lies in the folder beside a transcript.
#[derive(Default)]
struct Beside {
    custom_title: Option<String>,
    archived: bool,
}

impl Beside {
    fn of(folder: &Path) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Title {
            custom_title: String,
        }
        #[derive(Deserialize)]
        struct Archived {
            archived: bool,
        }
        let read = |name: &str| fs::read(folder.join(name)).ok();
        let title = read("custom-title.json").and_then(|it| serde_json::from_slice::<Title>(&it).ok());
        let archived = read("archived.json").and_then(|it| serde_json::from_slice::<Archived>(&it).ok());
        Self {
            custom_title: title.map(|title| title.custom_title).filter(|title| !title.is_empty()),
            archived: archived.is_some_and(|archived| archived.archived),
        }
    }
}
