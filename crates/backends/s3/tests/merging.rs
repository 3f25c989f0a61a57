//! Parts that are merged while others read, write, merge and die.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use pollster::block_on;
use rethread_s3::S3Backend;
use rethread_store::Line;
use rethread_store::backend::{Append, Backend as _, Chunk, Durability, From, LogKey, Position, Target};
use rethread_testkit::{Mishap, S3};

use crate::kit::{Place, append, line, messages, names, sized, whole};

/// So many appends of bulky records make a part.
const FULL: Position = 32;

/// Returns a record of which so many make a part.
fn bulky(at: Position, tag: &str) -> Line {
    sized(at, &format!("{tag}{at}"), 9_000)
}

/// Appends one record wherever the log ends, and returns its position.
fn append_somewhere(backend: &S3Backend, log: &LogKey, at: &mut Position, tag: &str) -> Position {
    loop {
        match block_on(backend.append(log, *at, &[bulky(*at, tag)], Durability::Synced)).unwrap() {
            Append::Done { .. } => {
                *at += 1;
                return *at - 1;
            }
            Append::Moved { next } => *at = next,
            part @ Append::Part { .. } => panic!("{part:?}"),
        }
    }
}

#[test]
fn whoever_reads_while_parts_are_merged_misses_nothing_and_sees_nothing_twice() {
    let Some(place) = Place::new() else { return };
    let (writer, log, over) = (place.backend(), messages("s"), AtomicBool::new(false));
    append(&writer, &log, &[bulky(0, "a")]);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    // One that remembers nothing, and so meets parts that have just been merged into others.
                    let reader = place.backend();
                    let mut next = 0;
                    loop {
                        let chunk = block_on(reader.read(&log, From::Position(next), 100_000)).unwrap();
                        assert_eq!(chunk.damage, []);
                        let positions = chunk.lines.iter().map(|line| line.stamp().position);
                        assert!(positions.eq(next..chunk.next));
                        if chunk.next == next {
                            break;
                        }
                        next = chunk.next;
                    }
                }
            });
        }
        (1..20 * FULL).for_each(|at| append(&writer, &log, &[bulky(at, "a")]));
        over.store(true, Ordering::SeqCst);
    });
    let expected: Vec<_> = (0..20 * FULL).map(|at| format!("a{at}")).collect();
    assert_eq!(names(&whole(&place.backend(), &log).lines), expected);
    let parts = place.names("parts/").len();
    assert!(parts <= 12, "{parts} parts are left of 20");
}

#[test]
fn whoever_knows_of_a_part_that_was_merged_away_looks_again() {
    let Some(place) = Place::new() else { return };
    let (writer, reader, log) = (place.backend(), place.backend(), messages("s"));
    (0..=FULL).for_each(|at| append(&writer, &log, &[bulky(at, "a")]));
    let part = place.names("parts/");
    // It knows how the log ends, and so of the part; it has not read it yet.
    assert_eq!(block_on(reader.read(&log, From::Last, 1)).unwrap().next, FULL + 1);
    append(&writer, &log, &[sized(FULL + 1, "large", 1_100_000)]);
    assert_eq!(block_on(writer.sweep()).unwrap(), 1);
    assert_ne!(place.names("parts/"), part, "another has taken its place");
    let chunk = block_on(reader.read(&log, From::Position(1), 100_000)).unwrap();
    assert_eq!((chunk.lines[0].stamp().position, &chunk.damage[..]), (1, &[][..]));
    assert_eq!(block_on(reader.find(&log, &"a0".parse().unwrap())).unwrap(), Some(0));
}

#[test]
fn of_many_who_merge_at_once_none_loses_what_another_was_told() {
    let Some(place) = Place::new() else { return };
    let log = messages("s");
    let mine: Vec<Vec<Position>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..4)
            .map(|writer| {
                let (place, log) = (&place, &log);
                scope.spawn(move || {
                    let (backend, tag, mut at) = (place.backend(), format!("w{writer}."), 0);
                    (0..60).map(|_| append_somewhere(&backend, log, &mut at, &tag)).collect()
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    let all = whole(&place.backend(), &log);
    assert_eq!((all.lines.len(), all.next, &all.damage[..]), (240, 240, &[][..]));
    for (writer, positions) in mine.into_iter().enumerate() {
        for at in positions {
            assert_eq!(all.lines[at as usize], bulky(at, &format!("w{writer}.")));
        }
    }
}

#[test]
fn a_writer_that_dies_at_any_request_of_a_merge_leaves_a_log_that_goes_on() {
    // The requests of the append that merges: the part, the log's end, and the parts that are no longer needed.
    for lost in 0..3 {
        for mishap in [Mishap::LoseRequest, Mishap::LoseAnswer] {
            let Some(mut place) = Place::new() else { return };
            let log = messages("s");
            let before = place.backend();
            (0..FULL).for_each(|at| append(&before, &log, &[bulky(at, "a")]));
            place.patience = std::time::Duration::from_millis(1);
            // It gives up at once, and is never heard of again.
            let dying = place.backend();
            drop(block_on(dying.read(&log, From::Last, 1)));
            drop(block_on(dying.put_blob(&rethread_store::BlobId::of(b"x"), &mut &b"x"[..])));
            place.way.meet((0..lost).map(|_| None).chain([Some(mishap)]));
            let told = block_on(dying.append(&log, FULL, &[bulky(FULL, "dying")], Durability::Synced));
            drop(dying);
            place.way.meet([]);

            place.patience = std::time::Duration::from_secs(30);
            let next = place.backend();
            let there = whole(&next, &log);
            let is_there = there.next == FULL + 1;
            assert!(is_there || told.is_err(), "{lost} {mishap:?}: it was told {told:?}");
            let end = there.next;
            (end..end + FULL + 10).for_each(|at| append(&next, &log, &[bulky(at, "a")]));
            let all = whole(&place.backend(), &log);
            assert_eq!(
                (all.lines.len() as Position, &all.damage[..]),
                (end + FULL + 10, &[][..]),
                "{lost} {mishap:?}"
            );
            block_on(next.sweep()).unwrap();
            assert_eq!(whole(&place.backend(), &log), all, "{lost} {mishap:?}");
        }
    }
}

#[test]
fn a_writer_that_wakes_up_after_a_sweep_does_not_refer_to_what_was_swept() {
    let Some(place) = Place::new() else { return };
    let (log, other) = (messages("s"), place.backend());
    let way = S3::shared().unwrap().way();
    let asleep = place.backend_by(&way);
    (0..FULL).for_each(|at| append(&asleep, &log, &[bulky(at, "a")]));
    // The part is written; the request that says so is on its way.
    way.meet([None, Some(Mishap::KeepBack)]);
    thread::scope(|scope| {
        let woken = scope.spawn(|| append(&asleep, &log, &[bulky(FULL, "a")]));
        while place.names("parts/").is_empty() {
            thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_eq!(block_on(other.sweep()).unwrap(), 1, "nothing refers to it");
        way.let_through();
        woken.join().unwrap();
    });
    let all = whole(&place.backend(), &log);
    assert_eq!((all.next, &all.damage[..]), (FULL + 1, &[][..]));
    assert_eq!(block_on(other.sweep()).unwrap(), 0);
}

#[test]
fn a_part_that_was_lost_is_named_and_the_others_are_read() {
    let Some(place) = Place::new() else { return };
    let (backend, log) = (place.backend(), messages("s"));
    append(&backend, &log, &[line(0, "a")]);
    append(&backend, &log, &[sized(1, "b", 9_000_000)]);
    append(&backend, &log, &[sized(2, "c", 9_000_000)]);
    append(&backend, &log, &[line(3, "d")]);
    let parts = place.names("parts/");
    assert_eq!(parts.len(), 2, "parts that are large are not merged");
    let size = |name: &String| std::fs::metadata(place.objects.join(name)).unwrap().len();
    let second = parts.iter().min_by_key(|name| size(name)).unwrap();
    std::fs::remove_file(place.objects.join(second)).unwrap();
    let read = whole(&place.backend(), &log);
    assert_eq!(names(&read.lines), ["a", "b", "d"]);
    assert_eq!((read.damage.len(), &read.damage[0].lost), (1, &(2..3)));
    assert!(read.damage[0].to_string().contains(second.as_str()), "{}", read.damage[0]);
    let found = block_on(place.backend().find(&log, &"b".parse().unwrap())).unwrap();
    assert_eq!(found, Some(1));
}

#[test]
fn lines_that_were_damaged_are_named_and_the_others_are_read() {
    let Some(place) = Place::new() else { return };
    let (backend, log) = (place.backend(), messages("s"));
    (0..9).for_each(|at| append(&backend, &log, &[line(at, &format!("u{at}"))]));
    let file = place.objects.join("sessions/s!messages.log");
    let text = std::fs::read_to_string(&file).unwrap();
    let lines = text.lines().enumerate().filter(|(number, _)| *number != 7);
    // The first is what the log says of itself.
    let damaged: String = lines
        .map(|(number, text)| if number == 4 { "x\n".to_owned() } else { format!("{text}\n") })
        .collect();
    std::fs::write(&file, damaged).unwrap();
    let Chunk { lines, damage, next, .. } = whole(&place.backend(), &log);
    let lost: Vec<_> = damage.iter().map(|damage| damage.lost.clone()).collect();
    assert_eq!((names(&lines).join(" ").as_str(), lost, next), ("u0 u1 u2 u4 u5 u7 u8", vec![3..4, 6..7], 9));
}

#[test]
fn a_session_leaves_nothing_behind_and_an_appender_from_before_finds_it_gone() {
    let Some(place) = Place::new() else { return };
    let (backend, other, log) = (place.backend(), place.backend(), messages("s"));
    (0..2 * FULL).for_each(|at| append(&backend, &log, &[bulky(at, "old")]));
    assert!(!place.names("parts/").is_empty());
    assert!(block_on(other.remove(&Target::Session("s".parse().unwrap()))).unwrap());
    assert_eq!(place.names(""), ["documents/format"], "which says whose place it is");
    let late =
        block_on(backend.append(&log, 2 * FULL, &[bulky(2 * FULL, "late")], Durability::Synced)).unwrap();
    assert_eq!(late, Append::Moved { next: 0 });
    assert_eq!(place.names(""), ["documents/format"], "which says whose place it is");
}
