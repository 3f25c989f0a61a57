//! Sessions in two stores: never mixed, and nothing of either lost.

use std::path::Path;

use rethread_store::backend::Expect;
use rethread_store::{Entry, Error, MemoryBackend, NewSession, Options, Session, Store};

use crate::kit::run;

fn say(session: &Session, id: &str, text: &str) {
    let entry = format!(r#"{{"uuid":"{id}","role":"user","content":"{text}"}}"#);
    run(async { session.append(Entry::parse(entry).unwrap()).await?.await }).unwrap();
}

fn stores() -> [Store; 2] {
    [(); 2].map(|()| Store::new(MemoryBackend::default(), Options::default()))
}

/// Once, only the first and the last record were compared, and what came later was added behind a copy that had another
/// entry in the middle.
#[test]
fn copies_that_went_apart_and_end_alike_are_told_apart_before_anything_is_added() {
    let [one, other] = stores();
    let ours = run(one.create(NewSession::default())).unwrap();
    say(&ours, "u1", "hello");
    let id = ours.id().clone();
    run(one.replicate(&id, &other, &mut |_| {})).unwrap();
    let theirs = run(other.open(&id)).unwrap();
    say(&ours, "u2", "what was said here");
    say(&theirs, "u2", "what was said there");
    // From then on both are told the same, as two keepers that follow one transcript would be.
    for number in 3..9 {
        say(&ours, &format!("u{number}"), "and so on");
        say(&theirs, &format!("u{number}"), "and so on");
    }
    say(&ours, "u9", "something new");
    let before = run(theirs.messages()).unwrap();
    let refused = run(one.replicate(&id, &other, &mut |_| {}));
    assert!(matches!(refused, Err(Error::Diverged { position: 2, .. })), "{refused:?}");
    assert_eq!(run(theirs.messages()).unwrap(), before);
}

#[test]
fn a_memory_comes_along_where_there_is_none_and_never_replaces_another() {
    let [one, other] = stores();
    let remember = |store: &Store, project: &str, text: &str| {
        run(store.set_project_memory(Path::new(project), text, Expect::Any)).unwrap();
    };
    remember(&one, "/only-here", "ours");
    remember(&one, "/both", "ours");
    remember(&other, "/both", "theirs");
    assert_eq!(run(one.replicate_memories(&other)).unwrap(), (1, vec!["/both".to_owned()]));
    assert_eq!(run(one.replicate_memories(&other)).unwrap(), (0, vec!["/both".to_owned()]));
    let there = |project: &str| run(other.project_memory(Path::new(project))).unwrap().unwrap().text;
    assert_eq!((there("/only-here").as_str(), there("/both").as_str()), ("ours", "theirs"));
}
