//! Stores of the two older layouts, taken over.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::path::{Path, PathBuf};

use rethread_store::backend::{From, LogKey, LogName, Space};
use rethread_store::{
    BlobId, Error, FolderImport, FolderOutcome, MemoryBackend, Options, Progress, Result, SessionId, Store,
};
use serde_json::{Value, json};

use crate::bundle::{Failure, every_call};
use crate::kit::{Home, chain_of, conversation, run, session_id, tree};

const NESTED: &str = "7b1e4c52-0000-4000-8000-000000000001";
const FORKED: &str = "7b1e4c52-0000-4000-8000-000000000002";

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn memory() -> Store {
    Store::new(MemoryBackend::default(), Options::default())
}

fn import(store: &Store, path: &Path) -> Result<FolderImport> {
    run(store.import_folder(path, &mut |_| {}))
}

/// What became of each session, by the name of its folder.
fn outcomes(import: &FolderImport) -> Vec<(String, String)> {
    let outcome = |outcome: &FolderOutcome| match outcome {
        FolderOutcome::Imported { messages, transcript, checkpoints, .. } => {
            format!("{messages} messages, {transcript} transcript, {checkpoints} checkpoints")
        }
        FolderOutcome::Exists(_) => "exists".into(),
        other => format!("{other:?}"),
    };
    let name = |folder: &Path| folder.file_name().unwrap().to_string_lossy().into_owned();
    import.sessions.iter().map(|session| (name(&session.folder), outcome(&session.outcome))).collect()
}

fn captures(store: &Store, id: &SessionId) -> Vec<Value> {
    let log = LogKey::new(id.clone(), LogName::Checkpoints);
    let chunk = run(store.backend().read(&log, From::Position(0), 1 << 20)).unwrap();
    chunk.lines.iter().map(|line| line.entry().read().unwrap()).collect()
}

#[test]
fn a_store_of_the_nested_layout_is_taken_over() {
    let store = memory();
    let import = import(&store, &fixture("nested")).unwrap();
    assert_eq!(outcomes(&import)[0].1, "3 messages, 2 transcript, 1 checkpoints");
    assert_eq!(outcomes(&import)[1].1, "1 messages, 0 transcript, 0 checkpoints");
    let session = run(store.open(&session_id(NESTED))).unwrap();
    let bodies = run(session.messages()).unwrap();
    let text = std::fs::read_to_string(
        fixture("nested/projects/3f2a9c/sessions").join(NESTED).join("messages.jsonl"),
    );
    let text = text.unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(bodies.entries().map(|e| e.as_str()).collect::<Vec<_>>(), [lines[0], lines[1], lines[5]]);

    let metadata = serde_json::to_value(run(session.metadata()).unwrap()).unwrap();
    assert_eq!(
        metadata,
        json!({
            "session_id": NESTED, "project": "/srv/example/app", "cwd": "/srv/example/app",
            "model": "claude-sonnet-4-5-20250929", "first_prompt": "make it faster",
            "created_at": "2026-02-09T09:00:00Z", "updated_at": "2026-02-09T09:05:30.25Z",
            "message_count": 3, "entry_count": 3, "turn_count": 2, "total_tokens": 1234, "total_cost_usd": 0.0,
            "exit_reason": "end_turn", "archived": false, "detached": false, "child": false,
            "is_checkpoint": false, "project_hash": "3f2a9c", "favourite": {"colour": "green"},
        })
    );
    let forked = run(store.metadata(&session_id(FORKED))).unwrap();
    assert_eq!(forked.parent_id, Some(session_id(NESTED)));
    assert_eq!(forked.agent_name.as_deref(), Some("reviewer"));
    assert!(run(store.verify(&session_id(NESTED))).unwrap().is_ok());
}

#[test]
fn checkpoints_of_the_nested_layout_become_records_and_content() {
    let store = memory();
    import(&store, &fixture("nested")).unwrap();
    let hash = BlobId::of(b"fn main() {}\n");
    assert_eq!(
        captures(&store, &session_id(NESTED)),
        [json!({
            "id": "m-1", "message": "m-1", "created_at": "2026-02-09T10:01:00+01:00", "source": "import",
            "changes": [
                {"path": "/srv/example/app/src/main.rs", "before": {"present": {"hash": hash, "size": 13}},
                 "after": null, "source": "named"},
                {"path": "/srv/example/app/src/cache.rs", "before": {"absent": true},
                 "after": null, "source": "named"},
            ],
            "root": "/srv/example/app",
        })]
    );
    assert_eq!(run(store.backend().get_blob(&hash, 0..99)).unwrap().unwrap(), "fn main() {}\n");
}

#[test]
fn a_store_of_the_flat_layout_is_taken_over() {
    let store = memory();
    let import = import(&store, &fixture("flat")).unwrap();
    let expected = [
        ("abc-123", "3 messages, 1 transcript, 2 checkpoints"),
        ("abc-124", "0 messages, 1 transcript, 0 checkpoints"),
    ];
    assert_eq!(outcomes(&import), expected.map(|(name, what)| (name.to_owned(), what.to_owned())));
    let session = run(store.open(&session_id("abc-123"))).unwrap();
    assert_eq!(chain_of(&session), "u-1 u-2 u-3");
    let metadata = run(session.metadata()).unwrap();
    assert_eq!(metadata.total_cost_usd, 0.0234);
    assert_eq!(metadata.agent_name, None);
    assert_eq!(metadata.created_at.to_string(), "2026-02-09T12:00:00Z");
    assert_eq!(metadata.updated_at.to_string(), "2026-02-09T12:00:03Z");
}

#[test]
fn content_that_is_missing_or_wrong_is_named_and_never_taken_for_an_absent_file() {
    let store = memory();
    let import = import(&store, &fixture("flat")).unwrap();
    let captures = captures(&store, &session_id("abc-123"));
    let state = |change: &Value| change["before"].as_object().unwrap().keys().next().unwrap().clone();
    let states = |capture: &Value| {
        let changes = capture["changes"].as_array().unwrap().iter();
        changes
            .map(|change| format!("{} {}", change["path"].as_str().unwrap(), state(change)))
            .collect::<Vec<_>>()
    };
    assert_eq!(captures.iter().map(|capture| &capture["id"]).collect::<Vec<_>>(), ["cp-001", "cp-002"]);
    assert_eq!(states(&captures[0]), ["src/main.go present", "src/wrong.go unknown"]);
    assert_eq!(
        states(&captures[1]),
        ["src/main.go present", "src/util.go present", "src/gone.go unknown", "src/odd.go unknown"]
    );
    assert_eq!(run(store.backend().list(Space::Blobs, None, 9)).unwrap().len(), 2);
    let issues: Vec<String> = import.sessions[0].issues.iter().map(ToString::to_string).collect();
    for (file, what) in [
        ("cp-001/manifest.json", "src/wrong.go: its content is not that of"),
        ("cp-002/manifest.json", "src/gone.go: its content"),
        ("cp-002/manifest.json", "src/odd.go: it has no hash"),
        ("cp-003/manifest.json", "is not a JSON object"),
    ] {
        assert!(
            issues.iter().any(|issue| issue.contains(file) && issue.contains(what)),
            "{file} {what}: {issues:?}"
        );
    }
    assert_eq!(issues.len(), 4);
}

#[test]
fn lines_that_are_no_entries_are_named_with_their_file_and_place() {
    let import = import(&memory(), &fixture("nested")).unwrap();
    let path = fixture("nested/projects/3f2a9c/sessions").join(NESTED).join("messages.jsonl");
    let issues = &import.sessions[0].issues;
    let places: Vec<_> = issues.iter().map(|issue| (issue.file.clone(), issue.offset)).collect();
    assert_eq!(places, [139, 168, 246].map(|offset| (path.clone(), Some(offset))));
    assert!(issues[1].reason.contains("an entry is a JSON object"), "{}", issues[1]);
    assert!(issues[2].reason.contains("in the middle of a line"), "{}", issues[2]);
}

#[test]
fn an_id_that_cannot_be_one_here_is_reported_and_the_rest_is_imported() {
    let import = import(&memory(), &fixture("nested")).unwrap();
    let refused = &import.sessions[2].outcome;
    assert!(matches!(refused, FolderOutcome::Refused(Error::BadName { text, .. }) if text == "my session"));
    assert_eq!(import.sessions.len(), 3);
}

#[test]
fn importing_again_changes_nothing() {
    let home = Home::new();
    import(&home.open(), &fixture("nested")).unwrap();
    let before = tree(&home.root());
    let again = import(&home.open(), &fixture("nested")).unwrap();
    assert_eq!([&outcomes(&again)[0].1, &outcomes(&again)[1].1], ["exists", "exists"]);
    assert!(again.memories.is_empty() && again.issues.is_empty());
    assert!(tree(&home.root()) == before, "the second import wrote to the store");
}

#[test]
fn the_source_is_never_written_to() {
    let home = Home::new();
    let stamps = |folder: &Path| {
        let modified = |path: &PathBuf| std::fs::metadata(path).unwrap().modified().unwrap();
        tree(folder).into_iter().map(|(path, content)| (modified(&path), path, content)).collect::<Vec<_>>()
    };
    let before = stamps(&fixture(""));
    import(&home.open(), &fixture("")).unwrap();
    assert!(stamps(&fixture("")) == before);
}

#[test]
fn a_project_memory_comes_along_unless_there_is_one() {
    let store = memory();
    let first = import(&store, &fixture("nested")).unwrap();
    assert_eq!(first.memories, [fixture("nested/projects/3f2a9c/memory/summary.md")]);
    let memory = run(store.project_memory(Path::new("/srv/example/app"))).unwrap().unwrap();
    assert!(memory.text.starts_with("# What we know"));

    let at = rethread_store::backend::Expect::Version(memory.version);
    run(store.set_project_memory(Path::new("/srv/example/app"), "newer", at)).unwrap();
    let second = import(&store, &fixture("nested")).unwrap();
    assert!(second.memories.is_empty());
    assert!(second.issues[0].reason.contains("kept"), "{:?}", second.issues);
    assert_eq!(run(store.project_memory(Path::new("/srv/example/app"))).unwrap().unwrap().text, "newer");
}

#[test]
fn a_session_folder_can_be_given_directly() {
    let store = memory();
    let mut seen: Vec<Progress> = Vec::new();
    let done = run(store.import_folder(&fixture("flat/abc-123"), &mut |progress| seen.push(progress)));
    assert_eq!(done.unwrap().sessions.len(), 1);
    assert_eq!((seen[0].number, seen[0].of, seen[0].bytes), (1, 1, 0));
    assert!(seen[0].of_bytes > 200);
}

#[test]
fn a_line_over_ten_megabytes_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let line = format!(r#"{{"uuid":"big","role":"user","content":"{}"}}"#, "z".repeat(11 << 20));
    std::fs::write(folder.path().join("messages.jsonl"), format!("{line}\n{{\"uuid\":\"next\"}}")).unwrap();
    std::fs::write(folder.path().join("metadata.json"), r#"{"id":"s"}"#).unwrap();
    let store = memory();
    assert!(import(&store, folder.path()).unwrap().sessions[0].issues.is_empty());
    let history = run(run(store.open(&session_id("s"))).unwrap().messages()).unwrap();
    assert_eq!(crate::kit::ids(&history), "big next");
    assert!(history.records[0].entry.as_str() == line);
}

#[test]
fn a_store_of_our_own_is_not_mistaken_for_an_older_one() {
    let home = Home::new();
    conversation(&home.open(), "s", 2);
    let import = import(&memory(), &home.root()).unwrap();
    let refused = &import.sessions[0].outcome;
    assert!(
        matches!(refused, FolderOutcome::Refused(Error::BadImport { reason, .. }) if reason.contains("export")),
        "{refused:?}"
    );
}

#[test]
fn a_folder_without_sessions_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let empty = import(&memory(), folder.path());
    assert!(matches!(empty, Err(Error::BadImport { .. })), "{empty:?}");
}

#[test]
fn an_import_of_a_folder_that_fails_at_any_call_leaves_no_session() {
    for how in [Failure::Once, Failure::ForGood] {
        let calls = every_call(how, |store| {
            let import = run(store.import_folder(&fixture("flat/abc-123"), &mut |_| {}))?;
            match &import.sessions[0].outcome {
                FolderOutcome::Refused(error) => Err(error.clone()),
                _ => Ok(()),
            }
        });
        assert_eq!(calls, 10, "format, first record, four contents, three logs, the cache");
    }
}
