//! What an agent wants to remember about a project, across its sessions: one text per project.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::backend::{Expect, Key, Put, Version};
use crate::error::{Error, Result};
use crate::id::BlobId;
use crate::store::{Store, canonical, project_of};

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
        let stored: Stored = serde_json::from_slice(&document.bytes)
            .map_err(|error| Error::Damaged { what: key.to_string(), reason: error.to_string() })?;
        Ok(Some(ProjectMemory { text: stored.text, version: document.version }))
    }

    /// Replaces the memory of the project that a directory belongs to, if it is as expected.
    pub async fn set_project_memory(
        &self,
        directory: &Path,
        text: &str,
        expect: Expect,
    ) -> Result<ProjectMemory> {
        self.claim_format().await?;
        let (key, project) = key_of(directory)?;
        let stored = Stored { project, text: text.to_owned() };
        let bytes = serde_json::to_vec(&stored).map_err(|error| Error::BadEntry(error.to_string()))?;
        match self.inner.backend.put(&key, &bytes, expect).await? {
            Put::Done(version) => Ok(ProjectMemory { text: stored.text, version }),
            Put::Conflict(_) => Err(Error::Contended(key.to_string())),
        }
    }
}

fn key_of(directory: &Path) -> Result<(Key, String)> {
    let project = project_of(&canonical(directory)).display().to_string();
    Ok((Key::store(&format!("memory/{}", BlobId::of(project.as_bytes())))?, project))
}
