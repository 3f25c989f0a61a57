//! A log whose end was damaged, at every byte and in every way that a crash leaves behind.

use rethread_store::Mode;

use crate::fire::replay::targets;
use crate::kit::{Home, chain_of, conversation, message, run};

/// Damages the last record at every byte, in several ways, and looks what a new process makes of it.
#[test]
fn a_torn_tail_at_every_byte_loses_only_the_record_it_is_in() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 4);
    store.close().unwrap();
    let path = home.log(session.id());
    let whole = std::fs::read(&path).unwrap();
    let last = whole[..whole.len() - 1].iter().rposition(|&byte| byte == b'\n').unwrap() + 1;
    let next = {
        let session = run(home.open().open(session.id())).unwrap();
        run(async { session.append(message(5)).await.unwrap().await }).unwrap();
        std::fs::read(&path).unwrap()[whole.len()..].to_vec()
    };
    for at in last..whole.len() {
        let cut = &whole[..at];
        let zeros = vec![0; whole.len() - at];
        let garbage = vec![b'~'; whole.len() - at];
        let ways = [
            ("cut", cut.to_vec()),
            ("NULs", [cut, &zeros].concat()),
            ("garbage", [cut, &garbage].concat()),
            ("garbage and newline", [cut, &garbage, b"\n"].concat()),
        ];
        for (way, bytes) in ways {
            std::fs::write(&path, &bytes).unwrap();
            let store = home.open();
            let session = run(store.open(session.id())).unwrap();
            // Cut right before its newline, the record lacks nothing that matters.
            let kept = if way == "cut" && at == whole.len() - 1 { "u1 u2 u3 u4" } else { "u1 u2 u3" };
            assert_eq!(chain_of(&session), kept, "{way} at {at}");
            if at > last {
                let report = run(store.verify(session.id())).unwrap();
                assert_eq!(report.is_ok(), kept.ends_with("u4"), "{way} at {at}: verify finds it");
            }
            // The next appends stand on their own lines, and what was there before stays there.
            for n in [8, 9] {
                run(async { session.append(message(n)).await.unwrap().await }).unwrap();
            }
            assert_eq!(chain_of(&session), format!("{kept} u8 u9"), "{way} at {at}");
            assert!(std::fs::read(&path).unwrap().starts_with(&bytes), "{way} at {at}: nothing is cut off");
        }
        // Glued: the record that follows stands on the same line as the torn one. Only a repair can part them.
        std::fs::write(&path, [cut, &next].concat()).unwrap();
        let store = home.open();
        let session = run(store.open(session.id())).unwrap();
        // At its first byte nothing is glued: the record is simply missing, and the way goes on around it.
        let readable = if at == last { "u1 u2 u3 u5" } else { "u1 u2 u3" };
        assert_eq!(chain_of(&session), readable, "glued at {at}");
        assert!(!run(store.verify(session.id())).unwrap().is_ok(), "glued at {at}: it is found");
    }
}

#[test]
fn a_group_that_was_cut_counts_for_nothing_wherever_the_cut_is() {
    let home = Home::new();
    let store = home.open();
    let session = conversation(&store, "s", 2);
    let before = std::fs::read(home.log(session.id())).unwrap().len();
    run(async { session.append_all((10..14).map(message).collect()).await.unwrap().await }).unwrap();
    store.close().unwrap();
    let path = home.log(session.id());
    let whole = std::fs::read(&path).unwrap();
    for at in before..whole.len() {
        std::fs::write(&path, &whole[..at]).unwrap();
        let session = run(home.open().open(session.id())).unwrap();
        let kept = if at == whole.len() - 1 { "u1 u2 u10 u11 u12 u13" } else { "u1 u2" };
        assert_eq!(chain_of(&session), kept, "cut at {at}");
        if at % 7 == 0 || at + 3 > whole.len() {
            run(async { session.append(message(20)).await.unwrap().await }).unwrap();
            assert_eq!(chain_of(&session), format!("{kept} u20"), "cut at {at}");
        }
    }
}

/// Glued lines are the commonest damage there is (claude-code#81843): 21 of 30 bad lines in 10,949 transcripts.
#[test]
fn a_repair_parts_what_is_glued_wherever_the_first_was_cut() {
    let home = targets::Home::default();
    let store = home.store();
    let session = conversation(&store, "s", 5);
    store.close().unwrap();
    let whole = home.files().remove("messages.jsonl").unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let last = lines[..4].concat().len();
    for at in last + 1..last + lines[4].len() {
        home.put("messages.jsonl", &[&whole[..at], lines[5]].concat());
        let store = home.store();
        let done = run(store.repair(session.id(), Mode::Apply)).unwrap();
        // Cut right before its newline, the first of the two is whole as well.
        let both = at == last + lines[4].len() - 1;
        let (lost, salvaged) = if both { (vec![], 2) } else { (vec![4], 1) };
        assert_eq!((&done.rewrites[0].1.lost, done.rewrites[0].1.salvaged), (&lost, salvaged), "cut at {at}");
        assert!(done.after.unwrap().is_ok(), "cut at {at}");
        let chain = chain_of(&run(store.open(session.id())).unwrap());
        assert_eq!(chain, if both { "u1 u2 u3 u4 u5" } else { "u1 u2 u3 u5" }, "cut at {at}");
        store.close().unwrap();
    }
}

/// A power cut in the middle of a record's write can leave all of it but its newline, with NUL bytes behind. No reader takes
/// it, so once somebody has looked it must not come back.
#[test]
fn a_repair_does_not_bring_back_a_record_whose_write_was_never_finished() {
    for tail in [&b"\0"[..], &[0; 700], b"\0\0{\"torn", b"\0\n"] {
        let home = Home::new();
        let store = home.open();
        let session = conversation(&store, "s", 4);
        store.close().unwrap();
        let path = home.log(session.id());
        let mut log = std::fs::read(&path).unwrap();
        assert_eq!(log.pop(), Some(b'\n'));
        log.extend(tail);
        std::fs::write(&path, log).unwrap();
        let chain = || chain_of(&run(home.open().open(session.id())).unwrap());
        assert_eq!(chain(), "u1 u2 u3");
        run(home.open().repair(session.id(), Mode::Apply)).unwrap();
        assert_eq!(chain(), "u1 u2 u3", "{tail:?}");
        run(home.open().open(session.id())).unwrap().append_and_wait(message(5)).unwrap();
        assert_eq!(chain(), "u1 u2 u3 u5");
    }
}
