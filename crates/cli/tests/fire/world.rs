//! A store as it must be: what was done to it for certain, and what may have been done when something broke.
#![expect(clippy::unwrap_used, reason = "a test that cannot read has failed")]

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use super::ledger::{self, Ledger, Run};
use crate::kit::{Home, Said};

/// The sessions of a store.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    known: BTreeMap<String, Known>,
    named: usize,
}

/// What is known of a session. A fact that is `None` is open: whatever is found becomes true.
#[derive(Clone, Debug)]
struct Known {
    ledger: Ledger,
    /// What it inherits; more than that if its parent, named here, was appended to at the same time.
    inherited: Vec<String>,
    parent: Option<String>,
    there: Option<bool>,
    archived: Option<bool>,
    trashed: Option<bool>,
}

/// Something that is done to a session as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    New,
    /// Makes the session out of another one.
    Fork,
    Archive,
    Unarchive,
    Delete,
    Restore,
    /// Copies into it what it inherits.
    Materialize,
    Purge,
    /// Purges it if it is in the trash.
    Gc,
    /// Makes the session out of the file `bundle`, which holds another one.
    Import,
    /// Writes it to the file `out`.
    Export,
    /// What is appended is told apart from this, by [`World::add`].
    Append,
}

/// How something ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was said to be done.
    Done,
    /// It was refused or cut off: all of it may have happened, or nothing.
    Unsure,
}

impl World {
    /// Makes up a name that nothing in this world has.
    pub(crate) fn name(&mut self, prefix: &str) -> String {
        self.named += 1;
        format!("{prefix}{}", self.named)
    }

    /// Returns the sessions that can be appended to for certain.
    pub(crate) fn open(&self) -> Vec<String> {
        let is_open = |known: &Known| known.there == Some(true) && known.trashed == Some(false);
        self.known.iter().filter(|(_, known)| is_open(known)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the sessions that are in the trash for certain.
    pub(crate) fn trash(&self) -> Vec<String> {
        self.known.iter().filter(|(_, known)| known.trashed == Some(true)).map(|(id, _)| id.clone()).collect()
    }

    /// Runs a command on a session and keeps its outcome in mind.
    pub(crate) fn act(&mut self, home: &Home, verb: Verb, session: &str, parent: &str) -> Said {
        self.prepare(home, verb, session, parent);
        // Nothing else is under way.
        self.known.get_mut(session).unwrap().parent = None;
        let said = home.run(&verb.words(session, parent));
        self.conclude(verb, session, if said.code == 0 { Outcome::Done } else { Outcome::Unsure });
        said
    }

    /// Says that something is about to be done: from here on it may have happened.
    pub(crate) fn prepare(&mut self, home: &Home, verb: Verb, session: &str, parent: &str) {
        if matches!(verb, Verb::New | Verb::Fork) {
            let parent = (verb == Verb::Fork).then(|| parent.to_owned());
            let inherited = parent.as_ref().map_or(Vec::new(), |parent| conversation(home, parent).unwrap());
            let (ledger, archived, trashed) = (Ledger::new(session), Some(false), Some(false));
            let known = Known { ledger, inherited, parent, there: None, archived, trashed };
            self.known.insert(session.to_owned(), known);
        }
        if verb == Verb::Import {
            let known = Known { there: None, ..self.known[parent].clone() };
            self.known.insert(session.to_owned(), Known { ledger: known.ledger.of(session), ..known });
        }
        self.conclude(verb, session, Outcome::Unsure);
    }

    pub(crate) fn conclude(&mut self, verb: Verb, session: &str, outcome: Outcome) {
        let known = self.known.get_mut(session).unwrap();
        let (fact, value) = match verb {
            Verb::Materialize | Verb::Export | Verb::Append => return,
            Verb::New | Verb::Fork | Verb::Import => (&mut known.there, true),
            Verb::Purge | Verb::Gc => (&mut known.there, false),
            Verb::Archive => (&mut known.archived, true),
            Verb::Unarchive => (&mut known.archived, false),
            Verb::Delete => (&mut known.trashed, true),
            Verb::Restore => (&mut known.trashed, false),
        };
        *fact = match outcome {
            Outcome::Done => Some(value),
            Outcome::Unsure => fact.filter(|&before| before == value),
        };
    }

    /// Returns what is known to have been sent to a session.
    pub(crate) fn ledger(&self, session: &str) -> &Ledger {
        &self.known[session].ledger
    }

    /// Takes in what an `append` was given and what it acknowledged.
    pub(crate) fn add(&mut self, session: &str, run: Run) {
        self.known.get_mut(session).unwrap().ledger.add(run);
    }

    /// Checks every promise, and learns what was open.
    #[track_caller]
    pub(crate) fn check(&mut self, home: &Home) {
        if let Err(broken) = self.broken(home) {
            panic!("{broken}");
        }
    }

    /// Says what is not as it must be.
    pub(crate) fn broken(&mut self, home: &Home) -> Result<(), String> {
        let said = home.run(&["list", "--all", "--json"]);
        if said.code != 0 {
            return Err(format!("list: {}", said.err));
        }
        let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
        let mut listed: HashMap<String, Value> = said
            .out
            .lines()
            .map(read)
            .map(|metadata| (metadata["session_id"].as_str().unwrap().to_owned(), metadata))
            .collect();
        for (id, known) in &mut self.known {
            let found = listed.remove(id);
            learn(&mut known.there, found.is_some(), id, "there")?;
            let Some(found) = found else { continue };
            learn(&mut known.archived, found["archived"] == true, id, "archived")?;
            learn(&mut known.trashed, !found["trashed_at"].is_null(), id, "in the trash")?;
            known.broken(home)?;
        }
        self.known.retain(|_, known| known.there == Some(true));
        listed.into_keys().next().map_or(Ok(()), |id| Err(format!("session {id} came from nowhere")))
    }
}

impl Known {
    fn broken(&mut self, home: &Home) -> Result<(), String> {
        let session = self.ledger.session();
        if let Some(problem) =
            ledger::problems(home, session).into_iter().find(|problem| !ledger::is_torn(problem))
        {
            return Err(format!("session {session}: {problem}"));
        }
        // What is in the trash is not shown; it is looked at when it was taken out.
        if self.trashed == Some(true) {
            return Ok(());
        }
        let stored = ledger::stored(home, session);
        self.ledger.broken(&stored).map_err(|broken| format!("session {session}: {broken}"))?;
        if self.inherited.is_empty() && self.parent.is_none() {
            return Ok(());
        }
        let own: Vec<String> =
            stored.into_iter().filter(|record| record.kind == 'e').map(|record| record.body).collect();
        let mut inherited = conversation(home, session)?;
        let as_appended =
            inherited.len() >= own.len() && inherited.split_off(inherited.len() - own.len()) == own;
        let fine = match self.parent.take() {
            None => inherited == self.inherited,
            Some(parent) => {
                let whole = conversation(home, &parent)?;
                inherited.starts_with(&self.inherited) && whole.starts_with(&inherited)
            }
        };
        self.inherited = inherited;
        match as_appended && fine {
            true => Ok(()),
            false => {
                Err(format!("session {session}: the conversation is not what was inherited and appended"))
            }
        }
    }
}

fn learn(fact: &mut Option<bool>, found: bool, session: &str, what: &str) -> Result<(), String> {
    match fact.replace(found) {
        Some(expected) if expected != found => Err(format!("session {session}: {what}: {found}")),
        _ => Ok(()),
    }
}

fn conversation(home: &Home, session: &str) -> Result<Vec<String>, String> {
    let said = home.run(&["show", session, "--json"]);
    let fine = said.err.lines().all(|line| line.starts_with("hint: ") || ledger::is_torn(line));
    if !fine {
        return Err(format!("show {session}: {}", said.err));
    }
    Ok(said.out.lines().map(str::to_owned).collect())
}

impl Verb {
    /// Returns what to type.
    pub(crate) fn words<'a>(self, session: &'a str, parent: &'a str) -> Vec<&'a str> {
        match self {
            Verb::New => vec!["new", "--id", session],
            Verb::Fork => vec!["fork", parent, "--id", session],
            Verb::Archive => vec!["archive", session],
            Verb::Unarchive => vec!["archive", "--undo", session],
            Verb::Delete => vec!["delete", session],
            Verb::Restore => vec!["restore", session],
            Verb::Materialize => vec!["materialize", session],
            Verb::Purge => vec!["purge", session],
            Verb::Gc => vec!["gc", "--trash-after", "0"],
            Verb::Import => vec!["import", "bundle", "--id", session],
            Verb::Export => vec!["export", session, "-o", "out"],
            Verb::Append => vec!["append", session],
        }
    }
}
