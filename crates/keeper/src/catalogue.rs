//! Every session that may be seen, in memory, in the order of lists. What is not in here does not exist for anybody.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use rethread_transcripts::Session;

use crate::card::{Home, SessionCard, SessionState};

/// Which session.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Key {
    pub(crate) home: Home,
    pub(crate) id: String,
}

/// Where a session stands among others: the newest first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    newest: std::cmp::Reverse<Timestamp>,
    key: Key,
}

impl Rank {
    pub(crate) fn new(updated_at: Timestamp, key: Key) -> Self {
        Self { newest: std::cmp::Reverse(updated_at), key }
    }

    pub(crate) fn updated_at(&self) -> Timestamp {
        self.newest.0
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }
}

/// A session that is known.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) card: Arc<SessionCard>,
    /// Of a native one: what the last look found.
    pub(crate) native: Option<Arc<Session>>,
}

impl Known {
    pub(crate) fn native(session: Session) -> Self {
        let card = Arc::new(SessionCard::from(&session));
        Self { card, native: Some(Arc::new(session)) }
    }

    pub(crate) fn stored(card: SessionCard) -> Self {
        Self { card: Arc::new(card), native: None }
    }

    /// Keeps the forks that were noted meanwhile: a look at the session's own file does not see them.
    fn keep_forks(&mut self, known: &[String]) {
        let missing: Vec<String> =
            known.iter().filter(|fork| !self.card.forks.contains(fork)).cloned().collect();
        if missing.is_empty() {
            return;
        }
        if let Some(session) = &mut self.native {
            Arc::make_mut(session).forks.extend(missing.iter().cloned());
        }
        Arc::make_mut(&mut self.card).forks.extend(missing);
    }

    fn without_fork(mut self, fork: &str) -> Self {
        if let Some(session) = &mut self.native {
            Arc::make_mut(session).forks.retain(|known| known != fork);
        }
        Arc::make_mut(&mut self.card).forks.retain(|known| known != fork);
        self
    }

    pub(crate) fn key(&self) -> Key {
        Key { home: self.card.home, id: self.card.session_id.clone() }
    }

    fn rank(&self) -> Rank {
        Rank::new(self.card.updated_at, self.key())
    }
}

/// What changed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum News {
    Created(Arc<SessionCard>),
    Updated(Arc<SessionCard>),
    /// Also whether it can be read.
    Changed(Arc<SessionCard>),
    Removed(Arc<SessionCard>),
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    sessions: HashMap<Key, Known>,
    order: BTreeMap<Rank, Arc<SessionCard>>,
    /// Which native session a file belongs to.
    by_path: HashMap<PathBuf, String>,
    /// What sessions do that this keeper knows of.
    states: HashMap<String, SessionState>,
    /// How native sessions were begun to ask: their transcripts do not say.
    modes: HashMap<String, String>,
    /// Sessions of which each home has a copy of the other's, and the home whose copy is the one that counts.
    twins: HashMap<String, Home>,
}

impl Catalogue {
    /// Returns one session. A bare id means the native one, if there is one and it is not behind its copy.
    pub(crate) fn find(&self, home: Option<Home>, id: &str) -> Option<&Known> {
        let get = |home| self.sessions.get(&Key { home, id: id.to_owned() });
        match home {
            Some(home) => get(home),
            None => {
                let twin = self.twins.get(id).and_then(|home| get(*home));
                twin.or_else(|| get(Home::Native)).or_else(|| get(Home::Stored))
            }
        }
    }

    /// Returns whether each home has a copy of the other's.
    pub(crate) fn is_twin(&self, id: &str) -> bool {
        self.twins.contains_key(id)
    }

    /// Says which of two copies counts; `None` if they are sessions of their own.
    pub(crate) fn set_twin(&mut self, id: &str, home: Option<Home>) -> Vec<News> {
        if self.twins.get(id).copied() == home {
            return Vec::new();
        }
        let keys = [Home::Native, Home::Stored].map(|home| Key { home, id: id.to_owned() });
        let before = keys.clone().map(|key| self.counts(&key));
        match home {
            Some(home) => self.twins.insert(id.to_owned(), home),
            None => self.twins.remove(id),
        };
        let changed = keys.into_iter().zip(before).filter_map(|(key, before)| {
            let card = Arc::clone(&self.sessions.get(&key)?.card);
            match (before, self.counts(&key)) {
                (true, false) => Some(News::Removed(card)),
                (false, true) => Some(News::Created(card)),
                _ => None,
            }
        });
        let mut news: Vec<News> = changed.collect();
        // Whoever shows one of them shows the other at once.
        news.sort_by_key(|news| matches!(news, News::Removed(_)));
        news
    }

    /// Returns whether lists show a session: not one that is only the copy of another.
    fn counts(&self, key: &Key) -> bool {
        self.twins.get(&key.id).is_none_or(|home| {
            *home == key.home || !self.sessions.contains_key(&Key { home: *home, id: key.id.clone() })
        })
    }

    /// Returns the id of the session that a transcript belongs to.
    pub(crate) fn at(&self, path: &std::path::Path) -> Option<&str> {
        self.by_path.get(path).map(String::as_str)
    }

    /// Returns sessions in order, after a given place.
    pub(crate) fn after(&self, rank: Option<&Rank>) -> impl Iterator<Item = (&Rank, &Arc<SessionCard>)> {
        use std::ops::Bound;
        let from = rank.map_or(Bound::Unbounded, Bound::Excluded);
        self.order.range::<Rank, _>((from, Bound::Unbounded)).filter(|(rank, _)| self.counts(rank.key()))
    }

    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn natives(&self) -> impl Iterator<Item = &Arc<Session>> {
        self.sessions.values().filter_map(|known| known.native.as_ref())
    }

    /// Adds a session, or what is new of it.
    pub(crate) fn put(&mut self, mut known: Known) -> Option<News> {
        if let Some(before) = self.sessions.get(&known.key()) {
            known.keep_forks(&before.card.forks);
        }
        self.set(known)
    }

    fn set(&mut self, mut known: Known) -> Option<News> {
        let key = known.key();
        if let Some(state) = self.states.get(&key.id).filter(|_| key.home == Home::Native) {
            // Somebody else may drive it while our own agent rests.
            let is_elsewhere = *state == SessionState::Idle && known.card.driver_pid.is_some();
            Arc::make_mut(&mut known.card).state =
                if is_elsewhere { SessionState::Elsewhere } else { *state };
        }
        if let Some(mode) = self.modes.get(&key.id).filter(|_| key.home == Home::Native) {
            Arc::make_mut(&mut known.card).permission_mode = Some(mode.clone());
        }
        let before = self.sessions.get(&key).cloned();
        if before.as_ref().is_some_and(|before| before.card == known.card) {
            return None;
        }
        if let Some(before) = &before {
            self.order.remove(&before.rank());
        }
        if let Some(session) = &known.native {
            self.by_path.insert(session.path.clone(), key.id.clone());
        }
        let card = Arc::clone(&known.card);
        self.order.insert(known.rank(), Arc::clone(&card));
        self.sessions.insert(key.clone(), known);
        self.counts(&key).then_some(match before {
            Some(before) if before.card.health.status != card.health.status => News::Changed(card),
            Some(_) => News::Updated(card),
            None => News::Created(card),
        })
    }

    pub(crate) fn remove(&mut self, key: &Key) -> Option<News> {
        let counted = self.counts(key);
        let known = self.sessions.remove(key)?;
        self.order.remove(&known.rank());
        if let Some(session) = &known.native {
            self.by_path.remove(&session.path);
        }
        let parent = known.card.parent.clone().map(|id| Key { home: key.home, id });
        if let Some(parent) = parent.and_then(|parent| self.sessions.get(&parent)).cloned() {
            self.set(parent.without_fork(&key.id));
        }
        counted.then_some(News::Removed(known.card))
    }

    /// Replaces all sessions of a home.
    pub(crate) fn replace(&mut self, home: Home, all: Vec<Known>) -> Vec<News> {
        let there: std::collections::HashSet<Key> = all.iter().map(Known::key).collect();
        // A session that was just begun has no file yet.
        let pending = |known: &Known| known.card.state == SessionState::Pending;
        let gone = self
            .sessions
            .iter()
            .filter(|(key, known)| key.home == home && !there.contains(key) && !pending(known));
        let gone: Vec<Key> = gone.map(|(key, _)| key.clone()).collect();
        let mut news: Vec<News> = gone.iter().filter_map(|key| self.remove(key)).collect();
        news.extend(all.into_iter().filter_map(|known| self.set(known)));
        news
    }

    /// Notes how a native session was begun to ask; returns what is new by it.
    pub(crate) fn note_mode(&mut self, id: &str, mode: String) -> Option<News> {
        if self.modes.get(id) == Some(&mode) {
            return None;
        }
        self.modes.insert(id.to_owned(), mode);
        let known = self.find(Some(Home::Native), id)?.clone();
        self.put(known)
    }

    /// Says what a native session does; `None` if nothing here knows.
    pub(crate) fn set_state(&mut self, id: &str, state: Option<SessionState>) -> Option<News> {
        match state {
            Some(state) => self.states.insert(id.to_owned(), state),
            None => self.states.remove(id),
        };
        let known = self.find(Some(Home::Native), id)?.clone();
        let mut fresh = known.clone();
        if state.is_none() {
            let elsewhere = known.card.driver_pid.is_some();
            Arc::make_mut(&mut fresh.card).state =
                if elsewhere { SessionState::Elsewhere } else { SessionState::Idle };
        }
        self.put(fresh)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(id: &str, second: i64) -> Known {
        let id = id.parse().unwrap();
        let metadata = rethread_store::Metadata::new(id, Timestamp::from_second(second).unwrap());
        Known::stored(SessionCard::from(&metadata))
    }

    #[test]
    fn a_session_that_is_written_to_moves_to_the_top_and_stands_there_once() {
        let mut catalogue = Catalogue::default();
        catalogue.replace(Home::Stored, vec![card("a", 1), card("b", 2)]);
        assert!(matches!(catalogue.put(card("a", 3)), Some(News::Updated(_))));
        assert_eq!(catalogue.put(card("a", 3)), None);
        let ids = |catalogue: &Catalogue| -> Vec<String> {
            catalogue.after(None).map(|(_, card)| card.session_id.clone()).collect()
        };
        assert_eq!(ids(&catalogue), ["a", "b"]);
        let news = catalogue.replace(Home::Stored, vec![card("b", 2)]);
        assert!(matches!(&news[..], [News::Removed(card)] if card.session_id == "a"), "{news:?}");
        assert_eq!(ids(&catalogue), ["b"]);
    }

    #[test]
    fn of_two_copies_the_one_that_counts_is_listed_and_found() {
        let mut catalogue = Catalogue::default();
        catalogue.replace(Home::Stored, vec![card("a", 1)]);
        let mut native = card("a", 2);
        Arc::make_mut(&mut native.card).home = Home::Native;
        catalogue.put(native);
        let homes = |catalogue: &Catalogue| -> Vec<Home> {
            catalogue.after(None).map(|(_, card)| card.home).collect()
        };
        assert_eq!(homes(&catalogue), [Home::Native, Home::Stored]);
        let news = catalogue.set_twin("a", Some(Home::Native));
        assert!(matches!(&news[..], [News::Removed(card)] if card.home == Home::Stored), "{news:?}");
        assert_eq!(catalogue.put(card("a", 3)), None, "what is not listed is no news");
        let news = catalogue.set_twin("a", Some(Home::Stored));
        assert!(matches!(&news[..], [News::Created(_), News::Removed(_)]), "{news:?}");
        assert_eq!(homes(&catalogue), [Home::Stored]);
        assert_eq!(catalogue.find(None, "a").unwrap().card.home, Home::Stored);
        // The one that counts is gone: the other one is better than nothing.
        catalogue.remove(&card("a", 3).key());
        assert_eq!(homes(&catalogue), [Home::Native]);
    }

    #[test]
    fn a_fork_that_was_noted_outlives_a_look_that_began_before_and_goes_with_the_session() {
        let mut catalogue = Catalogue::default();
        let forks = |catalogue: &Catalogue| catalogue.find(None, "a").unwrap().card.forks.clone();
        let mut fork = card("fork", 1);
        Arc::make_mut(&mut fork.card).parent = Some("a".into());
        catalogue.replace(Home::Stored, vec![card("a", 1), fork.clone()]);
        let mut noted = card("a", 1);
        Arc::make_mut(&mut noted.card).forks.push("fork".into());
        catalogue.put(noted);
        catalogue.put(card("a", 2));
        assert_eq!(forks(&catalogue), ["fork"]);
        catalogue.remove(&fork.key());
        assert_eq!(forks(&catalogue), [""; 0]);
    }
}
