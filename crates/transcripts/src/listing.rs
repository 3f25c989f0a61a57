//! A listing, put together from what the files say and what lies beside them.

use std::path::{Path, PathBuf};
use std::thread;

use foldhash::{HashMap, HashMapExt as _};
use jiff::Timestamp;
use serde::Deserialize;

use crate::archive_note::ArchiveNote;
use crate::catalog::{Learnt, Record};
use crate::change::titled;
use crate::claude_folder::Links;
use crate::live::Live;
use crate::opening::shortened;
use crate::project::Projects;
use crate::session::{Directory, Health, Session, folder_of};
use crate::side_file;
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

/// Puts a listing together. What was learnt is in the order of the files.
pub(crate) fn assemble(mut found: Vec<Found>, learnt: &[Learnt<'_>], live: &[Live]) -> Listing {
    let others = found.split_off(if found.len() < MANY { found.len() } else { found.len() / 2 });
    let (learnt, other) = learnt.split_at(found.len());
    let (mut sessions, roots) = match others.is_empty() {
        true => sessions(found, learnt),
        false => thread::scope(|scope| {
            let others = scope.spawn(|| sessions(others, other));
            let (mut all, mut roots) = sessions(found, learnt);
            let others = others.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all.extend(others.0);
            roots.extend(others.1);
            (all, roots)
        }),
    };
    for live in live {
        if let Some(session) = sessions.iter_mut().find(|session| session.session_id == live.session) {
            session.live.get_or_insert_with(|| live.clone());
        }
    }
    for (fork, origin) in origins(&roots) {
        let origin = sessions[origin].session_id.clone();
        sessions[fork].forked_from.get_or_insert(origin);
    }
    tell_origins(&mut sessions);
    Listing { sessions, unreadable: Vec::new() }
}

/// Finds forks that do not say what they were forked from: Claude Code copies the entries as they are. The session that
/// began first is the origin. Returns the numbers of fork and origin.
fn origins(roots: &[Root<'_>]) -> HashMap<usize, usize> {
    let began = |at: usize| (roots[at].began_at.unwrap_or("~"), at);
    let mut first: HashMap<&str, usize> = HashMap::with_capacity(roots.len());
    let mut sharing = Vec::new();
    for (at, root) in roots.iter().enumerate() {
        let Some(root) = root.entry else { continue };
        let origin = first.entry(root).or_insert(at);
        if *origin != at {
            sharing.extend([(root, at), (root, *origin)]);
            *origin = if began(at) < began(*origin) { at } else { *origin };
        }
    }
    let forks = sharing.into_iter().map(|(root, at)| (at, first[root]));
    forks.filter(|(fork, origin)| fork != origin).collect()
}

/// What a session began with: forks share it.
struct Root<'a> {
    entry: Option<&'a str>,
    began_at: Option<&'a str>,
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

/// Returns sessions, and what each began with.
fn sessions<'a>(found: Vec<Found>, learnt: &'a [Learnt<'_>]) -> (Vec<Session>, Vec<Root<'a>>) {
    let mut projects = Projects::default();
    let (mut sessions, mut roots) = (Vec::with_capacity(found.len()), Vec::with_capacity(found.len()));
    for (found, learnt) in found.into_iter().zip(learnt) {
        let record = learnt.lent();
        roots.push(Root { entry: record.skim.opening.root, began_at: record.skim.opening.began_at });
        sessions.push(session(found, record, &mut projects));
    }
    (sessions, roots)
}

fn session(found: Found, record: Record<&str>, projects: &mut Projects) -> Session {
    let folder = found.has_folder.then(|| folder_of(&found.path));
    let beside = folder.as_deref().map(|folder| Beside::of(folder, &found)).unwrap_or_default();
    let health = health(&record);
    let Record { message_count, damage, skim: Skim { opening, ending }, .. } = record;
    let own = |text: Option<&str>| text.map(str::to_owned);
    let some = |text: Option<&str>| own(text.filter(|text| !text.is_empty()));
    // A name that was taken away at the end was taken away beside the file as well.
    let beside_title = beside.custom_title.filter(|_| ending.custom_title.is_none());
    let custom_title = some(ending.custom_title).or(beside_title).or_else(|| some(opening.custom_title));
    let name = custom_title.clone().or_else(|| some(ending.ai_title)).or_else(|| some(opening.ai_title));
    let name = name.or_else(|| some(ending.last_prompt).as_deref().map(shortened));
    let name = name.or_else(|| some(ending.summary)).or_else(|| own(opening.first_prompt));
    let relocated = ending.relocated.filter(|cwd| !cwd.is_empty());
    let is_moved = relocated.is_some();
    let cwd = relocated.or(opening.cwd);
    let place = cwd.map(|cwd| projects.of(cwd));
    let directory = match &place {
        None => Directory::Unknown,
        Some(place) if !place.exists => Directory::Vanished,
        Some(_) if is_moved => Directory::Moved,
        Some(_) => Directory::Present,
    };
    let project =
        opening.worktree_of.map(|main| projects.of(main).project).or(place.map(|place| place.project));
    let updated_at =
        Timestamp::from_nanosecond(i128::from(found.state.modified)).unwrap_or(Timestamp::UNIX_EPOCH);
    Session {
        session_id: found.id,
        cwd: cwd.map(Into::into),
        directory,
        project,
        name,
        custom_title,
        first_prompt: own(opening.first_prompt),
        message_count,
        created_at: opening.began_at.and_then(|at| at.parse().ok()),
        updated_at,
        git_branch: own(ending.branch.or(opening.branch)),
        model: own(ending.model),
        tag: some(ending.tag),
        archived: beside.archived,
        size: found.state.size,
        health,
        damage,
        live: None,
        subagents: folder.as_deref().map(subagent::ids).unwrap_or_default(),
        forked_from: own(opening.forked_from),
        forks: Vec::new(),
        version: own(opening.version),
        path: found.path,
    }
}

fn health(record: &Record<&str>) -> Health {
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
    fn of(folder: &Path, found: &Found) -> Self {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Title {
            custom_title: String,
        }
        let title = side_file::read(&folder.join("custom-title.json"), Links::Refuse);
        let title = title.and_then(|it| serde_json::from_slice::<Title>(&it).ok());
        Self {
            custom_title: title.map(|title| titled(&title.custom_title)).filter(|title| !title.is_empty()),
            archived: ArchiveNote::of(folder).is_some_and(|note| note.holds(found)),
        }
    }
}
