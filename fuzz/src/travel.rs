//! A session that is exported and imported: what arrives is what left.

use std::path::PathBuf;
use std::sync::LazyLock;

use rethread_store::SessionId;
use serde_json::Value;
use tempfile::TempDir;

use super::home::{Home, run};

/// Where inputs are put that are read from a path: in memory, where there is such a folder.
static SCRATCH: LazyLock<TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    folder.expect("a folder for inputs")
});

/// Returns a file of this thread's own that holds these bytes.
pub fn file(bytes: &[u8]) -> PathBuf {
    let path = folder().join("bundle");
    std::fs::write(&path, bytes).expect("room for an input");
    path
}

/// Returns a folder of this thread's own.
pub fn folder() -> PathBuf {
    let name = format!("{:?}", std::thread::current().id());
    let path = SCRATCH.path().join(name.replace(['(', ')'], "-"));
    std::fs::create_dir_all(&path).expect("room for a folder");
    path
}

/// Returns a session as a bundle, if it can be exported at all.
pub fn exported(home: &Home, id: &SessionId) -> Option<Vec<u8>> {
    let mut bundle = Vec::new();
    run(home.store().export(id, &mut bundle)).ok()?;
    Some(bundle)
}

/// Exports the session, imports it elsewhere, and compares every record.
pub fn there_and_back(home: &Home) {
    let Some(bundle) = exported(home, &home.session()) else {
        return;
    };
    let there = Home::default();
    let store = there.store();
    let imported = run(store.import_bundle(&file(&bundle), None)).expect("what was just exported");
    assert_eq!(imported.skipped, 0);
    let again = exported(&there, &imported.session_id).expect("what was just imported");
    let (left, arrived) = (records(&bundle), records(&again));
    assert!(left.len() <= arrived.len() && arrived.len() <= left.len() + 1, "at most one note more");
    for (left, arrived) in left.iter().zip(&arrived).filter(|(left, _)| left["kind"] != "lost") {
        assert_eq!(left, arrived, "a record arrives as it was");
    }
    store.close().expect("nothing waits");
}

fn records(bundle: &[u8]) -> Vec<Value> {
    let lines = bundle.split(|byte| *byte == b'\n');
    let records = lines.filter_map(|line| {
        // The body's own bytes: a parsed one would hide that white space or a doubled member was lost.
        let mut value: serde_json::Map<String, Value> = serde_json::from_slice(line).ok()?;
        value.contains_key("log").then(|| {
            value.insert("line".into(), String::from_utf8_lossy(line).into());
            Value::Object(value)
        })
    });
    records.filter(|record| record["kind"] != "inherited").collect()
}
