//! Files that are derived from a log: whatever they hold, what is read stays the same.

use rethread_store::{Filter, Kind, Metadata, Problem, Scope, Stamp};
use serde_json::{Map, Value};

use super::home::{Home, run};
use super::sample::{self, RECORDS, joined, stamped};
use super::{agreement, soundness};

/// What the whole store's listing is kept in, seen from a session's folder.
const CATALOG: &str = "../../catalog.json";

/// What somebody who opens the session learns of it.
#[derive(Debug, PartialEq)]
struct Seen {
    chain: Vec<String>,
    found: Vec<(String, u64)>,
    metadata: Metadata,
    listed: Vec<Metadata>,
}

/// Replaces a derived file, which one the first byte says, and looks whether anybody sees something else.
pub fn caches(data: &[u8]) {
    let (which, bytes) = data.split_first().unwrap_or((&0, &[]));
    let plain = seen(&home());
    let home = home();
    let names = ["messages.ids", "lock", "metadata.json", "lease.json", CATALOG];
    let name = names[usize::from(*which) % names.len()];
    home.put(name, bytes);
    let mut now = seen(&home);
    let slot = bytes.chunks(8).nth(RECORDS as usize).filter(|slot| slot.len() == 8 && **slot != [0; 8]);
    if let ("messages.ids", Some(_)) = (name, slot) {
        // A slot that names another entry hides the newer of two with the same id: only that one is left out.
        now.found.clone_from(&plain.found);
    }
    assert_eq!(now, plain, "{name} changes nothing");
    let before = agreement::readers_agree(&home);
    soundness::an_append_takes_nothing_away(&home, &before);
    home.put(name, bytes);
    let store = home.store();
    let report = run(store.verify(&home.session())).expect("readable");
    let only_caches = |problem: &Problem| *problem == Problem::Metadata;
    assert!(report.problems.iter().all(only_caches), "{:?}", report.problems);
    store.close().expect("nothing waits");
}

/// The same for metadata whose checksum is right: nobody promises that it is not believed, but nothing may break.
pub fn sealed_metadata(data: &[u8]) {
    let Some(document) = sealed(data) else {
        return;
    };
    let home = home();
    home.put("metadata.json", &document);
    let before = agreement::readers_agree(&home);
    let store = home.store();
    drop(run(store.list(&Filter::everything())));
    drop(run(store.metadata(&home.session())));
    drop(run(store.load(&home.session())));
    soundness::survives(&home);
    let after = agreement::readers_agree(&home);
    let bytes = |wanted: u64| after.iter().find(|(position, _)| *position == wanted).map(|(_, bytes)| bytes);
    for (position, record) in &before {
        assert_eq!(bytes(*position), Some(record), "metadata takes no record away");
    }
}

/// Lists by a catalog whose checksum is right, whatever it says.
pub fn sealed_catalog(data: &[u8]) {
    let home = home();
    let sealed = format!("{{\"check\":\"{:08x}\",", crc32c::crc32c(data));
    home.put(CATALOG, &[sealed.as_bytes(), data].concat());
    let store = home.store();
    let filters = [Filter::default(), Filter::everything(), Filter::trash()];
    for mut filter in filters {
        filter.limit = 1;
        let listing = run(store.list(&filter)).expect("a list");
        filter.after = listing.next;
        run(store.list(&filter)).expect("a list");
    }
    run(store.latest(&Scope::Directory("/".into()))).expect("a list");
    // Whatever it says, a session that was written to since is looked at again.
    home.put("messages.jsonl", &joined(&sample::lines(0)));
    let listed = run(home.store().list(&Filter::everything())).expect("a list").sessions;
    assert_eq!(listed.first().map(|metadata| metadata.entry_count), Some(11));
    store.close().expect("nothing waits");
}

/// Gives a document of metadata the checksum that it should have.
fn sealed(data: &[u8]) -> Option<Vec<u8>> {
    let mut metadata: Map<String, Value> = serde_json::from_slice(data).ok()?;
    metadata.get_mut("_fold")?.as_object_mut()?.remove("check");
    let check = format!("{:08x}", crc32c::crc32c(&serde_json::to_vec(&metadata).ok()?));
    metadata["_fold"]["check"] = check.into();
    serde_json::to_vec(&metadata).ok()
}

/// A session in which an id comes twice: it names the newer entry.
fn home() -> Home {
    let home = Home::default();
    let stamp = Stamp {
        position: RECORDS,
        parent: Some(RECORDS - 1),
        depth: 8,
        kind: Kind::Entry,
        id: "u3".parse().expect("an id"),
        left: 0,
        unsettled: 0,
    };
    let again = stamped(r#"{"uuid":"u3","role":"user","timestamp":"2030-01-02T03:06:00Z"}"#, stamp);
    let mut lines = sample::lines(0);
    lines.push(again.as_bytes().to_vec());
    home.put("messages.jsonl", &joined(&lines));
    home
}

fn seen(home: &Home) -> Seen {
    let store = home.store();
    let listed = run(store.list(&Filter::everything())).expect("a list").sessions;
    let session = run(store.open(&home.session())).expect("the log is whole");
    let history = run(session.messages()).expect("readable");
    let chain = history.entries().map(|entry| entry.id().to_string()).collect();
    let found = (1..RECORDS).filter(|position| ![5, 8].contains(position)).map(|position| {
        let id = format!("u{position}");
        let history = run(session.messages_up_to(&id.parse().expect("an id"))).expect("an entry");
        (id, history.records.last().map_or(0, |record| record.position))
    });
    let found = found.collect();
    run(session.driver()).expect("readable");
    let metadata = run(session.metadata()).expect("readable");
    store.close().expect("nothing waits");
    Seen { chain, found, metadata, listed }
}
