//! Taking sessions away: to the trash, back from it, and for good.

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
        let fold = self.fold(id).await?;
        if fold.next == 0 {
            return self.inner.backend.remove(&Target::Session(id.clone())).await;
        }
        if !fold.purging {
            // If there is no room for the copies, the session stays as it is.
            self.materialize_forks_of(id).await?;
            // From here on nobody can add to it or fork it, and an interrupted purge is finished by the next one.
            match self.note_purging(id).await {
                Err(Error::Gone(_)) => {}
                noted => noted?,
            }
        }
        if let Err(error) = self.materialize_forks_of(id).await {
            // The forks still need it, so it comes back as it was.
            self.note(id, Note::Restored { at: Timestamp::now() }).await?;
            if let Some(at) = fold.metadata.trashed_at {
                self.note(id, Note::Trashed { at }).await?;
            }
            return Err(error);
        }
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

    async fn materialize_forks_of(&self, id: &SessionId) -> Result<()> {
        for fork in self.forks_of(id).await?.into_iter().filter(|_| !Defect::PurgeUnderForks.is_on()) {
            Session::new(self.clone(), fork).materialize().await?;
        }
        Ok(())
    }

    /// Returns the sessions whose inherited history begins in this one.
    async fn forks_of(&self, id: &SessionId) -> Result<Vec<SessionId>> {
        let mut forks = Vec::new();
        for listed in self.inner.backend.list(Space::Sessions, None, usize::MAX).await? {
            let Ok(session) = listed.name.parse::<SessionId>() else {
                continue;
            };
            if !self.may_inherit(&session, id).await? {
                continue;
            }
            let fold = Fold::load(&*self.inner.backend, &session).await?;
            if fold.copied_to.is_some() {
                // Whoever made the copies may have died before they were durable, and then this was its last origin.
                self.inner.backend.settle(&LogKey::new(session.clone(), LogName::Messages)).await?;
            }
            if !fold.purging && fold.origin.is_some_and(|origin| origin.session == *id) {
                forks.push(session);
            }
        }
        Ok(forks)
    }

    /// Returns whether a session may have begun as an attached fork of another: its first record says so, and reading all
    /// the others for it would make a purge as long as everything there is.
    async fn may_inherit(&self, session: &SessionId, from: &SessionId) -> Result<bool> {
        let log = LogKey::new(session.clone(), LogName::Messages);
        let chunk = self.inner.backend.read(&log, From::Position(0), 1).await?;
        let first = chunk.lines.first().filter(|line| line.stamp().position == 0);
        Ok(match first.map(|line| Note::read(&line.body())) {
            Some(Note::Created { origin, .. }) => origin.is_some_and(|origin| origin.session == *from),
            // One that is lost says nothing.
            _ => true,
        })
    }

    async fn note(&self, id: &SessionId, note: Note) -> Result<()> {
        Session::new(self.clone(), id.clone()).note(Draft::Note(note)).await
    }
}
