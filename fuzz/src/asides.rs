//! Documents that lie beside sessions: whatever they hold, no content that is referred to goes, no copy differs, and no
//! text is made up.

use std::path::Path;
use std::time::Duration;

use rethread_store::backend::{Backend, Expect, Key};
use rethread_store::{BlobId, Cleaning, Entry, Error, MemoryBackend, NewSession, Options, Session, Store};

use super::choices::Choices;
use super::home::{SESSION, entry, run};

const USED: &[u8] = b"somebody refers to this";
const UNUSED: &[u8] = b"nobody refers to this";

/// Replaces such a document, which one the first byte says.
pub fn asides(data: &[u8]) {
    let mut choices = Choices::new(data);
    match choices.byte() % 3 {
        0 => unused_contents(choices.rest()),
        1 => what_was_compared(choices.coin(), choices.rest()),
        _ => memory_of_a_project(choices.rest()),
    }
}

/// The list of contents that nothing refers to.
fn unused_contents(document: &[u8]) {
    let (store, session) = store();
    let [used, unused] = [USED, UNUSED].map(|content| {
        let blob = BlobId::of(content);
        run(store.backend().put_blob(&blob, &mut &*content)).expect("room");
        blob
    });
    let record = format!(r#"{{"id":"c1","changes":[{{"hash":"{used}"}}]}}"#);
    run(session.append_checkpoint(Entry::parse(record).expect("an entry"))).expect("room");
    put(&store, &Key::store("unused").expect("a name"), document);
    let there = |blob: &BlobId| run(store.backend().get_blob(blob, 0..99)).expect("readable").is_some();
    let cleaning = Cleaning { blobs_after: Duration::ZERO, ..Cleaning::default() };
    for _ in 0..2 {
        let cleaned = run(store.gc(&cleaning)).expect("a list that makes no sense is begun anew");
        assert!(cleaned.failed.is_empty(), "{:?}", cleaned.failed);
        assert!(there(&used), "it is referred to");
        // It was put just now, so no list can have known for a day that nobody needs it.
        assert!(there(&unused), "it has its day");
    }
}

/// How far a copy was compared with its original.
fn what_was_compared(goes_on: bool, document: &[u8]) {
    let (from, session) = store();
    let to = Store::new(MemoryBackend::default(), Options::default());
    let copy = || run(from.replicate(session.id(), &to, &mut |_| {}));
    copy().expect("nothing is there yet");
    put(&to, &Key::session(session.id().clone(), "replica").expect("a name"), document);
    if goes_on {
        session.append_and_wait(entry("u2")).expect("room");
    }
    copy().expect("the copy is one");
    let [original, copied] = [&from, &to].map(|store| {
        let session = run(store.load(session.id())).expect("readable").expect("it is there");
        let history = run(session.messages()).expect("readable");
        history.records.iter().map(|record| record.entry.as_bytes().to_vec()).collect::<Vec<_>>()
    });
    assert_eq!(copied, original);
}

/// What an agent wants to remember.
fn memory_of_a_project(document: &[u8]) {
    let (store, _) = store();
    let project = Path::new("/");
    let key = Key::store(&format!("memory/{}", BlobId::of(b"/"))).expect("a name");
    put(&store, &key, document);
    match run(store.project_memory(project)) {
        Ok(memory) => {
            let text = memory.expect("it is there").text;
            let all = run(store.project_memories()).expect("readable");
            assert!(all.iter().all(|(_, memory)| memory.text == text), "{all:?}");
        }
        Err(error) => assert!(matches!(error, Error::Damaged { .. }), "{error}"),
    }
    run(store.set_project_memory(project, "anew", Expect::Any)).expect("it can be replaced");
    let memory = run(store.project_memory(project)).expect("readable").expect("it is there");
    assert_eq!(memory.text, "anew");
}

fn store() -> (Store, Session) {
    let store = Store::new(MemoryBackend::default(), Options::default());
    let session = NewSession::default().id(SESSION.parse().expect("an id"));
    let session = run(store.create(session)).expect("a session");
    session.append_and_wait(entry("u1")).expect("room");
    (store, session)
}

fn put(store: &Store, key: &Key, document: &[u8]) {
    run(store.backend().put(key, document, Expect::Any)).expect("room");
}
