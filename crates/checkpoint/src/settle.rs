//! Seeing to rewinds that nobody finished, before anything else is done beneath their root.

use std::path::{Path, PathBuf};

use rethread_store::backend::{LogKey, LogName};
use rethread_store::{EntryId, SessionId, Store};

use crate::checkpointer::Checkpointer;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::mark::Mark;
use crate::record::Checkpoint;
use crate::root::Hold;

/// A rewind that was begun and not ended: it is under way, or its process died.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Interrupted {
    /// Its receipt.
    pub receipt: EntryId,
    /// The folder that its paths are beneath.
    pub root: PathBuf,
}

/// Returns the rewinds of a session that have begun and not ended. Opening its checkpoints beneath their root finishes
/// them, or takes them back; this only tells.
pub async fn interrupted(store: &Store, session: &SessionId) -> Result<Vec<Interrupted>> {
    let log = Log::read(store.backend(), session).await?;
    let tell = |record: &Checkpoint| Interrupted {
        receipt: record.id.clone(),
        root: record.root.as_ref().map_or_else(PathBuf::new, |root| root.as_os_str().into()),
    };
    Ok(log.unended().map(tell).collect())
}

impl Checkpointer {
    /// Takes in what others recorded, and sees to a rewind that nobody finished: of this session beneath this root,
    /// or of any beneath this root or a folder that it is in.
    pub(crate) async fn settle(&self) -> Result<()> {
        self.refresh().await?;
        if !self.is_on() {
            return Ok(());
        }
        if self.pending()?.is_some() || Mark::of(self.root_path()).is_some() {
            let hold = self.root()?.claim()?;
            self.settle_within(&hold).await?;
        }
        for folder in self.root_path().ancestors().skip(1) {
            if let Some(mark) = Mark::of(folder) {
                let other = self.of_mark(&mark, folder).await?;
                let hold = other.root()?.claim()?;
                self.finish(&other, &hold).await?;
                still_marked(folder)?;
            }
        }
        Ok(())
    }

    /// The same for whoever holds the root: then whoever began a rewind there and did not end it is dead.
    pub(crate) async fn settle_within(&self, hold: &Hold) -> Result<()> {
        self.finish(self, hold).await?;
        if let Some(mark) = Mark::of(self.root_path()) {
            let other = self.of_mark(&mark, self.root_path()).await?;
            self.finish(&other, hold).await?;
        }
        still_marked(self.root_path())
    }

    /// Ends what a session began beneath a root that is held, and remembers that it was done here.
    async fn finish(&self, of: &Checkpointer, _: &Hold) -> Result<()> {
        of.refresh().await?;
        while let Some(intent) = of.pending()? {
            let recovered = of.recover(&intent).await?;
            self.inner().recovered.push(recovered);
            of.refresh().await?;
        }
        // Nothing is pending, so a mark of this session's is one that was not taken away in time.
        if Mark::of(of.root_path()).is_some_and(|mark| mark.session == *of.owner().id()) {
            let cleared = Mark::clear(of.hands(), of.root()?.folder());
            cleared.map_err(Error::io("clear the mark in", of.root_path()))?;
        }
        Ok(())
    }

    /// Returns the checkpoints of the session that a mark names, if this store has it.
    async fn of_mark(&self, mark: &Mark, folder: &Path) -> Result<Checkpointer> {
        let store = self.owner().store();
        match store.load(&mark.session).await? {
            Some(session) => Checkpointer::unsettled(&session, folder, self.settings().clone()).await,
            None => Err(unfinished(mark, folder)),
        }
    }

    /// Returns what marks the root for as long as a rewind is under way.
    pub(crate) fn mark(&self, receipt: &EntryId) -> Mark {
        let backend = self.owner().store().backend();
        let log = backend.path(&LogKey::new(self.owner().id().clone(), LogName::Checkpoints));
        let store = log.and_then(|log| Some(log.ancestors().nth(3)?.display().to_string()));
        let store = store.unwrap_or_else(|| format!("a {} store", backend.capabilities().scheme));
        Mark { receipt: receipt.clone(), session: self.owner().id().clone(), store }
    }

    /// Returns the first rewind beneath this root that was begun and not ended.
    fn pending(&self) -> Result<Option<Checkpoint>> {
        let (place, mark) = (self.root()?.place()?, Mark::of(self.root_path()));
        let is_here = |record: &Checkpoint| {
            let Some(intent) = &record.rewind else { return false };
            let is_named = record.root.as_ref().is_some_and(|root| root.as_os_str() == self.root_path());
            is_same_folder(&intent.place, &place, is_named)
                || mark.as_ref().is_some_and(|mark| mark.receipt == record.id)
        };
        Ok(self.with_log(|log| log.unended().find(|record| is_here(record)).cloned()))
    }
}

/// Returns whether two places, `device:inode`, are one folder. A file system may well be another device after the machine
/// was started again; then the folder has its number still, and its path.
fn is_same_folder(recorded: &str, now: &str, is_named: bool) -> bool {
    let number = |place: &str| place.split_once(':').map(|(_, number)| number.to_owned());
    recorded == now || (is_named && number(recorded).is_some() && number(recorded) == number(now))
}

/// What is still marked has a rewind that this store knows nothing of.
fn still_marked(folder: &Path) -> Result<()> {
    Mark::of(folder).map_or(Ok(()), |mark| Err(unfinished(&mark, folder)))
}

fn unfinished(mark: &Mark, folder: &Path) -> Error {
    let (root, receipt) = (folder.to_owned(), mark.receipt.clone());
    Error::Unfinished { root, receipt, session: mark.session.clone(), store: mark.store.clone() }
}

#[cfg(test)]
mod tests {
    use super::is_same_folder;

    #[test]
    fn a_folder_is_the_same_when_its_file_system_has_become_another_device() {
        assert!(is_same_folder("66:128", "66:128", false), "it was moved");
        assert!(is_same_folder("66:128", "1792:128", true), "it was mounted again");
        assert!(!is_same_folder("66:128", "1792:128", false), "another folder of that number");
        assert!(!is_same_folder("66:128", "66:129", true), "another folder at its path");
        assert!(!is_same_folder("", "66:128", true));
    }
}
