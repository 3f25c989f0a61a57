//! The backend against its contract, and against what may go wrong with a file.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use pollster::block_on;
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::{Backend as _, Chunk, Expect, From, Key, LogKey, LogName, Space};
use rethread_store::{BlobId, Entry, Error, NewSession, Options, Store, conformance};
use tempfile::TempDir;

/// A backend in a folder of its own, which the next run of the tests clears away.
fn fresh() -> SqliteBackend {
    static ALL: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("sqlite");
        drop(fs::remove_dir_all(&all));
        fs::create_dir_all(&all).unwrap();
        all
    });
    let folder = TempDir::new_in(&*ALL).unwrap().keep();
    SqliteBackend::new(folder.join("deep/er/sessions.db"))
}

#[test]
fn only_the_owner_can_read_any_of_it() {
    let backend = fresh();
    block_on(backend.put(&Key::store("format").unwrap(), b"1", Expect::Any)).unwrap();
    let folder = backend.file().parent().unwrap();
    let modes = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().metadata().unwrap().mode() & 0o777);
    let modes: Vec<u32> = modes.collect();
    assert_eq!(modes, [0o600; 3], "the file, its log and its shared memory");
    assert_eq!(fs::metadata(folder).unwrap().mode() & 0o777, 0o700);
}

#[test]
fn the_contract_of_a_backend_holds() {
    block_on(conformance::backend(fresh));
}

#[test]
fn the_contract_holds_between_two_handles() {
    let handles = || {
        let one = fresh();
        let other = SqliteBackend::new(one.file());
        (one, other)
    };
    block_on(conformance::handles(handles));
}

#[test]
fn the_library_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}

#[test]
fn nothing_is_made_by_reading() {
    let backend = fresh();
    assert!(block_on(backend.list(Space::Sessions, None, 9)).unwrap().is_empty());
    assert!(block_on(backend.get_blob(&BlobId::of(b"x"), 0..9)).unwrap().is_none());
    assert!(!backend.file().parent().unwrap().try_exists().unwrap());
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("theirs.db");
    let theirs = rusqlite::Connection::open(&path).unwrap();
    theirs.execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    drop(theirs);
    let before = fs::read(&path).unwrap();
    let key = Key::store("format").unwrap();
    let refused = block_on(SqliteBackend::new(&path).put(&key, b"1", Expect::Any)).unwrap_err();
    assert!(refused.to_string().contains("another program made this database"), "{refused}");
    assert!(block_on(SqliteBackend::new(&path).get(&key)).is_err());
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing beside it either");
}

#[test]
fn a_file_that_is_no_database_is_told_and_kept() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("notes.txt");
    let text = "something of a person's ".repeat(100);
    fs::write(&path, &text).unwrap();
    let refused = block_on(SqliteBackend::new(&path).put(&Key::store("format").unwrap(), b"1", Expect::Any));
    assert!(matches!(refused, Err(Error::BadName { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn a_newer_layout_is_refused() {
    let backend = fresh();
    let key = Key::store("format").unwrap();
    block_on(backend.put(&key, b"1", Expect::Any)).unwrap();
    let connection = rusqlite::Connection::open(backend.file()).unwrap();
    connection.pragma_update(None, "user_version", 2).unwrap();
    drop(connection);
    let refused = block_on(SqliteBackend::new(backend.file()).get(&key));
    assert!(matches!(refused, Err(Error::NewerFormat { known: 1, .. })), "{refused:?}");
}

#[test]
fn a_record_that_was_damaged_is_named_and_the_others_are_read() {
    let backend = fresh();
    let path = backend.file().to_owned();
    let store = Store::new(backend, Options::default());
    let session = block_on(store.create(NewSession::default())).unwrap();
    for number in 0..9 {
        let entry = Entry::parse(format!(r#"{{"uuid":"u{number}","text":"hi"}}"#)).unwrap();
        block_on(async { session.append(entry).await.unwrap().await }).unwrap();
    }
    let id = session.id().clone();
    store.close().unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    let keys: Vec<i64> = connection
        .prepare("SELECT key FROM lines ORDER BY key")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    connection.execute("UPDATE lines SET bytes = X'00' WHERE key = ?1", [keys[3]]).unwrap();
    connection.execute("DELETE FROM lines WHERE key = ?1", [keys[6]]).unwrap();
    let store = Store::new(SqliteBackend::new(&path), Options::default());
    let report = block_on(store.verify(&id)).unwrap();
    assert!(!report.is_ok(), "{report:?}");
    let told = format!("{report:?}");
    assert!(told.contains("Nul") && told.contains("Missing"), "{told}");
}

/// Returns what several reads give, each of about so many bytes. None of them ends within a group.
fn read_in_parts(backend: &SqliteBackend, log: &LogKey, max_bytes: usize) -> Chunk {
    let mut all = Chunk::default();
    loop {
        let chunk = block_on(backend.read(log, From::Position(all.next), max_bytes)).unwrap();
        if chunk.next == all.next {
            return all;
        }
        let left = chunk.lines.last().map_or(0, |line| line.stamp().left);
        assert!(left == 0 || !chunk.damage.is_empty(), "a group was cut");
        let size: usize = chunk.lines.iter().map(|line| line.as_bytes().len()).sum();
        assert!(size < 2 * max_bytes, "{size} bytes where {max_bytes} were asked for");
        all.lines.extend(chunk.lines);
        all.damage.extend(chunk.damage);
        all.next = chunk.next;
    }
}

#[test]
fn a_long_log_is_the_same_in_large_parts_and_in_small_ones_and_if_lines_are_lost() {
    let backend = fresh();
    let store = Store::new(SqliteBackend::new(backend.file()), Options::default());
    let session = block_on(store.create(NewSession::default())).unwrap();
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    let entry = |number: usize| {
        Entry::parse(format!(r#"{{"uuid":"u{number}","text":"{}"}}"#, "x".repeat(6_000))).unwrap()
    };
    for group in 0..400 {
        let entries = (0..5).map(|member| entry(group * 5 + member)).collect();
        block_on(async { session.append_all(entries).await?.await }).unwrap();
    }
    // Large parts are read on several connections.
    let compare = |what: &str| {
        let [small, large] = [64 << 10, 5 << 20].map(|size| read_in_parts(&backend, &log, size));
        assert_eq!((large.lines.len(), large.next), (small.lines.len(), small.next), "{what}");
        assert!(large.lines == small.lines && large.damage == small.damage, "{what}: {:?}", large.damage);
        large
    };
    assert_eq!(compare("whole").next, 2_001);
    for beyond in [2_001, 2_400, u64::MAX - 100, u64::MAX] {
        let nothing = block_on(backend.read(&log, From::Position(beyond), 5 << 20)).unwrap();
        assert_eq!(nothing, Chunk { next: beyond, ..Chunk::default() });
    }
    let file = rusqlite::Connection::open(backend.file()).unwrap();
    for (offset, lost) in [("700", 700), ("2000", 2_000)] {
        let sql = format!("DELETE FROM lines WHERE key = (SELECT min(key) FROM lines) + {offset}");
        assert_eq!(file.execute(&sql, ()).unwrap(), 1);
        let damaged = compare(offset);
        assert!(damaged.damage.iter().any(|damage| damage.lost.contains(&lost)), "{:?}", damaged.damage);
    }
}

#[test]
fn large_content_is_kept_in_parts_and_read_by_ranges() {
    let backend = fresh();
    let content: Vec<u8> = (0..(19 << 20) + 7_u32).map(|number| (number % 251) as u8).collect();
    let blob = BlobId::of(&content);
    block_on(backend.put_blob(&blob, &mut &content[..])).unwrap();
    for range in [0..10, (1 << 20) - 3..(1 << 20) + 3, (19 << 20)..u64::MAX, (30 << 20)..u64::MAX] {
        let part = block_on(backend.get_blob(&blob, range.clone())).unwrap().unwrap();
        let end = (range.end as usize).min(content.len());
        assert_eq!(part, content[(range.start as usize).min(end)..end], "{range:?}");
    }
    // Content that is not what it is said to be leaves nothing behind.
    let wrong = block_on(backend.put_blob(&BlobId::of(b"else"), &mut &content[..]));
    assert!(matches!(wrong, Err(Error::WrongBlob(_))));
    let connection = rusqlite::Connection::open(backend.file()).unwrap();
    let parts: i64 = connection.query_row("SELECT count(*) FROM parts", [], |row| row.get(0)).unwrap();
    assert_eq!(parts, 20);
}

#[test]
fn content_that_was_damaged_is_healed_by_being_put_again() {
    let backend = fresh();
    let blob = BlobId::of(b"content");
    block_on(backend.put_blob(&blob, &mut &b"content"[..])).unwrap();
    let connection = rusqlite::Connection::open(backend.file()).unwrap();
    connection.execute("UPDATE parts SET bytes = X'00'", []).unwrap();
    block_on(backend.put_blob(&blob, &mut &b"content"[..])).unwrap();
    assert_eq!(block_on(backend.get_blob(&blob, 0..99)).unwrap().unwrap(), "content");
}
