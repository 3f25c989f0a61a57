//! Answers that never come, requests that come twice, and requests that come too late.

use std::time::Duration;

use pollster::block_on;
use rethread_store::backend::{Append, Backend as _, Durability, Expect, From, Key, Put};
use rethread_testkit::{Mishap, S3};

use crate::kit::{Place, append, entry, ids, line, messages, names, sized, whole};

#[test]
fn an_append_whose_answer_is_lost_is_found_again_and_not_doubled() {
    let Some(place) = Place::new() else { return };
    let (backend, log) = (place.backend(), messages("s"));
    let mut expected = Vec::new();
    for (at, mishap) in (0..).zip(Mishap::PASSING.into_iter().cycle().take(24)) {
        let id = format!("a{at}");
        place.way.meet([Some(mishap)]);
        append(&backend, &log, &[line(at, &id)]);
        let stray = block_on(backend.append(&log, at, &[line(at, "stray")], Durability::Synced)).unwrap();
        assert_eq!(stray, Append::Moved { next: at + 1 }, "another's is not ours: {mishap:?}");
        expected.push(id);
    }
    assert_eq!(names(&whole(&place.backend(), &log).lines), expected);
}

#[test]
fn an_append_whose_answer_is_lost_while_others_go_on_is_found_beneath_theirs() {
    let Some(place) = Place::new() else { return };
    let (other, log) = (place.backend(), messages("s"));
    let way = S3::shared().unwrap().way();
    let one = place.backend_by(&way);
    append(&one, &log, &[line(0, "a")]);
    // The request arrives, its answer does not; the other side is done before the first asks again.
    way.meet([Some(Mishap::LoseAnswer), Some(Mishap::KeepBack)]);
    std::thread::scope(|scope| {
        let ours =
            scope.spawn(|| block_on(one.append(&log, 1, &[line(1, "ours")], Durability::Synced)).unwrap());
        while block_on(other.read(&log, From::Last, 1)).unwrap().next < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        append(&other, &log, &[line(2, "theirs")]);
        way.let_through();
        assert_eq!(ours.join().unwrap(), Append::Done { durability: Durability::Synced, found: Vec::new() });
    });
    assert_eq!(names(&whole(&one, &log).lines), ["a", "ours", "theirs"]);
}

#[test]
fn lines_of_two_writers_that_are_the_same_to_the_byte_are_two_appends() {
    let Some(place) = Place::new() else { return };
    let (other, log) = (place.backend(), messages("s"));
    let way = S3::shared().unwrap().way();
    let one = place.backend_by(&way);
    append(&one, &log, &[line(0, "a")]);
    let same = |at| [line(at, "same")];
    let append_to = |backend: &rethread_s3::S3Backend, at| {
        block_on(backend.append(&log, at, &same(at), Durability::Synced)).unwrap()
    };
    for (at, mishap) in (1..).zip([None, Some(Mishap::LoseRequest), Some(Mishap::Slow)]) {
        // Whoever comes second knows the log as it was, and finds there what it wanted to add.
        assert_eq!(block_on(one.read(&log, From::Last, 1)).unwrap().next, at);
        append(&other, &log, &same(at));
        way.meet([mishap]);
        assert_eq!(append_to(&one, at), Append::Moved { next: at + 1 }, "{mishap:?}");
    }
    for (at, mishap) in (4..).zip([Mishap::LoseAnswer, Mishap::Twice, Mishap::Echo, Mishap::Fail]) {
        assert_eq!(block_on(other.read(&log, From::Last, 1)).unwrap().next, at);
        way.meet([Some(mishap)]);
        append(&one, &log, &same(at));
        assert_eq!(append_to(&other, at), Append::Moved { next: at + 1 }, "{mishap:?}");
    }
    assert_eq!(whole(&place.backend(), &log).lines.len(), 8);
}

#[test]
fn in_any_weather_writers_who_say_the_same_are_each_heard_as_often_as_they_were_told() {
    let Some(place) = Place::new() else { return };
    let log = messages("s");
    append(&place.backend(), &log, &[line(0, "a")]);
    place.way.bad_weather(5);
    let backends = [place.backend(), place.backend()];
    let speak = |backend: &rethread_s3::S3Backend| {
        let (mut at, mut done) = (1, 0);
        while done < 25 {
            match block_on(backend.append(&log, at, &[line(at, "same")], Durability::Synced)).unwrap() {
                Append::Done { .. } => (at, done) = (at + 1, done + 1),
                Append::Moved { next } => at = next,
                part @ Append::Part { .. } => panic!("{part:?}"),
            }
        }
    };
    // Two of them in one process, which have a name in common.
    std::thread::scope(|scope| {
        for backend in [&backends[0], &backends[0], &backends[1]] {
            scope.spawn(move || speak(backend));
        }
    });
    place.way.bad_weather(0);
    let read = whole(&place.backend(), &log);
    assert_eq!((read.lines.len(), read.damage), (76, Vec::new()));
}

#[test]
fn where_an_older_program_has_left_out_who_wrote_what_an_append_is_known_by_its_lines() {
    let Some(place) = Place::new() else { return };
    let (reader, log) = (place.backend(), messages("s"));
    let way = S3::shared().unwrap().way();
    let one = place.backend_by(&way);
    append(&one, &log, &[line(0, "a")]);
    way.meet([Some(Mishap::LoseAnswer), Some(Mishap::KeepBack)]);
    std::thread::scope(|scope| {
        let ours =
            scope.spawn(|| block_on(one.append(&log, 1, &[line(1, "ours")], Durability::Synced)).unwrap());
        while block_on(reader.read(&log, From::Last, 1)).unwrap().next < 2 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let tail = place.objects.join("sessions/s!messages.log");
        let text = std::fs::read_to_string(&tail).unwrap();
        let (before, after) = text.split_once(",\"writers\":").unwrap();
        let (_, after) = after.split_once("]]").unwrap();
        std::fs::write(tail, [before, after].concat()).unwrap();
        way.let_through();
        assert_eq!(ours.join().unwrap(), Append::Done { durability: Durability::Synced, found: Vec::new() });
    });
    append(&one, &log, &[line(2, "b")]);
    assert_eq!(names(&whole(&one, &log).lines), ["a", "ours", "b"]);
}

#[test]
fn a_part_whose_answer_is_lost_is_there_once() {
    let Some(place) = Place::new() else { return };
    let (backend, log) = (place.backend(), messages("s"));
    append(&backend, &log, &[line(0, "a")]);
    for (at, mishap) in (1..).zip(Mishap::PASSING) {
        // So large that it goes to a part of its own: the first request is that part, the second the log's end.
        for mishaps in [[Some(mishap), None], [None, Some(mishap)]] {
            let at = 2 * at - 1 + u64::from(mishaps[0].is_none());
            place.way.meet(mishaps);
            append(&backend, &log, &[sized(at, &format!("a{at}"), 1_100_000)]);
        }
    }
    let read = whole(&place.backend(), &log);
    assert_eq!((read.lines.len(), read.next, read.damage), (13, 13, Vec::new()));
}

#[test]
fn a_document_whose_answer_is_lost_is_ours_and_not_in_conflict_with_us() {
    let Some(place) = Place::new() else { return };
    let backend = place.backend();
    let key = Key::session("s".parse().unwrap(), "lease").unwrap();
    let put = |expect, bytes: &[u8]| match block_on(backend.put(&key, bytes, expect)).unwrap() {
        Put::Done(version) => Expect::Version(version),
        conflict => panic!("{conflict:?}"),
    };
    let mut version = Expect::Absent;
    for (round, mishap) in (0_u8..).zip(Mishap::PASSING.into_iter().cycle().take(18)) {
        place.way.meet([Some(mishap)]);
        version = put(version, &[round]);
        assert_eq!(block_on(place.backend().get(&key)).unwrap().unwrap().bytes[..], [round]);
        place.way.meet([Some(mishap)]);
        version = if round % 2 == 0 { put(Expect::Any, &[round, 1]) } else { version };
    }
}

#[test]
fn a_request_that_comes_after_its_sender_gave_up_is_made_certain_of_and_doubles_nothing() {
    let Some(mut place) = Place::new() else { return };
    place.patience = Duration::from_millis(700);
    let (backend, log) = (place.backend(), messages("s"));
    append(&backend, &log, &[line(0, "a")]);
    place.way.meet([Some(Mishap::KeepBack)]);
    let late = block_on(backend.append(&log, 1, &[line(1, "late")], Durability::Synced));
    assert!(late.is_err_and(|error| error.is_passing()));
    // Whoever gave up looks now, and is told the truth for good.
    let next = block_on(backend.read(&log, From::Last, 1)).unwrap().next;
    assert_eq!(next, 2, "what nobody knew of was sent again");
    // The writer does not know that, and tries it again, just so: it is there, once, and known to be ours.
    append(&backend, &log, &[line(1, "late")]);
    let another = block_on(backend.append(&log, 1, &[line(1, "late")], Durability::Synced)).unwrap();
    assert_eq!(another, Append::Moved { next: 2 }, "it was answered: this is another");
    append(&backend, &log, &[line(2, "b")]);
    place.way.let_through();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(names(&whole(&place.backend(), &log).lines), ["a", "late", "b"]);
}

#[test]
fn a_request_that_comes_after_others_went_on_is_refused() {
    let Some(mut place) = Place::new() else { return };
    place.patience = Duration::from_millis(700);
    let (backend, other, log) = (place.backend(), place.backend(), messages("s"));
    append(&backend, &log, &[line(0, "a")]);
    place.way.meet([Some(Mishap::KeepBack)]);
    let late = block_on(backend.append(&log, 1, &[line(1, "late")], Durability::Synced));
    assert!(late.is_err());
    // The same to the byte, and still another's.
    append(&other, &log, &[line(1, "late")]);
    place.way.let_through();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(block_on(backend.read(&log, From::Last, 1)).unwrap().next, 2);
    let stray = block_on(backend.append(&log, 1, &[line(1, "late")], Durability::Synced)).unwrap();
    assert_eq!(stray, Append::Moved { next: 2 });
    assert_eq!(names(&whole(&backend, &log).lines), ["a", "late"]);
}

#[test]
fn in_any_weather_every_entry_is_there_once_and_in_order() {
    let Some(place) = Place::new() else { return };
    let (store, session) = place.session();
    place.way.bad_weather(4);
    let mut expected = Vec::new();
    for round in 0..60 {
        let ids: Vec<_> = (0..4).map(|number| format!("r{round}.{number}")).collect();
        let tickets: Vec<_> = ids.iter().map(|id| block_on(session.append(entry(id))).unwrap()).collect();
        tickets.into_iter().for_each(|ticket| drop(ticket.wait().unwrap()));
        expected.extend(ids);
    }
    place.way.bad_weather(0);
    assert_eq!(ids(&session), expected);
    store.close().unwrap();
}
