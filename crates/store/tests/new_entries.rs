//! Appends that may be repeated: what the log holds is not added again.

use std::io::Read;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use rethread_store::backend::{
    Append, Backend, Capabilities, Chunk, Document, Durability, Expect, From, Key, Listed, LogKey, Position,
    Put, Space, Target,
};
use rethread_store::{
    BlobId, Entry, EntryId, Error, Line, MemoryBackend, NewSession, OffBackend, Options, Result, Session,
    Store,
};

use crate::kit::{Home, chain_of, conversation, entry_id, message, run, session_id};

fn add(session: &Session, numbers: impl IntoIterator<Item = usize>) -> usize {
    let entries = numbers.into_iter().map(message).collect();
    run(async { session.append_new(entries).await?.await }).unwrap().records.len()
}

#[test]
fn an_append_that_is_repeated_adds_nothing_whoever_repeats_it() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 2);
    assert_eq!(add(&session, [2, 3, 4, 3]), 2, "two of them are there, or come twice");
    assert_eq!(add(&session, [3, 4]), 0);
    let elsewhere = run(home.open().open(&session_id("s"))).unwrap();
    assert_eq!(add(&elsewhere, [1, 4, 5]), 1);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5");
    // Whoever does not ask for it is not kept from saying something twice.
    run(async { session.append(message(5)).await?.await }).unwrap();
    assert_eq!(add(&session, [5]), 0);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4 u5 u5");
}

#[test]
fn an_entry_goes_by_the_name_it_is_given() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 0);
    let nameless = |name: &str| Entry::parse(r#"{"id":"x"}"#).unwrap().with_id(entry_id(name));
    let append = |entries: Vec<Entry>| run(async { session.append_new(entries).await?.await }).unwrap();
    append(vec![nameless("b.0"), nameless("b.1")]);
    append(vec![nameless("b.0"), nameless("b.1"), nameless("c.0")]);
    assert_eq!(chain_of(&session), "b.0 b.1 c.0");
}

#[test]
fn of_many_who_add_the_same_entries_at_once_each_entry_is_added_by_one() {
    let home = Home::new();
    conversation(&home.open(), "s", 0);
    let added: usize = std::thread::scope(|scope| {
        let work = |number: usize| {
            // Each as a process of its own would.
            let session = run(home.open().open(&session_id("s"))).unwrap();
            // In another order and in other batches, so that they overlap every which way.
            let mut numbers: Vec<usize> = (1..=120).collect();
            numbers.rotate_left(number * 30);
            numbers.chunks(3 + number).map(|part| add(&session, part.iter().copied())).sum::<usize>()
        };
        let all: Vec<_> = (0..4).map(|number| scope.spawn(move || work(number))).collect();
        all.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let chain = chain_of(&run(home.open().open(&session_id("s"))).unwrap());
    let mut ids: Vec<&str> = chain.split(' ').collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!((added, chain.split(' ').count(), ids.len()), (120, 120, 120));
}

/// A change of metadata reads the log on its own, and further than the writer had: entries in between were not looked at.
#[test]
fn what_others_added_before_a_change_of_metadata_is_not_added_again() {
    let home = Home::new();
    let session = conversation(&home.open(), "s", 1);
    assert_eq!(add(&session, [2]), 1);
    let elsewhere = run(home.open().open(&session_id("s"))).unwrap();
    assert_eq!(add(&elsewhere, [3]), 1);
    run(session.update(|metadata| metadata.name = Some("n".into()))).unwrap();
    assert_eq!(add(&session, [3, 4]), 1);
    assert_eq!(chain_of(&session), "u1 u2 u3 u4");
}

#[test]
fn a_session_that_was_purged_and_begun_again_holds_nothing_of_before() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    add(&session, [1, 2]);
    run(store.purge(session.id())).unwrap();
    let gone = run(async { session.append_new(vec![message(3)]).await?.await });
    assert!(matches!(gone, Err(Error::Gone(_))), "{gone:?}");
    let again = run(store.create(NewSession::default().id(session_id("s")))).unwrap();
    assert_eq!(add(&again, [1, 2, 3]), 3);
}

// Whoever knew that all of it was there said so without a look, though somebody else had removed the session.
#[test]
fn what_others_have_removed_is_not_said_to_be_there() {
    let home = Home::new();
    let (ours, theirs) = (home.open(), home.open());
    let again =
        |session: &Session| run(async { session.append_new(vec![message(1), message(2)]).await?.await });
    let session = conversation(&ours, "s", 0);
    add(&session, [1, 2]);
    run(theirs.delete(session.id())).unwrap();
    assert!(matches!(again(&session), Err(Error::Trashed(_))));
    run(theirs.restore(session.id())).unwrap();
    assert_eq!(again(&session).unwrap().records.len(), 0, "all of it is there");
    run(theirs.purge(session.id())).unwrap();
    assert!(matches!(again(&session), Err(Error::Gone(_))));
    // One of the same name that is as long is another one.
    let session = conversation(&ours, "t", 0);
    add(&session, [1, 2]);
    run(theirs.purge(session.id())).unwrap();
    conversation(&theirs, "t", 2);
    assert!(matches!(again(&session), Err(Error::Gone(_))));
}

#[test]
fn where_nothing_is_kept_what_is_added_again_is_no_error() {
    let store = Store::on(Arc::new(OffBackend), Options::default());
    let session = run(store.create(NewSession::default())).unwrap();
    add(&session, [1]);
    assert_eq!(add(&session, [1]), 0);
}

#[test]
fn a_log_is_read_for_its_ids_once() {
    let backend = Arc::new(Counting::default());
    let store = Store::on(backend.clone(), Options::default());
    conversation(&store, "s", 200);
    let store = Store::on(backend.clone(), Options::default());
    let session = run(store.open(&session_id("s"))).unwrap();
    add(&session, [200, 201]);
    let before = backend.read.load(Ordering::SeqCst);
    for number in 0..50 {
        add(&session, [number + 1, number + 202]);
    }
    let read = backend.read.load(Ordering::SeqCst) - before;
    assert!(read <= 200, "{read} lines were read for 50 appends to a log of 250");
}

/// An import of many branches read the whole log for each of them once.
#[test]
fn to_go_on_from_an_older_entry_reads_that_entry_and_not_the_log() {
    let backend = Arc::new(Counting::default());
    let store = Store::on(backend.clone(), Options::default());
    let session = conversation(&store, "s", 500);
    let before = backend.read.load(Ordering::SeqCst);
    for number in 0..20 {
        let branch = run(session.at(&entry_id(&format!("u{}", 20 * number + 1)))).unwrap();
        run(async { branch.append(message(600 + number)).await?.await }).unwrap();
    }
    let read = backend.read.load(Ordering::SeqCst) - before;
    assert!(read < 100, "{read} lines were read for 20 branches of a log of 500");
}

/// A session that is open has no cached metadata yet. Each look at one read all that was said in it.
#[test]
fn whoever_looks_at_an_open_session_again_reads_what_came_since() {
    let backend = Arc::new(Counting::default());
    let [ours, theirs] = [(); 2].map(|()| Store::on(backend.clone(), Options::default()));
    let session = conversation(&ours, "s", 500);
    assert_eq!(run(theirs.metadata(session.id())).unwrap().message_count, 500);
    for number in 501..=520 {
        run(async { session.append(message(number)).await?.await }).unwrap();
        let before = backend.read.load(Ordering::SeqCst);
        let metadata = run(theirs.metadata(session.id())).unwrap();
        assert_eq!(metadata.message_count, number as u64);
        assert_eq!(run(run(theirs.open(session.id())).unwrap().metadata()).unwrap(), metadata);
        let read = backend.read.load(Ordering::SeqCst) - before;
        assert!(read < 10, "{read} lines were read for one that is new");
    }
    // Another one of the same name is not taken for it.
    run(theirs.purge(session.id())).unwrap();
    assert!(run(theirs.metadata(session.id())).is_err());
    conversation(&ours, "s", 3);
    assert_eq!(run(theirs.metadata(session.id())).unwrap().message_count, 3);
}

/// Counts the lines that are read.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    inner: MemoryBackend,
    pub(crate) read: AtomicUsize,
}

#[async_trait]
impl Backend for Counting {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    async fn get(&self, key: &Key) -> Result<Option<Document>> {
        self.inner.get(key).await
    }

    async fn put(&self, key: &Key, bytes: &[u8], expect: Expect) -> Result<Put> {
        self.inner.put(key, bytes, expect).await
    }

    async fn append(
        &self,
        log: &LogKey,
        at: Position,
        lines: &[Line],
        durability: Durability,
    ) -> Result<Append> {
        self.inner.append(log, at, lines, durability).await
    }

    async fn read(&self, log: &LogKey, from: From, max_bytes: usize) -> Result<Chunk> {
        let chunk = self.inner.read(log, from, max_bytes).await?;
        self.read.fetch_add(chunk.lines.len(), Ordering::SeqCst);
        Ok(chunk)
    }

    async fn find(&self, log: &LogKey, id: &EntryId) -> Result<Option<Position>> {
        self.inner.find(log, id).await
    }

    async fn put_blob(&self, blob: &BlobId, content: &mut (dyn Read + Send)) -> Result<()> {
        self.inner.put_blob(blob, content).await
    }

    async fn get_blob(&self, blob: &BlobId, range: Range<u64>) -> Result<Option<Bytes>> {
        self.inner.get_blob(blob, range).await
    }

    async fn list(&self, space: Space, after: Option<&str>, limit: usize) -> Result<Vec<Listed>> {
        self.inner.list(space, after, limit).await
    }

    async fn remove(&self, target: &Target) -> Result<bool> {
        self.inner.remove(target).await
    }
}
