//! Sessions that leave a store as one file and come back.
#![expect(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, LogName,
    Position, Put, Space, Target,
};
use rethread_store::{
    Archive, BlobId, Cleaning, Entry, Error, Filter, Fork, Kind, Line, MemoryBackend, NewSession, Options,
    Result, Session, SessionId, Stamp, Store,
};
use tempfile::TempDir;

use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id};

/// Bodies that a careless writer would change.
fn odd_bodies() -> Vec<String> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(126), "]".repeat(126));
    let large = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat(1 << 20));
    let odd = [
        "{}",
        "{ }",
        "{\t\"a\" :1.0e0 , \"a\": null }",
        r#"{"_rt":"1 0 - 1 e x 0 00000000"}"#,
        r#"{"end":true,"records":0,"sha256":""}"#,
        r#"{"lone":"\ud83d","escaped":"\u0041\/","raw":"ü 🦀"}"#,
        r#"{"body":{"log":"messages"},"n":123456789012345678901234567890}"#,
    ];
    odd.into_iter().map(String::from).chain([deep, large]).collect()
}

/// A session with everything that a session can have.
fn rich(store: &Store, id: &str) -> Session {
    run(async {
        let session = store.create(NewSession::at("/tmp").id(session_id(id)).name("first")).await.unwrap();
        for n in 1..=4 {
            session.append(message(n)).await.unwrap().await.unwrap();
        }
        let branch = session.at(&entry_id("u2")).await.unwrap();
        for body in odd_bodies() {
            branch.append(Entry::parse(body).unwrap()).await.unwrap().await.unwrap();
        }
        session.select(&entry_id("u4")).await.unwrap();
        session.update(|metadata| metadata.tags = vec!["x".into(), "y".into()]).await.unwrap();
        session.update(|metadata| metadata.name = Some("second".into())).await.unwrap();
        session.archive(Archive::Away).await.unwrap();
        for n in 5..=6 {
            session.append_transcript(message(n)).await.unwrap().await.unwrap();
        }
        session
    })
}

/// Adds a capture, which the crate above writes.
fn capture(store: &Store, id: &SessionId) {
    let entry = Entry::parse(r#"{"id":"c1","changes":[]}"#).unwrap();
    let stamp = Stamp {
        position: 0,
        parent: None,
        depth: 1,
        kind: Kind::Entry,
        id: entry_id("c1"),
        left: 0,
        unsettled: 0,
    };
    let (log, line) = (LogKey::new(id.clone(), LogName::Checkpoints), Line::new(&entry, stamp));
    run(store.backend().append(&log, 0, &[line], Durability::Synced)).unwrap();
}

fn export(store: &Store, id: &SessionId) -> Vec<u8> {
    let mut bundle = Vec::new();
    run(store.export(id, &mut bundle)).unwrap();
    bundle
}

/// The lines between the first, which says when the bundle was made, and the last, which follows from the others.
fn records(bundle: &[u8]) -> Vec<String> {
    let lines: Vec<String> = std::str::from_utf8(bundle).unwrap().lines().map(String::from).collect();
    lines[1..lines.len() - 1].to_vec()
}

/// A file to import from.
struct Bundle {
    folder: TempDir,
}

impl Bundle {
    fn new(content: &[u8]) -> Self {
        let bundle = Self { folder: tempfile::tempdir().unwrap() };
        bundle.replace(content);
        bundle
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("bundle.jsonl")
    }

    fn replace(&self, content: &[u8]) {
        std::fs::write(self.path(), content).unwrap();
    }
}

/// Puts the right last line under lines that were changed by hand.
fn sealed(lines: &[String]) -> Vec<u8> {
    let mut bundle: Vec<u8> = lines.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect();
    let (records, sha256) = (lines.len() - 1, BlobId::of(&bundle));
    bundle.extend(format!("{{\"end\":true,\"records\":{records},\"sha256\":\"{sha256}\"}}\n").bytes());
    bundle
}

fn memory() -> Store {
    Store::new(MemoryBackend::default(), Options::default())
}

#[test]
fn what_was_exported_imported_and_exported_again_has_the_same_lines() {
    let (home, other) = (Home::new(), Home::new());
    let (store, there) = (home.open(), other.open());
    let session = rich(&store, "s");
    capture(&store, session.id());
    let first = export(&store, session.id());
    let imported = run(there.import_bundle(&Bundle::new(&first).path(), None)).unwrap();
    let again = run(there.open(&imported.session_id)).unwrap();

    assert_eq!(records(&export(&there, again.id())), records(&first));
    assert_eq!((imported.records, imported.skipped), (records(&first).len() as u64, 0));
    assert_eq!(run(again.metadata()).unwrap(), run(session.metadata()).unwrap());
    assert_eq!(run(again.all_branches()).unwrap(), run(session.all_branches()).unwrap());
    assert_eq!(chain_of(&again), "u1 u2 u3 u4");
    // As another process sees it, without what this one remembers.
    let fresh = run(other.open().open(again.id())).unwrap();
    assert_eq!(run(fresh.metadata()).unwrap(), run(session.metadata()).unwrap());
    assert!(run(there.verify(again.id())).unwrap().is_ok());
    run(run(fresh.append(message(7))).unwrap().into_future()).unwrap();
    assert_eq!(chain_of(&fresh), "u1 u2 u3 u4 u7");
}

#[test]
fn odd_bodies_survive_export_and_import_byte_for_byte() {
    let (store, there) = (memory(), memory());
    let session = rich(&store, "s");
    run(there.import_bundle(&Bundle::new(&export(&store, session.id())).path(), None)).unwrap();
    let all = run(run(there.open(session.id())).unwrap().all_branches()).unwrap();
    let bodies: Vec<&str> = all[4..].iter().map(|branched| branched.record.entry.as_str()).collect();
    assert_eq!(bodies, odd_bodies());
}

#[test]
fn a_fork_does_not_need_its_parent_after_an_import() {
    let (store, there) = (memory(), memory());
    let parent = conversation(&store, "parent", 5);
    let middle = run(parent.fork(Fork::default().at(entry_id("u4")).id(session_id("middle")))).unwrap();
    run(run(middle.append(message(6))).unwrap().into_future()).unwrap();
    let fork = run(middle.fork(Fork::default().id(session_id("fork")))).unwrap();
    run(run(fork.append(message(7))).unwrap().into_future()).unwrap();
    let early = run(fork.at(&entry_id("u2"))).unwrap();
    run(run(early.append(message(8))).unwrap().into_future()).unwrap();
    run(fork.select(&entry_id("u7"))).unwrap();
    let first = export(&store, fork.id());

    let imported = run(there.import_bundle(&Bundle::new(&first).path(), None)).unwrap();
    assert_eq!((imported.inherited, imported.lost), (5, 0));
    let again = run(there.open(fork.id())).unwrap();
    assert_eq!(run(again.messages()).unwrap().gaps, []);
    assert_eq!(chain_of(&again), "u1 u2 u3 u4 u6 u7");
    assert_eq!(run(again.messages_up_to(&entry_id("u8"))).unwrap().records.len(), 3);
    assert!(run(there.verify(again.id())).unwrap().is_ok());

    let (second, third) = (export(&there, again.id()), memory());
    let own = |bundle: &[u8]| {
        let own = |line: &String| !line.contains(r#""kind":"inherited""#);
        records(bundle).into_iter().filter(own).collect::<Vec<_>>()
    };
    assert!(own(&second).starts_with(&own(&first)));
    run(third.import_bundle(&Bundle::new(&second).path(), None)).unwrap();
    assert_eq!(records(&export(&third, again.id())), records(&second));
}

#[test]
fn a_bundle_cut_at_any_byte_is_refused_and_nothing_is_written() {
    let store = memory();
    let whole = export(&store, conversation(&store, "s", 2).id());
    let (there, bundle) = (memory(), Bundle::new(b""));
    for end in 0..whole.len() {
        bundle.replace(&whole[..end]);
        let refused = run(there.import_bundle(&bundle.path(), None));
        assert!(matches!(refused, Err(Error::BadImport { .. })), "cut at {end}: {refused:?}");
    }
    assert_eq!(run(there.backend().list(Space::Sessions, None, 9)).unwrap(), []);
    assert_eq!(run(there.backend().list(Space::Documents, None, 9)).unwrap(), []);
}

#[test]
fn a_bundle_with_any_bit_flipped_is_refused_and_nothing_is_written() {
    let store = memory();
    let whole = export(&store, conversation(&store, "s", 1).id());
    let (there, bundle) = (memory(), Bundle::new(b""));
    for bit in 0..whole.len() * 8 {
        let mut altered = whole.clone();
        altered[bit / 8] ^= 1 << (bit % 8);
        bundle.replace(&altered);
        let refused = run(there.import_bundle(&bundle.path(), None));
        assert!(matches!(refused, Err(Error::BadImport { .. })), "bit {bit}: {refused:?}");
    }
    assert_eq!(run(there.backend().list(Space::Sessions, None, 9)).unwrap(), []);
}

#[test]
fn a_bundle_that_was_put_together_wrongly_is_refused() {
    let store = memory();
    let whole = export(&store, conversation(&store, "s", 3).id());
    let lines: Vec<String> = std::str::from_utf8(&whole).unwrap().lines().map(String::from).take(5).collect();
    let with = |change: &dyn Fn(&mut Vec<String>)| {
        let mut lines = lines.clone();
        change(&mut lines);
        sealed(&lines)
    };
    let wrong = [
        ("no creation", with(&|lines| drop(lines.remove(1)))),
        ("a record missing", with(&|lines| drop(lines.remove(3)))),
        ("a record twice", with(&|lines| lines.insert(3, lines[3].clone()))),
        ("a parent that comes later", with(&|lines| lines[3] = lines[3].replace("parent\":1", "parent\":2"))),
        (
            "a body that is no object",
            with(&|lines| {
                lines[4] = r#"{"log":"messages","kind":"entry","position":3,"parent":2,"depth":3,"id":"u3","body":7}"#.into()
            }),
        ),
        ("an id with a space", with(&|lines| lines[4] = lines[4].replace("\"id\":\"u3\"", "\"id\":\"u 3\""))),
        (
            "an inherited entry out of nowhere",
            with(&|lines| {
                lines.insert(1, r#"{"log":"messages","kind":"inherited","position":null,"parent":null,"depth":1,"id":"x","body":{}}"#.into());
            }),
        ),
        ("a newer format", with(&|lines| lines[0] = lines[0].replace("\"version\":1", "\"version\":2"))),
    ];
    for (what, bundle) in wrong {
        let there = memory();
        let refused = run(there.import_bundle(&Bundle::new(&bundle).path(), None));
        assert!(matches!(refused, Err(Error::BadImport { .. })), "{what}: {refused:?}");
        assert_eq!(run(there.backend().list(Space::Sessions, None, 9)).unwrap(), [], "{what}");
    }
    assert!(run(memory().import_bundle(&Bundle::new(&sealed(&lines)).path(), None)).is_ok());
}

#[test]
fn a_line_of_an_unknown_kind_is_skipped_and_counted() {
    let (store, there) = (memory(), memory());
    let session = conversation(&store, "s", 2);
    let whole = export(&store, session.id());
    let mut lines: Vec<String> =
        std::str::from_utf8(&whole).unwrap().lines().map(String::from).take(4).collect();
    lines.insert(1, r#"{"blob":"ab","position":"any","data":[1]}"#.into());
    lines.push(r#"{"log":"dreams","kind":"entry","position":0}"#.into());
    lines.push(r#"{"log":"messages","kind":"rumour","id":7}"#.into());
    let imported = run(there.import_bundle(&Bundle::new(&sealed(&lines)).path(), None)).unwrap();
    assert_eq!((imported.records, imported.skipped), (3, 3));
    assert_eq!(records(&export(&there, session.id())), records(&whole));
}

#[test]
fn an_id_that_is_taken_is_refused_unless_another_is_given() {
    let store = memory();
    let session = conversation(&store, "s", 2);
    let bundle = Bundle::new(&export(&store, session.id()));
    let refused = run(store.import_bundle(&bundle.path(), None));
    assert!(matches!(refused, Err(Error::SessionExists(id)) if id == *session.id()));
    run(store.delete(session.id())).unwrap();
    let refused = run(store.import_bundle(&bundle.path(), None));
    assert!(matches!(refused, Err(Error::SessionExists(_))), "{refused:?}");

    let copy = run(store.import_bundle(&bundle.path(), Some(session_id("copy")))).unwrap().session_id;
    assert_eq!(chain_of(&run(store.open(&copy)).unwrap()), "u1 u2");
    assert_eq!(run(store.metadata(&copy)).unwrap().session_id, copy);
}

#[test]
fn a_lost_record_leaves_with_the_bundle_and_stays_a_gap() {
    let (home, there) = (Home::new(), memory());
    let session = conversation(&home.open(), "s", 4);
    let path = home.log(session.id());
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("message 2", "massage 2")).unwrap();

    let mut bundle = Vec::new();
    let exported = run(home.open().export(session.id(), &mut bundle)).unwrap();
    let imported = run(there.import_bundle(&Bundle::new(&bundle).path(), None)).unwrap();
    assert_eq!((exported.records, exported.lost, imported.records, imported.lost), (5, 1, 5, 1));
    let history = run(run(there.open(session.id())).unwrap().messages()).unwrap();
    assert_eq!(crate::kit::ids(&history), "u1 u3 u4");
    assert_eq!(history.gaps.iter().map(|gap| gap.depths.clone()).collect::<Vec<_>>(), [2..=2]);
}

#[test]
fn a_fork_of_a_lost_parent_says_what_is_missing_after_an_import() {
    let (store, there) = (memory(), memory());
    let parent = conversation(&store, "parent", 3);
    let fork = run(parent.fork(Fork::default().id(session_id("fork")))).unwrap();
    run(run(fork.append(message(4))).unwrap().into_future()).unwrap();
    run(store.backend().remove(&Target::Session(parent.id().clone()))).unwrap();

    let imported = run(there.import_bundle(&Bundle::new(&export(&store, fork.id())).path(), None)).unwrap();
    assert_eq!((imported.inherited, imported.lost), (3, 3));
    let history = run(run(there.open(fork.id())).unwrap().messages()).unwrap();
    assert_eq!(crate::kit::ids(&history), "u4");
    assert_eq!(history.gaps.iter().map(|gap| gap.depths.clone()).collect::<Vec<_>>(), [1..=3]);
}

#[test]
fn an_import_that_fails_at_any_call_leaves_no_session() {
    let store = memory();
    let session = conversation(&store, "s", 2);
    // More than one batch holds, so that some of it is in before the rest.
    let text = format!(r#"{{"uuid":"large","content":"{}"}}"#, "y".repeat(1 << 20));
    run(run(session.append(Entry::parse(text).unwrap())).unwrap().into_future()).unwrap();
    run(run(session.append(message(4))).unwrap().into_future()).unwrap();
    run(run(session.append_transcript(message(3))).unwrap().into_future()).unwrap();
    capture(&store, session.id());
    let first = export(&store, session.id());
    let bundle = Bundle::new(&first);
    for how in [Failure::Once, Failure::ForGood] {
        let calls = every_call(how, |store| {
            run(store.import_bundle(&bundle.path(), None))?;
            assert!(records(&export(store, session.id())) == records(&first));
            Ok(())
        });
        assert_eq!(calls, 7, "format, first record, a batch, two other logs, the last batch, the cache");
    }
}

#[test]
fn a_session_without_entries_is_not_there_before_its_transcript_is() {
    let store = memory();
    let session = run(store.create(NewSession::default().id(session_id("s")))).unwrap();
    run(run(session.append_transcript(message(1))).unwrap().into_future()).unwrap();
    let first = export(&store, session.id());
    let bundle = Bundle::new(&first);
    every_call(Failure::ForGood, |store| {
        run(store.import_bundle(&bundle.path(), None))?;
        let again = records(&export(store, session.id()));
        assert!(records(&first).iter().all(|line| again.contains(line)));
        Ok(())
    });
}

/// Imports with a failure at each call that changes something, until none is left to fail. Checks after each that
/// there is nothing to be seen and that the next try succeeds. Returns how many calls an import makes.
pub(crate) fn every_call(how: Failure, import: impl Fn(&Store) -> Result<()>) -> usize {
    for at in 0.. {
        let backend = Arc::new(MemoryBackend::default());
        let calls = Arc::new(AtomicUsize::new(0));
        let dying = Dying { inner: backend.clone(), how, at, calls: calls.clone() };
        if import(&Store::new(dying, Options::default())).is_ok() {
            if calls.load(Ordering::SeqCst) <= at {
                return at;
            }
            continue;
        }
        let store = Store::on(backend, Options::default());
        let listed = run(store.list(&Filter::default())).unwrap();
        assert!(listed.sessions.is_empty() && listed.unreadable.is_empty(), "{how:?} at {at}: {listed:?}");
        for id in run(store.ids()).unwrap() {
            assert!(run(store.load(&id)).unwrap().is_none(), "{how:?} at {at}");
            assert!(matches!(run(store.metadata(&id)), Err(Error::SessionNotFound(_))), "{how:?} at {at}");
            assert_eq!(how, Failure::ForGood, "at {at}: something was left behind");
        }
        import(&store).unwrap();
    }
    unreachable!("an import ends")
}

/// How a backend fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// One call fails, the rest succeed.
    Once,
    /// From some call on nothing succeeds, as if the process were killed.
    ForGood,
}

/// A line with part of a content.
fn piece(hash: &BlobId, at: usize, last: bool, body: &str) -> String {
    format!(
        "{{\"log\":\"blobs\",\"kind\":\"piece\",\"hash\":\"{hash}\",\"at\":{at},\"last\":{last},\"body\":\"{body}\"}}"
    )
}

#[test]
fn contents_come_whole_or_the_bundle_is_refused_and_nothing_changes() {
    let home = Home::new();
    let store = home.open();
    conversation(&store, "s", 2);
    let mut bytes = Vec::new();
    run(store.export(&session_id("s"), &mut bytes)).unwrap();
    let mut lines: Vec<String> = String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect();
    lines.pop();
    let (whole, empty) = (BlobId::of(b"hello world"), BlobId::of(b""));
    // "hello " and "world", in base64.
    let (one, two) = ("aGVsbG8g", "d29ybGQ=");
    let import = |pieces: &[String]| {
        let file = home.folder.path().join("bundle");
        std::fs::write(&file, sealed(&[&lines[..], pieces].concat())).unwrap();
        let elsewhere = memory();
        let imported = run(elsewhere.import_bundle(&file, None));
        (imported, elsewhere)
    };
    let good = [piece(&whole, 0, false, one), piece(&whole, 6, true, two), piece(&empty, 0, true, "")];
    let (imported, elsewhere) = import(&good);
    assert_eq!(imported.unwrap().files, 2);
    let found = run(elsewhere.backend().get_blob(&whole, 0..99)).unwrap();
    assert_eq!(found.as_deref(), Some(&b"hello world"[..]));
    for (what, pieces) in [
        ("another hash", vec![piece(&whole, 0, true, one)]),
        ("cut off", vec![piece(&whole, 0, false, one)]),
        ("cut off by another", vec![piece(&whole, 0, false, one), piece(&empty, 0, true, "")]),
        ("from the middle", vec![piece(&whole, 6, true, two)]),
        ("a gap", vec![piece(&whole, 0, false, one), piece(&whole, 7, true, two)]),
        ("no base64", vec![piece(&whole, 0, true, "%%%")]),
        ("no hash", vec![piece(&whole, 0, true, one).replace(&whole.to_string(), "x")]),
    ] {
        let (imported, elsewhere) = import(&pieces);
        assert!(matches!(imported, Err(Error::BadImport { .. })), "{what}: {imported:?}");
        assert!(run(elsewhere.backend().list(Space::Blobs, None, 9)).unwrap().is_empty(), "{what}");
        assert!(run(elsewhere.ids()).unwrap().is_empty(), "{what}");
    }
}

/// A backend whose n-th changing call fails.
#[derive(Debug)]
struct Dying {
    inner: Arc<MemoryBackend>,
    how: Failure,
    at: usize,
    calls: Arc<AtomicUsize>,
}

impl Dying {
    fn change(&self) -> Result<()> {
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let fails = call == self.at || (self.how == Failure::ForGood && call > self.at);
        if fails { Err(Error::NoSpace { action: "write", path: "disk".into() }) } else { Ok(()) }
    }
}

#[async_trait]
impl Backend for Dying {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.inner.get(key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.change()?;
        self.inner.put(key, bytes, expect).await
    }

    async fn append(&self, log: &LogKey, at: Position, lines: &[Line], how: Durability) -> Result<Append> {
        self.change()?;
        self.inner.append(log, at, lines, how).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        self.inner.read(log, from, max_bytes).await
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        self.change()?;
        self.inner.put_blob(blob, content).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        self.inner.get_blob(blob, range).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        self.inner.list(space, after, limit).await
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        self.change()?;
        self.inner.remove(target).await
    }
}

#[test]
fn of_two_imports_at_once_one_gets_through_whole_or_none_does() {
    let store = memory();
    let session = conversation(&store, "s", 2);
    let text = format!(r#"{{"uuid":"large","content":"{}"}}"#, "y".repeat(1 << 20));
    run(run(session.append(Entry::parse(text).unwrap())).unwrap().into_future()).unwrap();
    run(run(session.append(message(3))).unwrap().into_future()).unwrap();
    let first = export(&store, session.id());
    let bundle = Bundle::new(&first);
    for round in 0..10 {
        let home = Home::new();
        let import = || run(home.open().import_bundle(&bundle.path(), None));
        let done = std::thread::scope(|scope| {
            let other = scope.spawn(import);
            [import(), other.join().unwrap()]
        });
        let there = run(home.open().load(session.id())).unwrap();
        assert_eq!(there.is_some(), done.iter().any(Result::is_ok), "round {round}: {done:?}");
        if there.is_some() {
            assert!(records(&export(&home.open(), session.id())) == records(&first), "round {round}");
        }
    }
}

#[test]
fn gc_clears_away_what_a_dead_import_left_and_spares_one_under_way() {
    let half = |id: &str, began: jiff::Timestamp| {
        let note = format!(
            r#"{{"note":"created","at":"2026-01-01T00:00:00Z","set":{{}},"arrival":{{"at":"{began}","last":"x"}}}}"#
        );
        let stamp = Stamp {
            position: 0,
            parent: None,
            depth: 0,
            kind: Kind::Note,
            id: entry_id("n"),
            left: 0,
            unsettled: 0,
        };
        (session_id(id), Line::new(&Entry::parse(note).unwrap(), stamp))
    };
    let store = memory();
    for (id, line) in
        [half("dead", "2026-01-01T00:00:00Z".parse().unwrap()), half("alive", jiff::Timestamp::now())]
    {
        let log = LogKey::new(id, LogName::Messages);
        run(store.backend().append(&log, 0, &[line], Durability::Synced)).unwrap();
    }
    assert_eq!(run(store.gc(&Cleaning::default())).unwrap().purged, [session_id("dead")]);
    assert_eq!(run(store.ids()).unwrap(), [session_id("alive")]);
}

#[test]
fn a_session_that_is_not_there_is_not_exported() {
    let missing = run(memory().export(&session_id("s"), &mut Vec::new()));
    assert!(matches!(missing, Err(Error::SessionNotFound(_))), "{missing:?}");
}
