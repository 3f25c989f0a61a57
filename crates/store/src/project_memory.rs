//! What an agent wants to remember about a project, across its sessions: one text per project.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::backend::{Document, Expect, Key, Put, Space, Version};
use crate::error::{Error, Result};
use crate::id::BlobId;
use crate::store::{Store, canonical, project_of};

/// Where memories are, among the documents of the store.
const FOLDER: &str = "memory/";

/// A project's memory, and the version to expect when replacing it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectMemory {
    /// The text.
    pub text: String,
    /// The state it is in.
    pub version: Version,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    project: String,
    text: String,
}

impl Store {
    /// Returns the memory of the project that a directory belongs to.
    pub async fn project_memory(&self, directory: &Path) -> Result<Option<ProjectMemory>> {
        let (key, _) = key_of(directory)?;
        let Some(document) = self.inner.backend.get(&key).await? else {
            return Ok(None);
        };
        let text = read(&key, &document)?.text;
        Ok(Some(ProjectMemory { text, version: document.version }))
    }

    /// Returns all memories that there are, each with its project.
    pub async fn project_memories(&self) -> Result<Vec<(String, ProjectMemory)>> {
        self.check_format().await?;
        let mut memories = Vec::new();
        for listed in self.inner.backend.list(Space::Documents, None, usize::MAX).await? {
            if !listed.name.starts_with(FOLDER) {
                continue;
            }
            let key: Key = listed.name.parse()?;
            let Some(document) = self.inner.backend.get(&key).await? else { continue };
            let Stored { project, text } = read(&key, &document)?;
            memories.push((project, ProjectMemory { text, version: document.version }));
        }
        Ok(memories)
    }

    /// Replaces the memory of the project that a directory belongs to, if it is as expected. A store that leaves secrets out
    /// leaves them out of it too, and returns what it has stored.
    pub async fn set_project_memory(
        &self,
        directory: &Path,
        text: &str,
        expect: Expect,
    ) -> Result<ProjectMemory> {
        self.claim_format().await?;
        let (key, project) = key_of(directory)?;
        let stored = Stored { project, text: self.redacted_text(text).into_owned() };
        let bytes = serde_json::to_vec(&stored).map_err(|error| Error::BadEntry(error.to_string()))?;
        match self.inner.backend.put(&key, &bytes, expect).await? {
            Put::Done(version) => Ok(ProjectMemory { text: stored.text, version }),
            Put::Conflict(_) => Err(Error::Contended(key.to_string())),
        }
    }
}

impl Store {
    /// Gives another store the memories of projects that it has none of. Where both have one, each keeps its own: nothing
    /// says which is newer. Returns how many were copied, and the projects whose memories differ.
    pub async fn replicate_memories(&self, to: &Store) -> Result<(u64, Vec<String>)> {
        let (mut copied, mut different) = (0, Vec::new());
        for (project, memory) in self.project_memories().await? {
            let (key, text) = (key_for(&project)?, to.redacted_text(&memory.text).into_owned());
            let bytes = serde_json::to_vec(&Stored { project: project.clone(), text: text.clone() })
                .map_err(|error| Error::BadEntry(error.to_string()))?;
            to.claim_format().await?;
            match to.inner.backend.put(&key, &bytes, Expect::Absent).await? {
                Put::Done(_) => copied += 1,
                Put::Conflict(Some(theirs)) if read(&key, &theirs)?.text != text => different.push(project),
                Put::Conflict(_) => {}
            }
        }
        Ok((copied, different))
    }
}

fn read(key: &Key, document: &Document) -> Result<Stored> {
    serde_json::from_slice(&document.bytes)
        .map_err(|error| Error::Damaged { what: key.to_string(), reason: error.to_string() })
}

fn key_of(directory: &Path) -> Result<(Key, String)> {
    let project = project_of(&canonical(directory)).display().to_string();
    Ok((key_for(&project)?, project))
}

fn key_for(project: &str) -> Result<Key> {
    Key::store(&format!("{FOLDER}{}", BlobId::of(project.as_bytes())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rethread_redact::Redactor;

    use super::*;
    use crate::file::FileBackend;
    use crate::store::Options;

    #[test]
    fn a_store_that_leaves_secrets_out_leaves_them_out_of_memories_however_they_come() {
        let folder = tempfile::tempdir().unwrap();
        let secret = format!("ghp_{}", "0123456789abcdefghij".repeat(2));
        let secret = &secret[..40];
        let text = format!("push with {secret}\nit is built with make\n");
        let options = || Options { redactor: Some(Arc::new(Redactor::new())), ..Options::default() };
        let [open, closed, copy] =
            ["open", "closed", "copy"].map(|name| FileBackend::new(folder.path().join(name)));
        let open = Store::new(open, Options::default());
        let [closed, copy] = [closed, copy].map(|backend| Store::new(backend, options()));
        let kept = |store: &Store| pollster::block_on(store.project_memories()).unwrap();
        for store in [&open, &closed] {
            let set = store.set_project_memory("/work".as_ref(), &text, Expect::Any);
            let set = pollster::block_on(set).unwrap();
            assert_eq!(kept(store), [("/work".to_owned(), set)]);
        }
        assert_eq!(kept(&open)[0].1.text, text);
        let clean = &kept(&closed)[0].1.text;
        assert!(!clean.contains(secret) && clean.ends_with("\nit is built with make\n"), "{clean}");
        pollster::block_on(open.replicate_memories(&copy)).unwrap();
        assert_eq!(kept(&copy)[0].1.text, *clean);
    }
}
