//! Sessions in two stores: never mixed, and nothing of either lost.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rethread_store::backend::{Backend as _, Expect, Key};
use rethread_store::{Cleaning, Entry, Error, MemoryBackend, NewSession, Options, Session, Store};

use crate::kit::run;
use crate::new_entries::Counting;

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

/// A session of some records in one store, and how many records of another a copy of it reads.
struct Copying {
    ours: Session,
    one: Store,
    other: Store,
    read: Arc<Counting>,
}

impl Copying {
    fn of(length: usize) -> Self {
        let read = Arc::new(Counting::default());
        let other = Store::on(read.clone(), Options::default());
        let one = Store::new(MemoryBackend::default(), Options::default());
        let ours = run(one.create(NewSession::default())).unwrap();
        (0..length).for_each(|number| say(&ours, &format!("u{number}"), "something or other"));
        let copying = Self { ours, one, other, read };
        copying.again().unwrap();
        copying
    }

    /// Copies what is new, and returns how many records were read from the other store for it.
    fn again(&self) -> rethread_store::Result<usize> {
        let before = self.read.read.load(Ordering::SeqCst);
        run(self.one.replicate(self.ours.id(), &self.other, &mut |_| {}))?;
        Ok(self.read.read.load(Ordering::SeqCst) - before)
    }

    fn known(&self) -> Key {
        Key::session(self.ours.id().clone(), "replica").unwrap()
    }

    fn is_the_same(&self) -> bool {
        let theirs = run(self.other.open(self.ours.id())).unwrap();
        run(theirs.messages()).unwrap() == run(self.ours.messages()).unwrap()
    }
}

/// Once, whatever both had was read from both again before anything was added.
#[test]
fn a_copy_that_is_brought_up_to_date_is_not_read_again() {
    let copying = Copying::of(300);
    for number in 300..303 {
        say(&copying.ours, &format!("u{number}"), "one more");
        let read = copying.again().unwrap();
        assert!(read < 10, "{read} records were read for one that is new");
    }
    assert!(copying.is_the_same());
}

#[test]
fn a_copy_that_went_on_by_itself_is_refused_whatever_was_known_of_it() {
    let copying = Copying::of(50);
    let theirs = run(copying.other.open(copying.ours.id())).unwrap();
    say(&theirs, "u50", "what was said there");
    say(&copying.ours, "u50", "what was said here");
    say(&copying.ours, "u51", "and more");
    let refused = copying.again();
    assert!(matches!(refused, Err(Error::Diverged { position: 51, .. })), "{refused:?}");
}

#[test]
fn what_is_wrong_about_a_copy_changes_nothing_but_that_all_of_it_is_read() {
    let copying = Copying::of(50);
    let good = run(copying.read.get(&copying.known())).unwrap().unwrap().bytes;
    let good = String::from_utf8(good.to_vec()).unwrap();
    let lies = [
        String::new(),
        "{}".into(),
        good.replace("\"version\":1", "\"version\":2"),
        good.replace("\"next\":51", "\"next\":50"),
        good.replace("\"next\":51", "\"next\":5000"),
        good.replace("\"sha256\":\"", "\"sha256\":\"00"),
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        assert_ne!(lie, good);
        run(copying.read.put(&copying.known(), lie.as_bytes(), Expect::Any)).unwrap();
        say(&copying.ours, &format!("v{number}"), "one more");
        let read = copying.again().unwrap();
        assert!(read > 50 && copying.is_the_same(), "{lie}: {read}");
    }
}

#[test]
fn what_is_known_of_a_copy_goes_with_it_and_is_in_nobodys_way() {
    let copying = Copying::of(5);
    let id = copying.ours.id();
    assert!(run(copying.other.verify(id)).unwrap().is_ok());
    let cleaned = run(copying.other.gc(&Cleaning::default())).unwrap();
    assert!(cleaned.purged.is_empty() && cleaned.failed.is_empty(), "{cleaned:?}");
    assert!(run(copying.read.get(&copying.known())).unwrap().is_some());
    run(copying.other.purge(id)).unwrap();
    assert!(run(copying.read.get(&copying.known())).unwrap().is_none());
}
