//! Pages of a conversation, with and without an index, while the transcript grows and changes.

use std::fs;

use rethread_transcripts::{History, Message, Transcript};
use serde_json::json;

/// Returns a line of a conversation; an answer is spread over two lines.
fn line(number: usize) -> String {
    let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let (kind, text) = if number.is_multiple_of(3) { ("user", "asked") } else { ("assistant", "said") };
    let entry = json!({
        "parentUuid": number.checked_sub(1).map(uuid), "isSidechain": false, "type": kind, "uuid": uuid(number),
        "timestamp": "2026-02-09T10:00:00.000Z",
        "message": { "role": kind, "id": format!("msg_{}", number / 3),
            "content": [{ "type": "text", "text": format!("{text} {number} ünï {}", "x".repeat(number % 700)) }] },
    });
    format!("{entry}\n")
}

fn shown(messages: &[Message]) -> Vec<String> {
    messages.iter().map(|message| serde_json::to_string(message).unwrap()).collect()
}

#[test]
fn pages_from_either_end_are_the_same_with_and_without_an_index() {
    let folder = tempfile::tempdir().unwrap();
    let (path, index) = (folder.path().join("s.jsonl"), folder.path().join("cache/s.chain"));
    let mut text = String::new();
    for lines in [0, 1, 2, 3, 100, 301] {
        text.extend((text.lines().count()..lines).map(line));
        // A writer is always in the middle of something.
        fs::write(&path, format!("{text}{{\"parentUuid\":\"0000")).unwrap();
        let all = {
            let transcript = Transcript::open(&path).unwrap();
            shown(&transcript.messages(&transcript.active()).unwrap())
        };
        for history in [
            History::open(&path, None),
            History::open(&path, Some(&index)),
            History::open(&path, Some(&index)),
        ] {
            let history = history.unwrap();
            assert_eq!(history.count(), all.len() as u64, "{lines} lines");
            for (from, to) in [(0, 7), (3, 3), (0, 1000), (50, 60), (99, 1000), (500, 600)] {
                let wanted = &all[from.min(all.len())..to.min(all.len())];
                assert_eq!(
                    shown(&history.messages(from as u64..to as u64).unwrap()),
                    wanted,
                    "{lines} lines"
                );
            }
            assert_eq!(shown(&history.last(5).unwrap()), all[all.len().saturating_sub(5)..]);
            assert_eq!(shown(&history.first(5).unwrap()), all[..all.len().min(5)]);
        }
    }
}

#[test]
fn an_index_of_another_or_of_a_damaged_file_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, index) = (folder.path().join("s.jsonl"), folder.path().join("s.chain"));
    let long: String = (0..90).map(line).collect();
    let count = |path| History::open(path, Some(&index)).unwrap().count();
    fs::write(&path, &long).unwrap();
    assert_eq!(count(&path), 60);
    // Rewritten in place, longer than before, with other entries.
    let other: String = (1000..1100).map(line).collect();
    fs::write(&path, &other).unwrap();
    assert_eq!(count(&path), 67);
    fs::write(&path, &long[..long.len() / 2]).unwrap();
    let half = Transcript::open(&path).unwrap().active().message_count();
    assert_eq!(count(&path), half);
    for cut in [0, 7, 95, 100, 2000] {
        let whole = fs::read(&index).unwrap();
        fs::write(&index, &whole[..cut.min(whole.len())]).unwrap();
        assert_eq!(count(&path), half, "cut at {cut}");
    }
    let mut damaged = fs::read(&index).unwrap();
    damaged[40] ^= 1;
    fs::write(&index, damaged).unwrap();
    assert_eq!(count(&path), half);
}

/// A page of an index that never reached the disk before the power went is full of zeroes.
#[test]
fn an_index_that_was_damaged_anywhere_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (path, index) = (folder.path().join("s.jsonl"), folder.path().join("s.chain"));
    let text: String = (0..30).map(line).collect();
    fs::write(&path, &text).unwrap();
    let all = shown(&History::open(&path, Some(&index)).unwrap().first(100).unwrap());
    let whole = fs::read(&index).unwrap();
    let grown: String = (0..40).map(line).collect();
    for at in 0..whole.len() {
        for damaged in
            [&mut |byte: &mut u8| *byte ^= 1, &mut |byte: &mut u8| *byte = 0] as [&mut dyn FnMut(&mut u8); 2]
        {
            let mut bytes = whole.clone();
            bytes[at..].iter_mut().take(64).for_each(damaged);
            fs::write(&index, &bytes).unwrap();
            let history = History::open(&path, Some(&index)).unwrap();
            assert_eq!(shown(&history.first(100).unwrap()), all, "damaged at {at}");
            assert_eq!(history.chain(0..100).unwrap().len(), 30, "damaged at {at}");
        }
    }
    // And what goes on from it does not go on from damage.
    fs::write(&path, &grown).unwrap();
    let transcript = Transcript::open(&path).unwrap();
    let expected = shown(&transcript.messages(&transcript.active()).unwrap());
    for at in (0..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        fs::write(&index, &bytes).unwrap();
        assert_eq!(shown(&History::open(&path, Some(&index)).unwrap().first(100).unwrap()), expected, "{at}");
    }
}

/// A reader that has a file open sees it cut and written anew, and longer than before at the next look.
#[test]
fn a_transcript_that_was_written_anew_is_read_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.jsonl");
    fs::write(&path, (0..30).map(line).collect::<String>()).unwrap();
    let mut transcript = Transcript::open(&path).unwrap();
    fs::write(&path, (1000..1100).map(line).collect::<String>()).unwrap();
    transcript.refresh().unwrap();
    let anew = Transcript::open(&path).unwrap();
    assert_eq!((transcript.all(), transcript.faults()), (anew.all(), anew.faults()));
}

#[test]
fn branches_end_where_the_real_cli_left_or_compacted_them_and_nowhere_else() {
    use rethread_transcripts::BranchReason::{Active, Compacted, Left};
    for fixture in rethread_testkit::Fixture::all() {
        let transcript = Transcript::open(fixture.transcript()).unwrap();
        let ends = transcript.branch_ends();
        let mut reasons: Vec<_> = ends.iter().map(|end| end.reason).collect();
        reasons.sort_unstable_by_key(|reason| *reason as u8);
        let expected = match fixture.name {
            "compacted" => vec![Active, Compacted],
            "resumed_at" | "two_writers" => vec![Active, Left],
            _ => vec![Active],
        };
        assert_eq!(reasons, expected, "{}: {ends:?}", fixture.name);
        let active = ends.iter().find(|end| end.reason == Active).unwrap();
        let last = transcript.messages(&transcript.active()).unwrap().pop().unwrap();
        assert_eq!(Some(&active.uuid), last.uuid.as_ref(), "{}", fixture.name);
    }
}

/// How many bytes this thread has read by system calls, those of this question included.
#[cfg(target_os = "linux")]
fn bytes_read() -> u64 {
    let told = fs::read_to_string("/proc/thread-self/io").unwrap();
    told.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn a_page_from_either_end_of_a_hundred_thousand_lines_costs_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let (path, index) = (folder.path().join("s.jsonl"), folder.path().join("s.chain"));
    let uuid = |number: usize| format!("00000000-0000-4000-8000-{number:012}");
    let line = |number: usize| {
        let parent = number.checked_sub(1).map_or("null".into(), |before| format!("{:?}", uuid(before)));
        format!(
            "{{\"parentUuid\":{parent},\"type\":\"user\",\"uuid\":\"{}\",\"message\":{{\"content\":\"{number}\"}}}}\n",
            uuid(number)
        )
    };
    fs::write(&path, (0..100_000).map(line).collect::<String>()).unwrap();
    // Past the time in which a file may change unseen.
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(60);
    fs::File::options().append(true).open(&path).unwrap().set_modified(before).unwrap();
    drop(History::open(&path, Some(&index)).unwrap());
    let pages: [fn(&History) -> Vec<Message>; 3] =
        [|it| it.first(50).unwrap(), |it| it.last(50).unwrap(), |it| it.messages(50_000..50_050).unwrap()];
    for (page, first) in pages.into_iter().zip([0, 99_950, 50_000]) {
        let before = bytes_read();
        let messages = page(&History::open(&path, Some(&index)).unwrap());
        let read = bytes_read() - before;
        let expected: Vec<String> = (first..first + 50).map(|number| format!("\"{number}\"")).collect();
        let said: Vec<&str> = messages.iter().map(|message| message.content.get()).collect();
        assert_eq!(said, expected);
        assert!((5_000..64 << 10).contains(&read), "{read} bytes were read for the page from {first} on");
    }
}
