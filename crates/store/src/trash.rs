//! Taking sessions away: to the trash, back from it, and for good.

use std::collections::HashSet;

use jiff::Timestamp;

use crate::backend::{From, Key, LogKey, LogName, Space, Target};
use crate::defect::Defect;
use crate::error::{Error, Result};
use crate::fold::Fold;
use crate::id::SessionId;
use crate::note::Note;
use crate::session::Session;
use crate::store::Store;
use crate::writer::Draft;

impl Store {
    /// Moves a session to the trash. Returns whether there was one. Its forks go on reading through the trash.
    pub async fn delete(&self, id: &SessionId) -> Result<bool> {
        self.check_format().await?;
        let fold = self.fold(id).await?;
        if fold.next == 0 || fold.purging {
            return Ok(false);
        }
        if fold.metadata.trashed_at.is_none() {
            match self.note(id, Note::Trashed { at: Timestamp::now() }).await {
                // Somebody else was faster, or an earlier try of ours that had ended with an error.
                Err(Error::Trashed(_)) => {}
                noted => noted?,
            }
        }
        Ok(true)
    }

    /// Takes a session out of the trash.
    pub async fn restore(&self, id: &SessionId) -> Result<Session> {
        self.check_format().await?;
        let fold = self.fold(id).await?;
        if fold.next == 0 || fold.purging {
            return Err(Error::SessionNotFound(id.clone()));
        }
        if fold.metadata.trashed_at.is_some() {
            self.note(id, Note::Restored { at: Timestamp::now() }).await?;
        }
        Ok(Session::new(self.clone(), id.clone()))
    }

    /// Removes a session for good. Returns whether there was one. Attached forks get copies of what they inherit
    /// first; if that fails, nothing is removed.
    pub async fn purge(&self, id: &SessionId) -> Result<bool> {
        self.check_format().await?;
        if self.inner.backend.is_erased(id).await? {
            // No note can be added to it, and none is needed: whoever comes next finds it as it is.
            self.detach_forks(id).await?;
            return self.remove_for_good(id).await;
        }
        let fold = self.fold(id).await?;
        if fold.next == 0 {
            return self.inner.backend.remove(&Target::Session(id.clone())).await;
        }
        if !fold.purging {
            // If there is no room for the copies, the session stays as it is.
            self.detach_forks(id).await?;
            // From here on nobody can add to it or fork it, and an interrupted purge is finished by the next one.
            match self.note_purging(id).await {
                Err(Error::Gone(_)) => {}
                noted => noted?,
            }
        }
        if let Err(error) = self.detach_forks(id).await {
            // The forks still need it, so it comes back as it was.
            self.note(id, Note::Restored { at: Timestamp::now() }).await?;
            if let Some(at) = fold.metadata.trashed_at {
                self.note(id, Note::Trashed { at }).await?;
            }
            return Err(error);
        }
        self.remove_for_good(id).await
    }

    async fn remove_for_good(&self, id: &SessionId) -> Result<bool> {
        let removed = self.inner.backend.remove(&Target::Session(id.clone())).await?;
        self.inner.writer.forget(id);
        Ok(removed)
    }

    async fn note_purging(&self, id: &SessionId) -> Result<()> {
        let noted = self.note(id, Note::Purging { at: Timestamp::now() }).await;
        if !matches!(noted, Err(Error::NoSpace { .. })) {
            return noted;
        }
        // A full disk must not be in the way of clearing it: what is derived makes room for the note.
        self.inner.backend.remove(&Target::Document(Key::metadata(id))).await?;
        self.note(id, Note::Purging { at: Timestamp::now() }).await
    }

    /// Gives the attached forks of a session copies of what they inherit, so that they can do without it.
    pub async fn detach_forks(&self, id: &SessionId) -> Result<()> {
        for fork in self.forks_of(id).await?.into_iter().filter(|_| !Defect::PurgeUnderForks.is_on()) {
            Session::new(self.clone(), fork).materialize().await?;
        }
        Ok(())
    }

    /// Returns the sessions whose inherited history begins in this one, or in an erased one: whatever that inherits of this
    /// one cannot be copied to it.
    async fn forks_of(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        let backend = &*self.inner.backend;
        let (mut sessions, mut parents) = (Vec::new(), HashSet::from([id.clone()]));
        for listed in backend.list(Space::Sessions, None, usize::MAX).await? {
            let Ok(session) = listed.name.parse::<SessionId>() else {
                continue;
            };
            match backend.is_erased(&session).await? {
                true => drop(parents.insert(session)),
                false => sessions.push(session),
            }
        }
        let mut forks = Vec::new();
        for session in sessions {
            if !self.may_inherit(&session, &parents).await? {
                continue;
            }
            let fold = Fold::load(backend, &session).await?;
            if fold.copied_to.is_some() {
                // Whoever made the copies may have died before they were durable, and then this was its last origin.
                self.settle(&LogKey::new(session.clone(), LogName::Messages)).await?;
            }
            if !fold.purging && fold.origin.is_some_and(|origin| parents.contains(&origin.session)) {
                forks.push(session);
            }
        }
        Ok(forks)
    }

    /// Returns whether a session may have begun as an attached fork of others: its first record says so, and reading all
    /// the others for it would make a purge as long as everything there is.
    async fn may_inherit(&self, session: &SessionId, from: &HashSet<SessionId>) -> Result<bool> {
        let log = LogKey::new(session.clone(), LogName::Messages);
        let chunk = self.inner.backend.read(&log, From::Position(0), 1).await?;
        let first = chunk.lines.first().filter(|line| line.stamp().position == 0);
        Ok(match first.map(|line| Note::read(&line.body())) {
            Some(Note::Created { origin, .. }) => origin.is_some_and(|origin| from.contains(&origin.session)),
            // One that is lost says nothing.
            _ => true,
        })
    }

    async fn note(&self, id: &SessionId, note: Note) -> Result<()> {
        Session::new(self.clone(), id.clone()).note(Draft::Note(note)).await
    }
}
