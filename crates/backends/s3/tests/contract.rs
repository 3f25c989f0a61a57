//! The suite that every backend passes.

use pollster::block_on;
use rethread_store::{Cleaning, Entry, Filter, NewSession, SessionId, conformance};

use crate::kit::{Place, ids};

#[test]
fn the_contract_of_a_backend_holds() {
    if Place::new().is_none() {
        return;
    }
    block_on(conformance::backend(|| Place::new().unwrap().backend()));
}

#[test]
fn the_contract_holds_between_two_handles() {
    if Place::new().is_none() {
        return;
    }
    block_on(conformance::handles(|| {
        let place = Place::new().unwrap();
        (place.backend(), place.backend())
    }));
}

#[test]
fn sessions_with_the_longest_names_are_listed_read_and_removed_like_any_other() {
    let Some(place) = Place::new() else { return };
    let names = ["a".to_owned(), "b".repeat(128), format!("{}c", "b".repeat(127)), "c".to_owned()];
    let names = names.map(|name| name.parse::<SessionId>().unwrap());
    let store = place.store();
    for id in &names {
        let session = block_on(store.create(NewSession::default().id(id.clone()))).unwrap();
        // Enough for parts to be merged.
        for number in 0..40 {
            let entry = Entry::parse(format!(r#"{{"uuid":"u{number}","text":"{}"}}"#, "x".repeat(2_000)));
            block_on(async { session.append(entry.unwrap()).await.unwrap().await }).unwrap();
        }
    }
    store.close().unwrap();
    let store = place.store();
    let listed = || {
        let listing = block_on(store.list(&Filter::everything())).unwrap();
        assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
        let mut listed: Vec<_> = listing.sessions.into_iter().map(|it| it.session_id).collect();
        listed.sort();
        listed
    };
    assert_eq!(listed(), names);
    for id in &names {
        let session = block_on(store.open(id)).unwrap();
        assert_eq!(ids(&session), (0..40).map(|number| format!("u{number}")).collect::<Vec<_>>());
        assert!(block_on(store.verify(id)).unwrap().is_ok());
    }
    assert!(block_on(store.purge(&names[1])).unwrap());
    assert!(block_on(store.gc(&Cleaning::default())).unwrap().failed.is_empty());
    assert_eq!(listed(), [&names[..1], &names[2..]].concat());
    assert_eq!(ids(&block_on(store.open(&names[2])).unwrap()).len(), 40);
}
