//! The wrapper against the contract of what it wraps, and against whoever has the files but not the key.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use pollster::block_on;
use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::{Backend, LogKey, LogName, Space};
use rethread_store::{
    BlobId, Cleaning, Entry, Error, FileBackend, Fork, Line, MemoryBackend, NewSession, Options, Session,
    SessionId, Store, conformance,
};
use tempfile::TempDir;

const ZERO: std::time::Duration = std::time::Duration::ZERO;

/// What nobody without the key may find.
const SECRET: &str = "the treaty is signed";

fn folder() -> PathBuf {
    static ALL: LazyLock<PathBuf> = LazyLock::new(|| {
        let all = Path::new(env!("CARGO_TARGET_TMPDIR")).join("encrypted");
        drop(fs::remove_dir_all(&all));
        fs::create_dir_all(&all).unwrap();
        all
    });
    TempDir::new_in(&*ALL).unwrap().keep()
}

fn store_at(folder: &Path, key: &MasterKey) -> Store {
    Store::new(EncryptedBackend::new(FileBackend::new(folder), key), Options::default())
}

fn entry(number: usize) -> Entry {
    let text = format!(
        r#"{{"uuid":"u{number}","role":"user","content":"{SECRET} {number}","timestamp":"2026-02-09T10:00:00Z"}}"#
    );
    Entry::parse(text).unwrap()
}

fn say(session: &Session, number: usize) {
    block_on(async { session.append(entry(number)).await.unwrap().await.unwrap() });
}

fn texts(session: &Session) -> Vec<String> {
    let history = block_on(session.messages()).unwrap();
    history.entries().map(|entry| String::from_utf8(entry.as_bytes().to_vec()).unwrap()).collect()
}

fn begin(store: &Store, id: &str) -> Session {
    let id: SessionId = id.parse().unwrap();
    let session = block_on(store.create(NewSession::at("/work").id(id).name(SECRET))).unwrap();
    say(&session, 1);
    session
}

/// Returns every file beneath a folder that holds a text.
fn files_with(folder: &Path, text: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, text));
        } else if fs::read(&path).unwrap().windows(text.len()).any(|window| window == text) {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_contract_holds_in_memory_in_files_and_in_sqlite() {
    let key = MasterKey::generate().unwrap();
    block_on(conformance::backend(|| EncryptedBackend::new(MemoryBackend::default(), &key)));
    block_on(conformance::backend(|| EncryptedBackend::new(FileBackend::new(folder()), &key)));
    let sqlite = || SqliteBackend::new(folder().join("sessions.db"));
    block_on(conformance::backend(|| EncryptedBackend::new(sqlite(), &key)));
}

#[test]
fn the_contract_holds_between_two_handles() {
    let key = MasterKey::generate().unwrap();
    block_on(conformance::handles(|| {
        let folder = folder();
        let open = || EncryptedBackend::new(FileBackend::new(&folder), &key);
        (open(), open())
    }));
}

#[test]
fn nothing_that_was_said_named_or_recorded_can_be_read_without_the_key() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    block_on(session.update(|metadata| metadata.tags = vec![SECRET.into()])).unwrap();
    let content = SECRET.repeat(10_000);
    let blob = BlobId::of(content.as_bytes());
    block_on(store.backend().put_blob(&blob, &mut content.as_bytes())).unwrap();
    let record = format!(r#"{{"id":"c1","changes":[{{"path":"{SECRET}","hash":"{blob}"}}]}}"#);
    block_on(session.append_checkpoint(Entry::parse(record).unwrap())).unwrap();
    assert_eq!(block_on(store.list(&Default::default())).unwrap().sessions.len(), 1);
    store.close().unwrap();
    assert_eq!(files_with(&folder, SECRET.as_bytes()), Vec::<PathBuf>::new());
    assert_eq!(files_with(&folder, blob.to_string().as_bytes()), Vec::<PathBuf>::new());
    let named = fs::read_dir(folder.join("blobs/sha256")).unwrap().count();
    assert!(named > 0, "there is one, and by its name it could be anything");
    // With the key it is all there.
    let store = store_at(&folder, &key);
    let session = block_on(store.open(&"talk".parse().unwrap())).unwrap();
    assert!(texts(&session)[0].contains(SECRET));
    assert_eq!(block_on(session.metadata()).unwrap().name.as_deref(), Some(SECRET));
    let read = block_on(store.backend().get_blob(&blob, 0..u64::MAX)).unwrap().unwrap();
    assert_eq!(read, content.as_bytes());
    assert!(block_on(store.verify(session.id())).unwrap().problems.is_empty());
}

#[test]
fn the_wrong_key_no_key_and_a_key_that_is_not_needed_are_errors_that_say_so() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    begin(&store_at(&folder, &key), "talk");
    let load = |store: Store| block_on(store.load(&"talk".parse().unwrap())).unwrap_err().to_string();
    let other = MasterKey::generate().unwrap();
    assert!(load(store_at(&folder, &other)).contains("encrypted with another key"));
    let plain = Store::new(FileBackend::new(&folder), Options::default());
    assert!(load(plain).contains("it is encrypted, and no key was given"));
    let plainly = self::folder();
    let plain = Store::new(FileBackend::new(&plainly), Options::default());
    begin(&plain, "talk");
    assert!(load(store_at(&plainly, &key)).contains("not encrypted, and a key was given"));
    let text = key.to_text();
    assert_eq!(*text.parse::<MasterKey>().unwrap().to_text(), *text);
    let refused = "c2hvcnQ=".parse::<MasterKey>().unwrap_err().to_string();
    assert!(refused.contains("32 random bytes") && !refused.contains("c2hvcnQ="), "{refused}");
}

#[test]
fn a_record_that_was_put_in_anothers_place_is_an_error() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    for id in ["one", "other"] {
        say(&begin(&store, id), 2);
    }
    store.close().unwrap();
    // One session's log in the place of another's, with the stamps that fit.
    let log = |id: &str| folder.join("sessions").join(id).join("messages.jsonl");
    fs::copy(log("one"), log("other")).unwrap();
    let store = store_at(&folder, &key);
    let damaged = block_on(async { store.open(&"other".parse().unwrap()).await?.messages().await });
    let error = damaged.unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
    assert!(error.to_string().contains("cannot be decrypted"), "{error}");
    assert_eq!(texts(&block_on(store.open(&"one".parse().unwrap())).unwrap()).len(), 2);
    store.close().unwrap();
    // What was said first in the place of what was said then, stamped anew by somebody who knows how.
    let lines = fs::read(log("one")).unwrap();
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut lines: Vec<Line> = lines.map(|line| Line::parse(line.to_vec().into()).unwrap()).collect();
    let forged = Line::restored(lines[1].body(), lines[2].stamp().clone());
    lines[2] = forged;
    let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
    fs::write(log("one"), text).unwrap();
    let store = store_at(&folder, &key);
    let forged = block_on(async { store.open(&"one".parse().unwrap()).await?.messages().await });
    assert!(forged.unwrap_err().to_string().contains("record 2 of one/messages"));
}

#[test]
fn without_its_key_a_session_is_gone_and_its_forks_are_not() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    let fork = block_on(session.fork(Fork::default().id("fork".parse().unwrap()))).unwrap();
    say(&fork, 2);
    store.close().unwrap();
    let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
    assert!(block_on(backend.erase(session.id())).unwrap());
    assert!(!block_on(backend.erase(session.id())).unwrap());
    let store = store_at(&folder, &key);
    let gone = block_on(async { store.open(&"talk".parse().unwrap()).await?.messages().await });
    assert!(gone.unwrap_err().to_string().contains("its key was erased"));
    let store = store_at(&folder, &key);
    assert_eq!(texts(&block_on(store.open(&"fork".parse().unwrap())).unwrap()).len(), 2);
}

#[test]
fn what_nobody_refers_to_is_cleared_away_and_what_somebody_does_stays() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    let blobs: Vec<BlobId> = (0..40)
        .map(|number| {
            let content = format!("content {number}");
            let blob = BlobId::of(content.as_bytes());
            block_on(store.backend().put_blob(&blob, &mut content.as_bytes())).unwrap();
            blob
        })
        .collect();
    let record = format!(r#"{{"id":"c1","changes":[{{"hash":"{}"}}]}}"#, blobs[7]);
    block_on(session.append_checkpoint(Entry::parse(record).unwrap())).unwrap();
    let listed: Vec<String> = (0..)
        .scan(None::<String>, |after, _| {
            let page = block_on(store.backend().list(Space::Blobs, after.as_deref(), 3)).unwrap();
            *after = page.last().map(|listed| listed.name.clone());
            (!page.is_empty()).then_some(page)
        })
        .flatten()
        .map(|listed| listed.name)
        .collect();
    let mut sorted: Vec<String> = blobs.iter().map(ToString::to_string).collect();
    sorted.sort();
    assert_eq!(listed, sorted, "by their hashes, in pages");
    let cleaning = Cleaning { blobs_after: ZERO, grace: ZERO, ..Cleaning::default() };
    for _ in 0..2 {
        block_on(store.gc(&cleaning)).unwrap();
    }
    let left = block_on(store.backend().list(Space::Blobs, None, 99)).unwrap();
    assert_eq!(left.iter().map(|it| it.name.clone()).collect::<Vec<_>>(), [blobs[7].to_string()]);
}

#[test]
fn a_damaged_log_is_repaired_without_its_key_and_read_with_it() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    (2..=4).for_each(|number| say(&session, number));
    store.close().unwrap();
    let log = folder.join("sessions/talk/messages.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    let third = bytes.split(|byte| *byte == b'\n').take(2).map(|line| line.len() + 1).sum::<usize>();
    bytes[third + 20] ^= 1;
    fs::write(&log, bytes).unwrap();
    let store = store_at(&folder, &key);
    let id: SessionId = "talk".parse().unwrap();
    block_on(store.repair(&id, rethread_store::Mode::Apply)).unwrap();
    let session = block_on(store.open(&id)).unwrap();
    let said = texts(&session);
    assert_eq!(said.len(), 3, "{said:?}");
    say(&session, 9);
    assert_eq!(texts(&session).len(), 4);
}

#[test]
fn several_writers_share_one_key() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let stores: Vec<Arc<Store>> = (0..4).map(|_| Arc::new(store_at(&folder, &key))).collect();
    begin(&stores[0], "talk");
    std::thread::scope(|scope| {
        for (number, store) in stores.iter().enumerate() {
            scope.spawn(move || {
                let session = block_on(store.open(&"talk".parse().unwrap())).unwrap();
                (0..25).for_each(|at| say(&session, 100 * (number + 1) + at));
            });
        }
    });
    let store = store_at(&folder, &key);
    let session = block_on(store.open(&"talk".parse().unwrap())).unwrap();
    assert_eq!(texts(&session).len(), 101);
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    assert!(block_on(store.backend().find(&log, &"u424".parse().unwrap())).unwrap().is_some());
}
