//! The wrapper against the contract of what it wraps, and against whoever has the files but not the key.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod contents;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use pollster::block_on;
use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_postgres::PostgresBackend;
use rethread_s3::S3Backend;
use rethread_sqlite::SqliteBackend;
use rethread_store::backend::{
    Append, Backend, Durability, Expect, From, Key, LogKey, LogName, Space, Target,
};
use rethread_store::{
    BlobId, Cleaned, Cleaning, Entry, Error, FileBackend, Filter, Fork, Kind, Line, MemoryBackend, Mode,
    NewSession, Options, Session, SessionId, Stamp, Store, conformance,
};
use rethread_testkit::{Mishap, Postgres, S3, S3Proxy, cannot};
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
        } else if text.is_empty() || fs::read(&path).unwrap().windows(text.len()).any(|window| window == text)
        {
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
    block_on(conformance::handles(|| {
        let file = folder().join("sessions.db");
        let open = || EncryptedBackend::new(SqliteBackend::new(&file), &key);
        (open(), open())
    }));
}

#[test]
fn the_contract_holds_in_a_database() {
    let Some(server) = Postgres::shared() else { return cannot("PostgreSQL is not installed") };
    let key = MasterKey::generate().unwrap();
    let open = |url: &str| {
        let backend = PostgresBackend::new(rethread_postgres::Settings::parse(url).unwrap()).unwrap();
        EncryptedBackend::new(backend, &key)
    };
    block_on(conformance::backend(|| open(&server.fresh())));
    block_on(conformance::handles(|| {
        let url = server.fresh();
        (open(&url), open(&url))
    }));
}

#[test]
fn the_contract_holds_in_s3() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    let (key, way) = (MasterKey::generate().unwrap(), server.way());
    let open = |bucket: &str| {
        let settings = rethread_s3::Settings::parse(&format!("s3://{bucket}/team")).unwrap();
        let backend = S3Backend::new(&settings.with_variables(way.variables())).unwrap();
        EncryptedBackend::new(backend, &key)
    };
    block_on(conformance::backend(|| open(&server.bucket())));
    block_on(conformance::handles(|| {
        let bucket = server.bucket();
        (open(&bucket), open(&bucket))
    }));
}

#[test]
fn what_is_tried_again_is_sent_as_it_was_sealed_and_told_from_anothers_who_says_the_same() {
    let Some(server) = S3::shared() else { return cannot("there is no S3 server: scripts/setup s3") };
    let (key, bucket, log) = (
        MasterKey::generate().unwrap(),
        server.bucket(),
        LogKey::new("s".parse().unwrap(), LogName::Messages),
    );
    let open = |way: &S3Proxy| {
        let settings = rethread_s3::Settings::parse(&format!("s3://{bucket}/team")).unwrap();
        let mut settings = settings.with_variables(way.variables());
        settings.patience = std::time::Duration::from_millis(700);
        EncryptedBackend::new(S3Backend::new(&settings).unwrap(), &key)
    };
    let (way, other_way) = (server.way(), server.way());
    let (one, other) = (open(&way), open(&other_way));
    let line = |at| {
        let stamp = Stamp {
            position: at,
            parent: None,
            depth: 1,
            kind: Kind::Entry,
            id: "same".parse().unwrap(),
            left: 0,
            unsettled: 0,
        };
        [Line::new(&entry(1), stamp)]
    };
    let append = |backend: &EncryptedBackend<S3Backend>, at| {
        block_on(backend.append(&log, at, &line(at), Durability::Synced))
    };
    let done = Append::Done { durability: Durability::Synced, found: Vec::new() };
    assert_eq!(append(&one, 0).unwrap(), done);
    // It arrives, and nobody hears of it: first ours, then another's that is the same.
    way.meet([Some(Mishap::LoseAnswer), Some(Mishap::KeepBack)]);
    assert!(append(&one, 1).is_err_and(|error| error.is_passing()));
    assert_eq!(append(&other, 1).unwrap(), Append::Moved { next: 2 });
    assert_eq!(append(&one, 1).unwrap(), done);
    assert_eq!(append(&one, 1).unwrap(), Append::Moved { next: 2 });
    way.meet([Some(Mishap::KeepBack)]);
    assert!(append(&one, 2).is_err_and(|error| error.is_passing()));
    assert_eq!(append(&other, 2).unwrap(), done);
    way.let_through();
    assert_eq!(append(&one, 2).unwrap(), Append::Moved { next: 3 });
    assert_eq!(append(&one, 3).unwrap(), done);
    assert_eq!(block_on(other.read(&log, From::Position(0), 1 << 20)).unwrap().lines.len(), 4);
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
    assert!(load(plain).contains("the store is encrypted, and no key was given"));
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
    assert_eq!(texts(&block_on(store.open(&"fork".parse().unwrap())).unwrap()).len(), 2);
    // Whoever has read a fork has the key, and is not given the session by it.
    let gone = block_on(store.open(session.id()));
    assert!(matches!(gone, Err(Error::Erased(_))), "{gone:?}");
}

fn erase(folder: &Path, key: &MasterKey, id: &str) {
    let backend = EncryptedBackend::new(FileBackend::new(folder), key);
    assert!(block_on(backend.erase(&id.parse().unwrap())).unwrap());
}

#[test]
fn an_erased_session_is_called_one_and_nothing_is_added_to_it() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let (store, other) = (store_at(&folder, &key), store_at(&folder, &key));
    let (session, log) = (begin(&store, "talk"), |name| LogKey::new("talk".parse().unwrap(), name));
    begin(&store, "other");
    // More than a catalog leaves out.
    (0..40).for_each(|number| drop(begin(&store, &format!("more-{number}"))));
    std::thread::sleep(std::time::Duration::from_millis(2100));
    assert_eq!(block_on(store.list(&Filter::everything())).unwrap().sessions.len(), 42);
    let line = Line::new(&entry(3), Stamp { position: 0, ..line_of(&store, &session).stamp().clone() });
    erase(&folder, &key, "talk");
    let erased = |what: &str, error: Option<Error>| {
        assert!(matches!(&error, Some(Error::Erased(id)) if id == session.id()), "{what}: {error:?}");
    };
    erased("open", block_on(other.open(session.id())).err());
    erased("metadata", block_on(other.metadata(session.id())).err());
    erased("delete", block_on(other.delete(session.id())).err());
    erased("verify", block_on(other.verify(session.id())).err());
    erased("repair", block_on(other.repair(session.id(), Mode::Apply)).err());
    erased("read", block_on(other.backend().read(&log(LogName::Messages), From::Last, 1)).err());
    let begun = block_on(other.backend().append(&log(LogName::Transcript), 0, &[line], Durability::Synced));
    erased("begin a log", begun.err());
    std::thread::sleep(std::time::Duration::from_millis(150));
    erased("append", block_on(async { session.append(entry(2)).await?.await }).err());
    let taken = block_on(other.create(NewSession::at("/work").id(session.id().clone())));
    assert!(matches!(taken, Err(Error::SessionExists(_))), "{taken:?}");
    let listing = block_on(other.list(&Filter::everything())).unwrap();
    assert_eq!(listing.sessions.len(), 41);
    erased("list", listing.unreadable.into_iter().next().map(|(_, error)| error));
}

#[test]
fn a_key_that_is_not_there_or_another_masters_is_no_erased_one() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let id = begin(&store_at(&folder, &key), "talk").id().clone();
    let another = EncryptedBackend::new(FileBackend::new(&folder), &MasterKey::generate().unwrap());
    let refused = block_on(another.is_erased(&id));
    assert!(refused.unwrap_err().to_string().contains("another master key"));
    fs::remove_dir_all(folder.join("keys")).unwrap();
    let store = store_at(&folder, &key);
    let refused = block_on(store.open(&id)).unwrap_err();
    assert!(matches!(&refused, Error::Damaged { reason, .. } if reason == "it has no key"), "{refused}");
    let cleaned = block_on(store.gc(&Cleaning::default())).unwrap();
    assert_eq!((cleaned.purged.len(), cleaned.failed.len()), (0, 1), "it may be brought back from a backup");
}

/// Once, one erased session kept all others from being purged, and all contents from being cleared away.
#[test]
fn what_is_left_of_an_erased_session_is_cleared_away_and_nothing_else() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let blobs = ["talk", "other", "trashed"].map(|id| {
        let (session, blob) = (begin(&store, id), BlobId::of(id.as_bytes()));
        block_on(store.backend().put_blob(&blob, &mut id.as_bytes())).unwrap();
        let record = format!(r#"{{"id":"c1","changes":[{{"hash":"{blob}"}}]}}"#);
        block_on(session.append_checkpoint(Entry::parse(record).unwrap())).unwrap();
        blob
    });
    block_on(store.delete(&"trashed".parse().unwrap())).unwrap();
    erase(&folder, &key, "talk");
    assert!(block_on(store.purge(&"trashed".parse().unwrap())).unwrap(), "beside an erased one");
    let cleaning = Cleaning { blobs_after: ZERO, grace: ZERO, ..Cleaning::default() };
    let plan = block_on(store.gc(&Cleaning { mode: Mode::Plan, ..cleaning.clone() })).unwrap();
    let cleaned = [plan, block_on(store.gc(&cleaning)).unwrap()];
    for Cleaned { purged, failed, blobs: gone, .. } in cleaned {
        assert_eq!((purged, failed.len()), (vec!["talk".parse().unwrap()], 0));
        let mut gone_too = [blobs[0], blobs[2]].map(|blob| store.backend().listed_as(&blob)[0]);
        gone_too.sort();
        assert_eq!(gone, gone_too);
    }
    assert_eq!(block_on(store.ids()).unwrap(), ["other".parse().unwrap()]);
    assert!(block_on(store.backend().get_blob(&blobs[1], 0..9)).unwrap().is_some());
    begin(&store, "talk");
    assert_eq!(texts(&block_on(store.open(&"talk".parse().unwrap())).unwrap()).len(), 1);
}

/// A cache that another process had on its way, and a session was taken for erased that had only been purged.
#[test]
fn what_turns_up_in_place_of_a_purged_session_is_no_erased_one() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    for id in ["purged", "erased"] {
        let session = begin(&store, id);
        if id == "erased" {
            erase(&folder, &key, id);
        }
        assert!(block_on(store.purge(session.id())).unwrap());
        block_on(store.backend().put(
            &Key::session(session.id().clone(), "late").unwrap(),
            b"{}",
            Expect::Any,
        ))
        .unwrap();
        let loaded = block_on(store.load(session.id()));
        assert!(matches!(loaded, Ok(None)), "{id}: {loaded:?}");
        begin(&store, id);
        assert_eq!(texts(&block_on(store.open(session.id())).unwrap()).len(), 1, "{id}");
    }
}

#[test]
fn a_purge_of_an_erased_session_and_of_one_behind_it_leaves_forks_what_they_inherit() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let mut session = begin(&store, "first");
    for (number, id) in [(2, "second"), (3, "third")] {
        session = block_on(session.fork(Fork::default().id(id.parse().unwrap()))).unwrap();
        say(&session, number);
    }
    store.close().unwrap();
    erase(&folder, &key, "second");
    erase(&folder, &key, "first");
    let read = || {
        let store = store_at(&folder, &key);
        texts(&block_on(store.open(&"third".parse().unwrap())).unwrap()).len()
    };
    assert_eq!(read(), 3, "through both");
    for purged in ["first", "second"] {
        let store = store_at(&folder, &key);
        assert!(block_on(store.purge(&purged.parse().unwrap())).unwrap());
        assert_eq!(read(), 3, "without {purged}");
    }
    assert_eq!(block_on(store_at(&folder, &key).ids()).unwrap().len(), 1);
}

#[test]
fn a_key_that_was_taken_from_forks_as_well_is_nowhere_and_they_have_copies() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    let fork = block_on(session.fork(Fork::default().id("fork".parse().unwrap()))).unwrap();
    say(&session, 2);
    block_on(store.detach_forks(session.id())).unwrap();
    store.close().unwrap();
    erase(&folder, &key, "talk");
    let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
    assert_eq!(block_on(backend.disinherit(session.id())).unwrap(), 1);
    let store = store_at(&folder, &key);
    assert_eq!(texts(&block_on(store.open(fork.id())).unwrap()).len(), 1);
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    let read = block_on(store.backend().read(&log, From::Position(0), 1 << 20));
    assert!(matches!(read, Err(Error::Erased(_))), "{read:?}");
}

#[test]
fn whatever_is_remembered_of_a_session_goes_when_it_is_erased() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    // What a copy of it would have, had it come from another store.
    let elsewhere = Store::new(MemoryBackend::default(), Options::default());
    block_on(store.replicate(session.id(), &elsewhere, &mut |_| {})).unwrap();
    block_on(store.purge(session.id())).unwrap();
    block_on(elsewhere.replicate(session.id(), &store, &mut |_| {})).unwrap();
    store.close().unwrap();
    let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
    let names =
        ["metadata", "listed", "replica"].map(|name| Key::session(session.id().clone(), name).unwrap());
    assert!(block_on(backend.get(&names[2])).unwrap().is_some());
    assert!(block_on(backend.erase(session.id())).unwrap());
    for name in names {
        assert!(block_on(backend.get(&name)).unwrap().is_none(), "{name}");
    }
}

/// Returns every wrapped key that a file of sessions holds, with the name of its document.
fn wrapped_keys(file: &Path) -> Vec<(String, String)> {
    let backend = SqliteBackend::new(file);
    let documents = block_on(backend.list(Space::Documents, None, usize::MAX)).unwrap();
    let keys = documents.into_iter().filter(|listed| listed.name.starts_with("keys/"));
    let keys = keys.flat_map(|listed| {
        let document = block_on(backend.get(&listed.name.parse().unwrap())).unwrap().unwrap();
        let text = String::from_utf8(document.bytes.to_vec()).unwrap();
        let wrapped = text.split("\"key\":\"").skip(1).map(|rest| rest[..rest.find('"').unwrap()].to_owned());
        wrapped.map(|key| (listed.name.clone(), key)).collect::<Vec<_>>()
    });
    keys.collect()
}

/// Once, SQLite left the key that was replaced in free space of its file and in its write-ahead log, and whoever had the
/// master key opened with it what had been erased.
#[test]
fn no_byte_of_a_database_holds_a_key_that_was_erased_inherited_or_purged() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let file = folder.join("sessions.db");
    let store = Store::new(EncryptedBackend::new(SqliteBackend::new(&file), &key), Options::default());
    let sessions: Vec<Session> = (0..60).map(|number| begin(&store, &format!("talk{number}"))).collect();
    for (number, session) in sessions.iter().enumerate().take(20) {
        block_on(session.fork(Fork::default().id(format!("fork{number}").parse().unwrap()))).unwrap();
    }
    let before = wrapped_keys(&file);
    for session in &sessions[..20] {
        block_on(store.detach_forks(session.id())).unwrap();
    }
    for session in &sessions[20..22] {
        block_on(store.purge(session.id())).unwrap();
    }
    store.close().unwrap();
    let backend = EncryptedBackend::new(SqliteBackend::new(&file), &key);
    for session in &sessions[22..40] {
        assert!(block_on(backend.erase(session.id())).unwrap());
    }
    for session in &sessions[..20] {
        assert!(block_on(backend.erase(session.id())).unwrap());
        assert_eq!(block_on(backend.disinherit(session.id())).unwrap(), 1);
    }
    // While others still have the file open as well.
    let after = wrapped_keys(&file);
    assert_eq!((before.len(), after.len()), (60 + 2 * 20, 20 + 20));
    for (name, key) in before.iter().filter(|known| !after.contains(known)) {
        assert_eq!(files_with(&folder, key.as_bytes()), [] as [PathBuf; 0], "a key of {name}");
    }
    drop((backend, store, sessions));
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
    block_on(store.repair(&id, Mode::Apply)).unwrap();
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

#[test]
fn a_fork_of_a_fork_reads_what_it_inherits_after_the_first_ones_key_is_erased() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let mut session = begin(&store, "first");
    let first = session.id().clone();
    for (number, id) in [(2, "second"), (3, "third")] {
        session = block_on(session.fork(Fork::default().id(id.parse().unwrap()))).unwrap();
        say(&session, number);
    }
    store.close().unwrap();
    block_on(EncryptedBackend::new(FileBackend::new(&folder), &key).erase(&first)).unwrap();
    let store = store_at(&folder, &key);
    assert_eq!(texts(&block_on(store.open(&"third".parse().unwrap())).unwrap()).len(), 3);
}

#[test]
fn a_session_that_was_purged_and_begun_again_is_written_with_its_new_key() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let (one, other) = (store_at(&folder, &key), store_at(&folder, &key));
    let session = begin(&one, "talk");
    block_on(other.delete(session.id())).unwrap();
    block_on(other.purge(session.id())).unwrap();
    begin(&other, "talk");
    // At once, and where the new one ends too. Once, this was sealed with the key of the first, which nobody has any more.
    let _ = block_on(async { session.append(entry(2)).await?.await });
    let store = store_at(&folder, &key);
    let there = texts(&block_on(store.open(&"talk".parse().unwrap())).unwrap());
    assert!(!there.is_empty(), "{there:?}");
}

#[test]
fn a_key_whose_session_was_never_begun_or_is_gone_does_not_stay() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    begin(&store, "other");
    let keys = || fs::read_dir(folder.join("keys")).unwrap().map(|entry| entry.unwrap().path());
    assert_eq!(keys().count(), 2);
    // A purge that was interrupted between the log and its key.
    let inner = FileBackend::new(&folder);
    assert!(block_on(inner.remove(&Target::Session(session.id().clone()))).unwrap());
    block_on(store.gc(&Cleaning::default())).unwrap();
    assert_eq!(keys().count(), 2, "somebody may just be about to begin it");
    let yesterday = std::time::SystemTime::now() - std::time::Duration::from_secs(24 * 3600);
    keys().for_each(|path| fs::File::open(path).unwrap().set_modified(yesterday).unwrap());
    assert_eq!(block_on(store.gc(&Cleaning::default())).unwrap().leftovers, 1);
    assert_eq!(keys().count(), 1);
    assert_eq!(texts(&block_on(store.open(&"other".parse().unwrap())).unwrap()).len(), 1);
    // One that was not leaves nothing that could be used either.
    block_on(store.purge(&"other".parse().unwrap())).unwrap();
    let left: Vec<String> = keys().map(|path| fs::read_to_string(path).unwrap()).collect();
    assert_eq!(left, [r#"{"version":1,"leaving":true}"#]);
}

#[test]
fn a_session_that_is_being_removed_is_not_added_to_and_can_be_purged_by_the_next() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    let document = fs::read_dir(folder.join("keys")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&document).unwrap();
    fs::write(&document, text.replace(r#""version":1,"#, r#""version":1,"leaving":true,"#)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(150));
    let refused = block_on(async { session.append(entry(2)).await?.await });
    assert!(matches!(refused, Err(Error::Gone(_))), "{refused:?}");
    let log = LogKey::new(session.id().clone(), LogName::Transcript);
    let line = Line::new(&entry(3), Stamp { position: 0, ..line_of(&store, &session).stamp().clone() });
    let refused = block_on(store.backend().append(&log, 0, &[line], Durability::Synced));
    assert!(matches!(refused, Err(Error::Gone(_))), "{refused:?}");
    let store = store_at(&folder, &key);
    assert_eq!(texts(&block_on(store.open(session.id())).unwrap()).len(), 1, "what there is can be read");
    assert!(block_on(store.purge(session.id())).unwrap());
    begin(&store, "talk");
    assert_eq!(texts(&block_on(store.open(session.id())).unwrap()).len(), 1);
}

/// Whoever cleared an interrupted import away said twice that it goes; the second time, nothing could be added any more, and
/// the session could not be imported.
#[test]
fn an_import_that_was_interrupted_while_it_cleared_another_away_can_be_made_again() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let bundle = folder.join("bundle");
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    say(&session, 2);
    block_on(store.export(session.id(), &mut fs::File::create(&bundle).unwrap())).unwrap();
    let (import, id) = (
        |store: &Store, id: &SessionId| block_on(store.import_bundle(&bundle, Some(id.clone()))),
        id("copy"),
    );
    import(&store, &id).unwrap();
    store.close().unwrap();
    // Only half of it has arrived.
    let copy = folder.join("sessions/copy");
    let log = fs::read(copy.join("messages.jsonl")).unwrap();
    let lines: Vec<&[u8]> = log.split_inclusive(|byte| *byte == b'\n').collect();
    fs::write(copy.join("messages.jsonl"), lines[..lines.len() - 1].concat()).unwrap();
    for cache in ["metadata.json", "messages.ids"] {
        drop(fs::remove_file(copy.join(cache)));
    }
    // There is no place to put it aside, so that it stays when it was said to go.
    let trash = folder.join("trash");
    drop(fs::remove_dir_all(&trash));
    fs::write(&trash, "").unwrap();
    assert!(import(&store_at(&folder, &key), &id).is_err());
    fs::remove_file(&trash).unwrap();
    let store = store_at(&folder, &key);
    import(&store, &id).unwrap();
    assert_eq!(texts(&block_on(store.open(&id)).unwrap()).len(), 2);
}

fn id(text: &str) -> SessionId {
    text.parse().unwrap()
}

fn line_of(store: &Store, session: &Session) -> Line {
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    block_on(store.backend().read(&log, From::Last, 1)).unwrap().lines.remove(0)
}

#[test]
fn no_flipped_bit_of_a_log_changes_what_is_read_whether_sums_or_tags_are_checked() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    block_on(async { session.append_all(vec![entry(2), entry(3)]).await.unwrap().await.unwrap() });
    say(&session, 4);
    let log = LogKey::new(session.id().clone(), LogName::Messages);
    let read = |max_bytes: usize| {
        let backend = EncryptedBackend::new(FileBackend::new(&folder), &key);
        block_on(backend.read(&log, From::Position(0), max_bytes))
    };
    let whole = read(usize::MAX).unwrap();
    assert_eq!((whole.lines.len(), &whole), (5, &read(4 << 20).unwrap()));
    store.close().unwrap();
    let path = folder.join("sessions/talk/messages.jsonl");
    let bytes = fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 1 << (at % 8);
        fs::write(&path, flipped).unwrap();
        let in_pieces = read(4 << 20).unwrap();
        assert!(!in_pieces.damage.is_empty() || in_pieces.tail.is_some(), "byte {at} is not noticed");
        let at_once = read(usize::MAX).unwrap();
        // A checksum alone may be wrong then, and everything else is proven to be right.
        let is_right = at_once == in_pieces || at_once == whole;
        assert!(is_right, "byte {at}: {at_once:?}");
    }
}

#[test]
fn what_a_repair_kept_of_a_group_can_be_read_with_its_key() {
    let (folder, key) = (folder(), MasterKey::generate().unwrap());
    let store = store_at(&folder, &key);
    let session = begin(&store, "talk");
    block_on(async { session.append_all((2..=4).map(entry).collect()).await.unwrap().await.unwrap() });
    say(&session, 5);
    store.close().unwrap();
    // The first of the group loses its newline, and with that the second one's beginning is lost.
    let log = folder.join("sessions/talk/messages.jsonl");
    let mut bytes = fs::read(&log).unwrap();
    let second = bytes.split(|byte| *byte == b'\n').take(3).map(|line| line.len() + 1).sum::<usize>();
    bytes[second - 1] = b' ';
    bytes[second + 30] ^= 1;
    fs::write(&log, bytes).unwrap();
    let store = store_at(&folder, &key);
    let repair = block_on(store.repair(session.id(), Mode::Apply)).unwrap();
    assert_eq!(repair.rewrites[0].1.lost, [3]);
    let said = texts(&block_on(store.open(session.id())).unwrap()).join(" ");
    let found = (1..=5).filter(|number| said.contains(&format!("{SECRET} {number}"))).collect::<Vec<_>>();
    assert_eq!(found, [1, 2, 4, 5]);
}
