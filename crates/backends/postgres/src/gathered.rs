//! Hints that wait to be passed on.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rethread_store::SessionId;
use rethread_store::backend::Hint;
use tokio::sync::Notify;

/// How many sessions are told apart while nobody takes their names.
const SESSIONS: usize = 1000;

/// Hints, each once, in whatever room there is: more of them than that are one about everything.
///
/// Whoever adds one waits for nobody.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    waiting: Mutex<Waiting>,
    some: Notify,
}

#[derive(Debug)]
enum Waiting {
    Sessions(BTreeSet<SessionId>),
    Everything,
}

impl Gathered {
    pub(crate) fn add(&self, hint: Hint) {
        match hint {
            Hint::Session(session) => self.add_session(&session),
            Hint::Everything => self.add_everything(),
        }
    }

    /// Adds a session, which is next to nothing if it is there already.
    pub(crate) fn add_session(&self, session: &SessionId) {
        let mut waiting = self.waiting();
        match &mut *waiting {
            Waiting::Sessions(sessions) if sessions.contains(session) => return,
            Waiting::Sessions(sessions) if sessions.len() < SESSIONS => {
                sessions.insert(session.clone());
            }
            waiting => *waiting = Waiting::Everything,
        }
        drop(waiting);
        self.some.notify_one();
    }

    fn add_everything(&self) {
        *self.waiting() = Waiting::Everything;
        self.some.notify_one();
    }

    /// Takes what there is, as soon as there is something. If this is given up, nothing was taken.
    pub(crate) async fn take(&self) -> Vec<Hint> {
        loop {
            match std::mem::take(&mut *self.waiting()) {
                Waiting::Sessions(sessions) if sessions.is_empty() => {}
                Waiting::Sessions(sessions) => return sessions.into_iter().map(Hint::Session).collect(),
                Waiting::Everything => return vec![Hint::Everything],
            }
            self.some.notified().await;
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Waiting {
    fn default() -> Self {
        Waiting::Sessions(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use pollster::block_on;

    use super::*;

    fn session(number: usize) -> Hint {
        Hint::Session(format!("s{number:04}").parse().unwrap())
    }

    #[test]
    fn a_session_is_there_once_however_often_it_is_added() {
        let gathered = Gathered::default();
        for number in 0..5 * SESSIONS {
            gathered.add(session(number % SESSIONS));
        }
        assert_eq!(block_on(gathered.take()), (0..SESSIONS).map(session).collect::<Vec<_>>());
        gathered.add(session(7));
        assert_eq!(block_on(gathered.take()), [session(7)]);
    }

    #[test]
    fn more_sessions_than_there_is_room_for_are_everything() {
        let gathered = Gathered::default();
        for number in 0..2 * SESSIONS {
            gathered.add(session(number));
        }
        assert_eq!(block_on(gathered.take()), [Hint::Everything]);
        gathered.add(session(7));
        assert_eq!(block_on(gathered.take()), [session(7)]);
    }

    #[test]
    fn everything_is_more_than_any_session() {
        let gathered = Gathered::default();
        for hint in [session(1), Hint::Everything, session(2)] {
            gathered.add(hint);
        }
        assert_eq!(block_on(gathered.take()), [Hint::Everything]);
    }
}
