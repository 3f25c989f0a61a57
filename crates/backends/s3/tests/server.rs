//! What a server must be, and what is in the bucket.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use pollster::block_on;
use rethread_s3::{S3Backend, Settings};
use rethread_store::backend::{Backend as _, Durability, Expect, From, Key, Put, Space};
use rethread_store::{BlobId, Error};
use rethread_testkit::{Access, Garage, Mishap, S3, cannot};

use crate::kit::{Place, entry, ids, line, messages};

fn key() -> Key {
    Key::store("format").unwrap()
}

fn told(error: &dyn std::error::Error) -> String {
    std::iter::successors(Some(error), |error| error.source()).map(|error| format!("{error}: ")).collect()
}

#[test]
fn a_server_that_ignores_conditions_is_refused_at_open_and_before_anything_is_kept() {
    let Some(server) = S3::start(Access::Open) else {
        return cannot("there is no S3 server: scripts/setup s3");
    };
    let all = ["if-match", "if-none-match"];
    for (ignored, named) in
        [(&all[..], "If-None-Match"), (&all[1..], "If-None-Match"), (&all[..1], "If-Match")]
    {
        let place = Place::on(&server);
        block_on(place.backend().put(&key(), b"1", Expect::Any)).unwrap();
        let empty = Place::on(&server);
        for place in [&empty, &place] {
            place.way.ignore(ignored);
            let there = || {
                let found = fs::read_dir(&place.objects).into_iter().flatten();
                found.map(|it| it.unwrap().file_name()).collect::<BTreeSet<_>>()
            };
            let mark = || fs::read(place.objects.join("documents/format")).ok();
            let (before, marked) = (there(), mark());
            let listed = block_on(place.backend().list(Space::Sessions, None, 9)).unwrap_err();
            assert!(told(&listed).contains(&format!("ignores {named},")), "{}", told(&listed));
            assert_eq!(there(), before, "what it was tried with is gone");
            let backend = place.backend();
            let refused =
                block_on(backend.append(&messages("s"), 0, &[line(0, "a")], Durability::Synced)).unwrap_err();
            assert!(told(&refused).contains(&format!("ignores {named},")), "{}", told(&refused));
            assert!(block_on(backend.put(&key(), b"2", Expect::Any)).is_err());
            assert!(block_on(backend.put_blob(&BlobId::of(b"x"), &mut &b"x"[..])).is_err());
            assert_eq!(mark(), marked, "a server is tried with what is there");
        }
        assert_eq!(empty.names(""), Vec::<String>::new());
        assert_eq!(place.names(""), ["documents/format"]);
    }
}

#[test]
fn a_server_that_cannot_be_tried_is_refused_unless_it_only_says_that_we_may_not_write() {
    let (Some(empty), Some(place)) = (Place::new(), Place::new()) else { return };
    block_on(place.backend().put(&key(), b"1", Expect::Any)).unwrap();
    for place in [&empty, &place] {
        let list = || block_on(place.backend().list(Space::Sessions, None, 9));
        for status in ["501 Not Implemented", "400 Bad Request"] {
            place.way.answer_conditions(Some(status));
            let listed = told(&list().unwrap_err());
            assert!(
                listed.contains("refused a request with a condition") && listed.contains(status),
                "{listed}"
            );
            let refused = block_on(place.backend().put(&key(), b"2", Expect::Any)).unwrap_err();
            assert!(told(&refused).contains("refused a request with a condition"), "{}", told(&refused));
        }
        for status in ["401 Unauthorized", "403 Forbidden", "405 Method Not Allowed"] {
            place.way.answer_conditions(Some(status));
            assert!(list().unwrap().is_empty(), "{status}");
            assert!(block_on(place.backend().put(&key(), b"2", Expect::Any)).is_err(), "{status}");
        }
        place.way.answer_conditions(None);
        assert!(list().unwrap().is_empty());
    }
    assert_eq!((empty.names(""), place.names("")), (Vec::new(), vec!["documents/format".to_owned()]));
}

#[test]
fn garage_is_refused_at_open_and_before_anything_is_kept() {
    let Some(garage) = Garage::start() else { return cannot("there is no Garage: scripts/setup garage") };
    let settings = Settings::parse(&format!("s3://{}/team/a", Garage::BUCKET)).unwrap();
    let settings = settings.with_variables(garage.variables());
    let listed = block_on(S3Backend::new(&settings).unwrap().list(Space::Sessions, None, 9)).unwrap_err();
    assert!(told(&listed).contains("ignores If-None-Match,"), "{}", told(&listed));
    let backend = S3Backend::new(&settings).unwrap();
    let refused =
        block_on(backend.append(&messages("s"), 0, &[line(0, "a")], Durability::Synced)).unwrap_err();
    assert!(told(&refused).contains("ignores If-None-Match,"), "{}", told(&refused));
    let kept = block_on(backend.read(&messages("s"), From::Position(0), 99)).unwrap();
    assert!(kept.lines.is_empty(), "{kept:?}");
}

#[test]
fn nothing_is_made_by_reading() {
    let Some(place) = Place::new() else { return };
    let backend = place.backend();
    assert!(block_on(backend.list(Space::Sessions, None, 9)).unwrap().is_empty());
    assert!(block_on(backend.get_blob(&BlobId::of(b"x"), 0..9)).unwrap().is_none());
    // What the server was tried with is gone again; it makes folders of names.
    assert_eq!(fs::read_dir(&place.objects).into_iter().flatten().count(), 0);
    assert_eq!(place.way.requests().iter().filter(|asked| asked.contains("tried")).count(), 3);
}

#[test]
fn many_that_begin_at_once_all_begin() {
    let Some(place) = Place::new() else { return };
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| block_on(place.backend().put(&key(), b"1", Expect::Any)).unwrap());
        }
    });
    assert_eq!(block_on(place.backend().get(&key())).unwrap().unwrap().bytes, "1");
}

/// Once, what should have been refused because the marker is there was tried although it was not, and made it: with nothing
/// in it, so that nobody could use the place any more.
#[test]
fn who_is_refused_while_another_begins_tries_again_and_spoils_nothing() {
    for refused in [1, 40] {
        let Some(place) = Place::new() else { return };
        let backend = place.backend();
        place.way.meet(vec![Some(Mishap::Refuse); refused]);
        let first = block_on(backend.put(&key(), b"1", Expect::Any));
        match refused {
            1 => assert!(matches!(first, Ok(Put::Done(_))), "{first:?}"),
            _ => assert!(matches!(first, Err(Error::Contended(_))), "{first:?}"),
        }
        place.way.meet([]);
        block_on(place.backend().put(&key(), b"2", Expect::Any)).unwrap();
        assert_eq!(block_on(place.backend().get(&key())).unwrap().unwrap().bytes, "2");
    }
}

#[test]
fn a_newer_layout_is_refused_and_a_place_of_another_program_left_alone() {
    let Some(place) = Place::new() else { return };
    block_on(place.backend().put(&key(), b"1", Expect::Any)).unwrap();
    let marker = place.objects.join("documents/format");
    let try_it = |content: &str| {
        fs::write(&marker, content).unwrap();
        let backend = place.backend();
        (
            block_on(backend.get(&key())).unwrap_err(),
            block_on(backend.put(&key(), b"2", Expect::Any)).unwrap_err(),
        )
    };
    let (read, written) = try_it("rethread 2\n");
    assert!(matches!(read, Error::NewerFormat { known: 1, .. }), "{read:?}");
    assert!(matches!(written, Error::NewerFormat { known: 1, .. }), "{written:?}");
    let (read, written) = try_it("a recipe for bread\n");
    assert!(matches!(read, Error::Damaged { .. }) && matches!(written, Error::Damaged { .. }));
    assert_eq!(fs::read_to_string(&marker).unwrap(), "a recipe for bread\n");
}

#[test]
fn a_place_of_an_earlier_version_is_read_and_written_as_it_is() {
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    session.append_and_wait(entry("a")).unwrap();
    store.close().unwrap();
    // It had a marker of its own beside the document.
    fs::write(place.objects.join("rethread"), "rethread 1\n").unwrap();
    let store = place.store();
    let session = block_on(store.open(session.id())).unwrap();
    session.append_and_wait(entry("b")).unwrap();
    store.close().unwrap();
    assert_eq!(ids(&block_on(place.store().open(session.id())).unwrap()), ["a", "b"]);
    assert_eq!(fs::read_to_string(place.objects.join("rethread")).unwrap(), "rethread 1\n");
}

#[test]
fn a_server_that_cannot_be_reached_is_told_after_a_while() {
    let Some(mut place) = Place::new() else { return };
    place.patience = std::time::Duration::from_millis(300);
    let settings = rethread_s3::Settings::parse("s3://nowhere/x").unwrap();
    let mut variables = place.way.variables();
    variables.retain(|(name, _)| name != "AWS_ENDPOINT_URL");
    variables.push(("AWS_ENDPOINT_URL".into(), "http://127.0.0.1:1".into()));
    let mut settings = settings.with_variables(variables);
    settings.patience = place.patience;
    let backend = rethread_s3::S3Backend::new(&settings).unwrap();
    let error = block_on(backend.get(&key())).unwrap_err();
    assert!(error.is_passing() && told(&error).contains("s3://nowhere/x"), "{}", told(&error));
}

#[test]
fn listings_go_on_after_a_thousand_objects() {
    let Some(place) = Place::new() else { return };
    let backend = place.backend();
    block_on(backend.put(&key(), b"1", Expect::Any)).unwrap();
    fs::create_dir_all(place.objects.join("sessions")).unwrap();
    for number in 0..700 {
        for name in ["lease", "messages.log"] {
            fs::write(place.objects.join(format!("sessions/s{number:04}!{name}")), "x").unwrap();
        }
    }
    for (limit, expected) in [(usize::MAX, 700), (600, 600), (3, 3)] {
        let listed = block_on(backend.list(Space::Sessions, None, limit)).unwrap();
        assert_eq!(listed.len(), expected);
        assert_eq!(listed.last().unwrap().name, format!("s{:04}", expected - 1));
    }
    let later = block_on(backend.list(Space::Sessions, Some("s0649"), 100)).unwrap();
    assert_eq!((later.len(), later[0].name.as_str()), (50, "s0650"));
}
