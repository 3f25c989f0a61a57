//! Where a session's folder was on other machines, as its metadata remembers it.

use std::path::{Path, PathBuf};

use rethread_store::Metadata;
use serde_json::{Value, json};

/// The member of the metadata that names them.
const FOLDERS: &str = "folders";

/// Remembers where a session's folder is on this machine, for those that take it over.
pub fn note_folder(metadata: &mut Metadata, folder: &Path) {
    let (text, mut known) = (json!(folder.to_string_lossy()), folders(metadata));
    if !known.contains(&text) {
        known.push(text);
        metadata.extra.insert(FOLDERS.into(), Value::Array(known));
    }
}

/// Returns where a session's folder was on the machines that it was handed over from.
pub fn noted_folders(metadata: &Metadata) -> Vec<PathBuf> {
    folders(metadata).iter().filter_map(Value::as_str).map(PathBuf::from).collect()
}

fn folders(metadata: &Metadata) -> Vec<Value> {
    metadata.extra.get(FOLDERS).and_then(Value::as_array).cloned().unwrap_or_default()
}
