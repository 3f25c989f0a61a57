//! What an older store remembered of files, as records of ours and content by its hash.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::Issue;
use super::find::folders_in;
use super::source::{self, Source};
use crate::backend::Backend;
use crate::entry::Entry;
use crate::error::{Error, Result};
use crate::id::BlobId;

/// Where a checkpoint's folder keeps contents, in the one layout and in the other.
const CONTENTS: [&str; 2] = ["files", "blobs"];

/// Stores the content of every checkpoint and returns a record of each, oldest first.
pub(super) async fn read_all(
    backend: &dyn Backend,
    source: &Source,
    issues: &mut Vec<Issue>,
) -> Result<Vec<Entry>> {
    let base = source.checkpoints();
    let folders = match folders_in(&base) {
        Ok(folders) => folders,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            issues.push(Issue::new(&base, format!("cannot be listed: {error}")));
            return Ok(Vec::new());
        }
    };
    let mut records = Vec::new();
    for folder in &folders {
        let path = folder.join("manifest.json");
        match source::read_object(&path) {
            Ok(members) => {
                let manifest = Manifest { members, folder, folders: &folders };
                records.push((manifest.created_at(), manifest.record(backend, source, issues).await?));
            }
            Err(reason) => issues.push(Issue::new(&path, reason)),
        }
    }
    records.sort_by_key(|(created_at, _)| *created_at);
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

/// What a checkpoint's folder says of itself.
struct Manifest<'a> {
    members: Map<String, Value>,
    folder: &'a Path,
    /// Those of all checkpoints: the same content may be kept only once.
    folders: &'a [PathBuf],
}

impl Manifest<'_> {
    fn created_at(&self) -> Option<Timestamp> {
        text(&self.members, "createdat")?.parse().ok()
    }

    async fn record(&self, backend: &dyn Backend, source: &Source, issues: &mut Vec<Issue>) -> Result<Entry> {
        let name = self.folder.file_name().unwrap_or_default().to_string_lossy();
        let message = text(&self.members, "usermessageuuid").or(text(&self.members, "usermessageid"));
        let id = text(&self.members, "checkpointid").unwrap_or(&name);
        let mut changes = Vec::new();
        let files = member(&self.members, "files").and_then(Value::as_array);
        for file in files.into_iter().flatten() {
            let Some((path, file)) = file.as_object().and_then(|file| Some((text(file, "path")?, file)))
            else {
                issues.push(self.issue(format!("names a file without a path: {file}")));
                continue;
            };
            let before = match self.before(backend, file).await? {
                Ok(before) => before,
                Err(why) => {
                    issues.push(self.issue(format!("{path}: {why}")));
                    json!({"unknown": {"why": why, "hash": text(file, "hash")}})
                }
            };
            changes.push(json!({"path": path, "before": before, "after": null, "source": "named"}));
        }
        let created_at = member(&self.members, "createdat");
        let mut record = json!({
            "id": id, "message": message, "created_at": created_at, "source": "import", "changes": changes,
        });
        if let (Some(cwd), Some(record)) = (source.cwd(), record.as_object_mut()) {
            // What the paths are relative to, where they are.
            record.insert("root".into(), cwd.into());
        }
        Entry::of(&record)
    }

    /// Returns what a file was, with its content stored; or why nobody can say.
    async fn before(
        &self,
        backend: &dyn Backend,
        file: &Map<String, Value>,
    ) -> Result<Result<Value, String>> {
        let exists = member(file, "exists").and_then(Value::as_bool);
        let hash = text(file, "hash").filter(|hash| !hash.is_empty());
        let (hash, name) = match (exists, hash) {
            (Some(false), _) => return Ok(Ok(json!({"absent": true}))),
            (_, Some(hash)) => (hash.to_ascii_lowercase().parse::<BlobId>(), hash),
            // That a file was not there is only certain if somebody said so: a rewind would delete it.
            (_, None) => return Ok(Err("it has no hash".into())),
        };
        let Ok(hash) = hash else {
            return Ok(Err(format!("{name:?} is not a hash")));
        };
        let mut content = match self.content(&hash) {
            Ok(Some(content)) => content,
            Ok(None) => return Ok(Err(format!("its content {hash} is missing"))),
            Err(error) => return Ok(Err(format!("its content {hash} cannot be read: {error}"))),
        };
        let size = content.metadata().map(|content| content.len()).unwrap_or_default();
        match backend.put_blob(&hash, &mut content).await {
            Ok(()) => Ok(Ok(json!({"present": {"hash": hash, "size": size}}))),
            Err(Error::WrongBlob(_)) => Ok(Err(format!("its content is not that of {hash}"))),
            Err(error) => Err(error),
        }
    }

    fn content(&self, hash: &BlobId) -> std::io::Result<Option<std::fs::File>> {
        let others = self.folders.iter().map(PathBuf::as_path).filter(|folder| *folder != self.folder);
        for folder in std::iter::once(self.folder).chain(others) {
            for contents in CONTENTS {
                if let Some(file) = source::open(&folder.join(contents).join(hash.to_string()))? {
                    return Ok(Some(file));
                }
            }
        }
        Ok(None)
    }

    fn issue(&self, reason: String) -> Issue {
        Issue::new(&self.folder.join("manifest.json"), reason)
    }
}

/// Finds a member whatever the case: `created_at` in the one layout, `CreatedAt` as Go writes it in the other.
fn member<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let plain = |key: &str| key.replace('_', "").to_ascii_lowercase();
    members.iter().find(|(key, _)| plain(key) == name).map(|(_, value)| value)
}

fn text<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    member(members, name)?.as_str()
}
