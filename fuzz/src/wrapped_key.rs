//! The key of an encrypted session, as it lies in the store: whatever stands there, nobody reads what was not written.

use std::sync::Arc;

use rethread_encrypted::{EncryptedBackend, MasterKey};
use rethread_store::backend::{Backend, Expect, Key, Space};
use rethread_store::{Entry, Error, Filter, MemoryBackend, NewSession, Options, Store};

use super::choices::Choices;
use super::home::{SESSION, entry, run};

/// Replaces the key of a session, or changes bytes of it.
pub fn wrapped_key(data: &[u8]) {
    let (inner, master) = (Arc::new(MemoryBackend::default()), MasterKey::generate().expect("random bytes"));
    let id = SESSION.parse().expect("an id");
    let store = open(&inner, &master);
    let session = run(store.create(NewSession::default().id(id))).expect("a session");
    session.append_and_wait(entry("u1")).expect("room");
    store.close().expect("nothing waits");

    let key = key_of(&inner);
    let written = run(inner.get(&key)).expect("readable").expect("it was just listed").bytes;
    let changed = changed(&written, Choices::new(data));
    run(inner.put(&key, &changed, Expect::Any)).expect("room");

    let store = open(&inner, &master);
    match run(store.load(session.id())) {
        Ok(Some(session)) => match run(session.messages()) {
            Ok(history) => {
                let read: Vec<&[u8]> = history.entries().map(Entry::as_bytes).collect();
                assert_eq!(read, [entry("u1").as_bytes()], "nothing but what was written");
            }
            Err(error) => is_told(&error),
        },
        // One that says it is gone is gone.
        Ok(None) => assert_ne!(changed, written, "it was there"),
        Err(error) => is_told(&error),
    }
    drop(session.append_and_wait(entry("u2")));
    run(store.list(&Filter::everything())).expect("one that cannot be read hides no other");
    drop(store.close());
}

fn open(inner: &Arc<MemoryBackend>, master: &MasterKey) -> Store {
    Store::new(EncryptedBackend::new(inner.clone(), master), Options::default())
}

/// Finds the only key there is.
fn key_of(inner: &Arc<MemoryBackend>) -> Key {
    let documents = run(inner.list(Space::Documents, None, usize::MAX)).expect("a list");
    let key = documents.into_iter().find(|listed| listed.name.starts_with("keys/")).expect("a key");
    Key::store(&key.name).expect("its own name")
}

/// Returns something else in its place, or itself with some bytes changed, or cut.
fn changed(written: &[u8], mut choices: Choices<'_>) -> Vec<u8> {
    if choices.coin() {
        return choices.rest().to_vec();
    }
    let mut bytes = written.to_vec();
    while !choices.is_empty() {
        let at = choices.below(bytes.len());
        match choices.byte() {
            0 => bytes.truncate(at),
            byte => bytes.iter_mut().skip(at).take(1).for_each(|there| *there ^= byte),
        }
    }
    bytes
}

/// What is wrong is said, and nothing is taken for a failure of the disk.
fn is_told(error: &Error) {
    assert!(!matches!(error, Error::Io { .. } | Error::SessionNotFound(_)), "{error}");
}
