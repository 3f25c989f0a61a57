//! Logs that are long enough to be read on several threads.

use rethread_store::backend::{Backend, Damage, From, LogKey, LogName};
use rethread_store::{Entry, FileBackend, Line, Page};

use crate::kit::{Home, conversation, message, run, session_id};

/// Everything that a log says, read in pieces of a size.
fn read(home: &Home, size: usize) -> (Vec<Line>, Vec<Damage>) {
    let (backend, log) = (FileBackend::new(home.root()), LogKey::new(session_id("s"), LogName::Messages));
    let (mut lines, mut damage, mut from) = (Vec::new(), Vec::new(), 0);
    loop {
        let mut chunk = run(backend.read(&log, From::Position(from), size)).unwrap();
        if chunk.next == from {
            return (lines, damage);
        }
        from = chunk.next;
        lines.append(&mut chunk.lines);
        damage.append(&mut chunk.damage);
    }
}

/// What is done to a log's bytes.
type Harm<'a> = &'a dyn Fn(&mut Vec<u8>);

#[test]
fn a_long_log_reads_the_same_at_once_and_in_small_pieces_whatever_is_damaged() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    // One line is longer than what a thread reads at a time.
    let sizes = (0..600).map(|n| if n == 300 { 3 << 20 } else { 100 + n * 7919 % 20_000 });
    let entries = sizes.enumerate().map(|(n, size)| {
        Entry::parse(format!(r#"{{"uuid":"u{n}","role":"user","content":"{}"}}"#, "x".repeat(size))).unwrap()
    });
    for entry in entries {
        drop(run(session.append(entry)).unwrap());
    }
    store.close().unwrap();
    let whole = std::fs::read(home.log(session.id())).unwrap();
    let (middle, third) = (whole.len() / 2, whole.len() / 3);
    let damages: [(&str, Harm<'_>); 6] = [
        ("nothing", &|_| {}),
        ("a flipped bit", &|log| log[middle] ^= 1),
        ("a run of NUL bytes", &|log| log[third..third + 50_000].fill(0)),
        ("a line taken out", &|log| {
            let start = memchr::memchr(b'\n', &log[third..]).unwrap() + third + 1;
            let end = memchr::memchr(b'\n', &log[start..]).unwrap() + start + 1;
            log.drain(start..end);
        }),
        ("two lines glued", &|log| {
            let newline = memchr::memchr(b'\n', &log[third..]).unwrap() + third;
            log.remove(newline);
        }),
        ("a cut end", &|log| log.truncate(log.len() - 10)),
    ];
    for (what, damage) in damages {
        let mut log = whole.clone();
        damage(&mut log);
        std::fs::write(home.log(session.id()), log).unwrap();
        let (at_once, in_pieces) = (read(&home, usize::MAX), read(&home, 64 << 10));
        assert!(at_once.0 == in_pieces.0, "{what}: {} and {}", at_once.0.len(), in_pieces.0.len());
        assert_eq!(at_once.1, in_pieces.1, "{what}");
        assert!(at_once.0.len() >= 580, "{what}: {}", at_once.0.len());
    }
}

/// A search for a position looks at the stamps of a few lines only, and at their checksums only in the end.
#[test]
fn a_stamp_with_another_position_hides_no_line_but_its_own() {
    const COUNT: u64 = 300;
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    for n in 1..COUNT {
        // Where the last line is long, a probe can end at the log's end.
        let text = "x".repeat(if n % 50 == 49 { 60_000 } else { 100 + n as usize * 7919 % 3000 });
        let entry = Entry::parse(format!(r#"{{"uuid":"u{n}","content":"{text}"}}"#)).unwrap();
        drop(run(session.append(entry)).unwrap());
    }
    store.close().unwrap();
    std::fs::remove_file(home.session_folder(session.id()).join("messages.ids")).unwrap();
    let path = home.log(session.id());
    let whole = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let log = LogKey::new(session_id("s"), LogName::Messages);
    for hit in 100..COUNT {
        for wrong in [100, 999] {
            let is =
                lines[hit as usize].replace(&format!(r#""_rt":"1 {hit} "#), &format!(r#""_rt":"1 {wrong} "#));
            std::fs::write(
                &path,
                [&lines[..hit as usize], &[&is], &lines[hit as usize + 1..]].concat().concat(),
            )
            .unwrap();
            for wanted in [hit - 60, hit - 1, hit + 1, hit + 60, COUNT - 1] {
                if wanted >= COUNT || wanted == hit {
                    continue;
                }
                // As a process that has seen nothing of it.
                let chunk = run(FileBackend::new(home.root()).read(&log, From::Position(wanted), 1)).unwrap();
                let found = chunk.lines.first().map(|line| line.stamp().position);
                assert_eq!(found, Some(wanted), "{hit} says that it is {wrong}");
            }
        }
    }
}

/// The entries of a conversation so long are put in line on a thread of their own.
#[test]
fn a_very_long_conversation_is_the_same_at_once_and_page_by_page_and_one_that_only_counts_like_one_line_is_not_taken_for_it()
 {
    const COUNT: usize = 18_000;
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 0);
    (0..COUNT).for_each(|n| drop(run(session.append(message(n))).unwrap()));
    run(store.flush()).unwrap();
    let whole = run(session.messages()).unwrap();
    assert_eq!((whole.records.len(), whole.gaps.len()), (COUNT, 0));
    let mut paged = run(session.page(Page::Last(7_000))).unwrap().records;
    while let Some(first) = paged.first() {
        let before = run(session.page(Page::Before(first.entry.id().clone(), 7_000))).unwrap().records;
        if before.is_empty() {
            break;
        }
        paged.splice(0..0, before);
    }
    assert!(whole.records == paged, "{} and {}", whole.records.len(), paged.len());

    // An entry of another branch comes, and one of this one is lost: there are as many as before.
    let branch = run(session.at(whole.records[9_000].entry.id())).unwrap();
    run(branch.append(message(COUNT))).unwrap().wait().unwrap();
    let back = run(session.at(whole.records[COUNT - 1].entry.id())).unwrap();
    run(back.append(message(COUNT + 1))).unwrap().wait().unwrap();
    store.close().unwrap();
    let log = std::fs::read_to_string(home.log(session.id())).unwrap();
    let lost = log.split_inclusive('\n').nth(5_000).unwrap();
    std::fs::write(home.log(session.id()), log.replacen(lost, "", 1)).unwrap();
    for derived in ["metadata.json", "messages.ids"] {
        std::fs::remove_file(home.session_folder(session.id()).join(derived)).unwrap();
    }
    let found = run(run(home.open().open(session.id())).unwrap().messages()).unwrap();
    let depths: Vec<u64> = found.records.iter().map(|record| record.depth).collect();
    let expected: Vec<u64> = (1..=COUNT as u64 + 1).filter(|depth| *depth != 5_000).collect();
    assert!(depths == expected, "{} entries", depths.len());
    assert_eq!(found.gaps.iter().map(|gap| gap.depths.clone()).collect::<Vec<_>>(), [5_000..=5_000]);
}
