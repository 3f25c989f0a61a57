//! Damaged transcripts: we read what the real CLI reads, or more, and say what is wrong and where.

use std::fs;

use rethread_testkit::{Fixture, Program, two_at_a_time};
use rethread_transcripts::{ClaudeFolder, FaultKind, Transcript};
use serde_json::{Value, json};

use crate::projection::{Said, of_chain, of_request};

/// A way to damage the transcript of a scenario.
struct Damage {
    name: &'static str,
    scenario: &'static str,
    change: fn(&mut Vec<String>),
    /// What we report, in the order of the file.
    reported: &'static [&'static str],
    /// What we read and the CLI does not.
    more: &'static [&'static str],
}

/// What is done to a session of three prompts, `One`, `Two` and `Three`, or to another one.
const DAMAGES: &[Damage] = &[
    Damage {
        name: "an answer is missing",
        change: |lines| drop(lines.remove(assistant(lines, "2"))),
        reported: &["dangling"],
        ..RESUMED
    },
    Damage {
        name: "an answer is missing, and the next prompt came a minute later",
        change: |lines| {
            lines.remove(assistant(lines, "2"));
            let three = user(lines, "Three");
            for line in &mut lines[three..] {
                *line = timed(line, 120_000);
            }
        },
        reported: &["dangling"],
        // The CLI bridges a gap of some seconds only; whoever reads wants to know what was said.
        more: &["One ⟦[{\"blocks\":[{\"text\":\"1\"}]}]⟧", "1", "Two ⟦[{\"blocks\":[{\"text\":\"2\"}]}]⟧"],
        ..RESUMED
    },
    Damage {
        name: "a prompt is missing",
        change: |lines| drop(lines.remove(user(lines, "Two"))),
        reported: &["dangling"],
        ..RESUMED
    },
    Damage {
        name: "the first prompt is missing",
        change: |lines| drop(lines.remove(user(lines, "One"))),
        reported: &["dangling"],
        ..RESUMED
    },
    Damage {
        name: "the file ends in the middle of the last answer",
        change: |lines| {
            let at = assistant(lines, "3");
            lines.truncate(at + 1);
            let half = lines[at].len() / 2;
            lines[at].truncate(half);
        },
        reported: &["torn"],
        ..RESUMED
    },
    Damage {
        name: "rubbish between two lines",
        change: |lines| {
            let at = user(lines, "Two");
            let rubbish = ["\0".repeat(99), "rubbish".into(), String::new(), "null".into(), "[1]".into()];
            let new = r#"{"type":"brand-new","x":1}"#.to_owned();
            drop(lines.splice(at..at, rubbish.into_iter().chain([new])));
        },
        reported: &["nul", "garbage", "garbage", "garbage"],
        ..RESUMED
    },
    Damage {
        name: "two lines without a newline between them",
        change: |lines| {
            let at = user(lines, "Two");
            let next = lines.remove(at + 1);
            lines[at].push_str(&next);
        },
        reported: &["glued"],
        ..RESUMED
    },
    Damage {
        name: "a broken line runs into the next one",
        change: |lines| {
            let at = assistant(lines, "2");
            lines[at] = lines[at][..60].to_owned() + &lines[at];
        },
        reported: &["glued"],
        more: &["2"],
        ..RESUMED
    },
    Damage {
        name: "zeroes before an answer",
        change: |lines| {
            let at = assistant(lines, "2");
            lines[at] = "\0".repeat(50) + &lines[at];
        },
        reported: &["nul"],
        more: &["2"],
        ..RESUMED
    },
    Damage {
        name: "a line is there twice, with another answer",
        change: |lines| {
            let at = assistant(lines, "2");
            lines.insert(at + 1, lines[at].replace("\"text\":\"2\"", "\"text\":\"two\""));
        },
        reported: &["duplicate"],
        ..RESUMED
    },
    Damage {
        name: "the first entry follows the last",
        change: |lines| {
            let leaf = member(&lines[assistant(lines, "3")], "uuid");
            set_parent(lines, "One", &leaf);
        },
        reported: &["cycle"],
        ..RESUMED
    },
    Damage {
        name: "an entry follows itself",
        change: |lines| {
            let own = member(&lines[user(lines, "Two")], "uuid");
            set_parent(lines, "Two", &own);
        },
        reported: &["cycle"],
        ..RESUMED
    },
    Damage {
        name: "half a surrogate pair",
        change: |lines| {
            let at = assistant(lines, "2");
            lines[at] = lines[at].replace("\"text\":\"2\"", "\"text\":\"2 \\ud83d x\"");
        },
        reported: &["surrogate"],
        ..RESUMED
    },
    Damage {
        name: "the earlier half stands after the later one",
        change: |lines| {
            let (one, two) = (user(lines, "One"), user(lines, "Two"));
            lines.rotate_left(two);
            let moved = lines.len() - two;
            lines[moved..].rotate_left(one);
        },
        ..RESUMED
    },
    Damage {
        name: "old progress within the chain",
        change: |lines| {
            lines.retain(|line| member(line, "type") != "last-prompt");
            let at = user(lines, "Three");
            let parent = member(&lines[at], "parentUuid");
            let progress = json!({
                "type": "progress", "uuid": STRANGER, "parentUuid": parent, "timestamp": "2026-11-15T14:00:00.000Z",
                "isSidechain": false, "data": { "type": "bash_progress" },
            });
            set_parent(lines, "Three", STRANGER);
            lines.insert(at, progress.to_string());
        },
        ..RESUMED
    },
    Damage {
        name: "spaces after each colon",
        change: |lines| {
            for line in lines {
                *line = line.replace("\":", "\": ");
            }
        },
        ..RESUMED
    },
    Damage {
        name: "nobody says which branch is the active one",
        change: |lines| lines.retain(|line| member(line, "type") != "last-prompt"),
        ..BRANCHED
    },
    Damage {
        name: "the branch that was left is named last",
        change: |lines| name_leaf(lines, |lines| member(&lines[assistant(lines, "Left behind")], "uuid")),
        ..BRANCHED
    },
    Damage {
        name: "a stranger is named last",
        change: |lines| name_leaf(lines, |_| STRANGER.into()),
        ..BRANCHED
    },
    Damage {
        name: "an entry in the middle is named last",
        change: |lines| name_leaf(lines, |lines| member(&lines[assistant(lines, "Kept")], "uuid")),
        ..BRANCHED
    },
    Damage {
        name: "a branch's first entry is missing",
        change: |lines| {
            lines.retain(|line| member(line, "type") != "last-prompt");
            lines.remove(user(lines, "Another way"));
        },
        reported: &["dangling"],
        ..BRANCHED
    },
    Damage {
        name: "a subagent's line at the end",
        change: |lines| {
            let mut line: Value = serde_json::from_str(&lines[user(lines, "Another way")]).unwrap();
            line["uuid"] = json!(STRANGER);
            line["isSidechain"] = json!(true);
            line["parentUuid"] = Value::Null;
            lines.push(line.to_string());
        },
        ..BRANCHED
    },
    Damage {
        name: "a compaction without what it kept",
        change: |lines| change_boundary(lines, |kept| kept["preservedMessages"] = Value::Null),
        ..COMPACTED
    },
    Damage {
        name: "a compaction that kept what is not there",
        change: |lines| change_boundary(lines, |kept| kept["preservedMessages"]["uuids"] = json!([STRANGER])),
        ..COMPACTED
    },
    Damage {
        name: "a compaction that says from where to where it kept",
        change: |lines| {
            keep_segment(lines, |lines| [user(lines, "First question"), assistant(lines, "Second answer")])
        },
        ..COMPACTED
    },
    Damage {
        name: "a compaction that kept a prompt and its answer in the middle",
        change: |lines| {
            keep_segment(lines, |lines| [user(lines, "First question"), assistant(lines, "First answer")])
        },
        ..COMPACTED
    },
    Damage {
        name: "a compaction that kept what ends before it begins",
        change: |lines| {
            keep_segment(lines, |lines| [assistant(lines, "Second answer"), user(lines, "First question")])
        },
        ..COMPACTED
    },
    Damage {
        name: "a compaction without its summary",
        change: |lines| drop(lines.remove(boundary(lines) + 1)),
        reported: &["dangling"],
        ..COMPACTED
    },
    Damage {
        name: "a summary without its compaction",
        change: |lines| drop(lines.remove(boundary(lines))),
        reported: &["dangling"],
        ..COMPACTED
    },
    Damage {
        name: "one of three parallel results is missing",
        change: |lines| {
            // The last one is what the conversation goes on from; this is the first.
            let result = lines.iter().position(|line| line.contains("\"tool_use_id\":\"toolu_000000_"));
            lines.remove(result.unwrap());
        },
        ..PARALLEL
    },
    Damage {
        name: "the calls of one message hang on its first line",
        change: |lines| {
            let first = member(&lines[assistant(lines, "All at once.")], "uuid");
            for line in lines.iter_mut().filter(|line| line.contains("\"id\":\"toolu_000000_")) {
                let parent = member(line, "parentUuid");
                *line = line.replacen(&parent, &first, 1);
            }
        },
        ..PARALLEL
    },
];

const RESUMED: Damage = Damage { name: "", scenario: "resumed", change: |_| (), reported: &[], more: &[] };
const BRANCHED: Damage = Damage { scenario: "resumed_at", ..RESUMED };
const COMPACTED: Damage = Damage { scenario: "compacted", ..RESUMED };
const PARALLEL: Damage = Damage { scenario: "parallel_tools", ..RESUMED };
const STRANGER: &str = "12345678-1234-4234-8234-123456789012";

#[test]
fn a_damaged_transcript_is_read_as_the_cli_reads_it_or_better_and_its_repaired_copy_as_we_do() {
    // Older versions read damaged files in other ways, and nobody can resume a session in all of them at once.
    if Program::find().is_none_or(|program| !program.is_at_least("2.1.300")) {
        return rethread_testkit::not_in_this_version("damage is compared with a current Claude Code only");
    }
    two_at_a_time(DAMAGES, check);
}

fn check(damage: &Damage) {
    let fixture = Fixture::named(damage.scenario).unwrap();
    let text = fs::read_to_string(fixture.transcript()).unwrap();
    // The CLI goes by the time between two entries, which must not depend on how busy the machine was.
    let mut lines: Vec<String> = text.lines().enumerate().map(|(at, line)| timed(line, 10 * at)).collect();
    (damage.change)(&mut lines);
    let mut bytes = lines.join("\n").into_bytes();
    if !damage.reported.contains(&"torn") {
        bytes.push(b'\n');
    }
    let id = fixture.adopt(&bytes);
    let transcript = Transcript::open(fixture.home.transcript(&id)).unwrap();
    let copy = ClaudeFolder::new(fixture.home.config()).repaired_copy(&id).unwrap();
    let theirs = of_request(&fixture.resume(&id));
    let mut ours = of_chain(&transcript, &transcript.active());
    let saved = of_request(&fixture.resume(&copy.session_id));
    assert_eq!(saved, ours, "{}, repaired", damage.name);
    let all = ours.len();
    ours.retain(|said| !matches!(said, Said::Text(_, text) if damage.more.contains(&text.as_str())));
    assert_eq!(ours, theirs, "{}", damage.name);
    assert_eq!(all - ours.len(), damage.more.len(), "{}", damage.name);
    let reported: Vec<&str> = transcript.faults().iter().map(|fault| word(&fault.kind)).collect();
    assert_eq!(reported, damage.reported, "{}", damage.name);
}

/// Returns a line of exactly 100 bytes, so that a reader of this can tell places without counting.
fn hundred(uuid: &str, parent: Option<&str>) -> String {
    let entry = json!({ "parentUuid": parent, "type": "user", "uuid": uuid, "message": { "content": "" } });
    let filler = "x".repeat(99 - entry.to_string().len());
    entry.to_string().replace("\"content\":\"", &format!("\"content\":\"{filler}")) + "\n"
}

#[test]
fn each_fault_is_said_to_be_where_it_is() {
    let (a, b, c) = (hundred("a", None), hundred("b", Some("a")), hundred("c", Some("b")));
    let (b_without_end, again) = (b.trim_end(), hundred("b", Some("a")).replace("xx", "yy"));
    let (uuid, glued) = (|uuid: &str| uuid.to_owned(), |recovered| FaultKind::Glued { recovered });
    let cases = [
        (format!("{a}{}", &b[..42]), vec![(100, 42, FaultKind::TornTail)]),
        (format!("{a}{b}{{"), vec![(200, 1, FaultKind::TornTail)]),
        (format!("{a}{b_without_end}{c}"), vec![(100, 198, glued(2))]),
        (format!("{a}{}{b}{c}", &b[..42]), vec![(100, 141, glued(1))]),
        (
            format!("{a}rubbish\r\n\n{b}[1]\n"),
            vec![(100, 7, FaultKind::Garbage), (210, 3, FaultKind::Garbage)],
        ),
        (format!("{a}\0\0\n{b}"), vec![(100, 2, FaultKind::NulRun)]),
        (format!("{a}{b}{c}{again}"), vec![(300, 99, FaultKind::DuplicateUuid { uuid: uuid("b") })]),
        (
            format!("{a}{c}"),
            vec![(100, 99, FaultKind::DanglingParent { uuid: uuid("c"), parent: uuid("b") })],
        ),
        (format!("{a}{}", hundred("b", Some("b"))), vec![(100, 99, FaultKind::Cycle { uuid: uuid("b") })]),
        (format!("{}{b}{c}", hundred("a", Some("c"))), vec![(0, 99, FaultKind::Cycle { uuid: uuid("a") })]),
        (
            format!("{a}{b}oops\n{}{c}{}", hundred("c", Some("gone")), &a[..9]),
            vec![
                (200, 4, FaultKind::Garbage),
                (305, 99, FaultKind::DuplicateUuid { uuid: uuid("c") }),
                (405, 9, FaultKind::TornTail),
            ],
        ),
    ];
    for (text, expected) in cases {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), &text).unwrap();
        let faults = Transcript::open(file.path()).unwrap().faults();
        let found: Vec<_> = faults.into_iter().map(|it| (it.offset, it.length, it.kind)).collect();
        assert_eq!(found, expected, "{text}");
    }
}

/// Returns a line as if it had been written so many milliseconds after ten o'clock.
fn timed(line: &str, milliseconds: usize) -> String {
    let (minute, rest) = (milliseconds / 60_000, milliseconds % 60_000);
    let time = format!("2026-02-09T10:{minute:02}:{:02}.{:03}Z", rest / 1000, rest % 1000);
    match member(line, "timestamp") {
        old if old.is_empty() => line.to_owned(),
        old => line.replace(&old, &time),
    }
}

fn word(kind: &FaultKind) -> &'static str {
    match kind {
        FaultKind::TornTail => "torn",
        FaultKind::NulRun => "nul",
        FaultKind::Glued { .. } => "glued",
        FaultKind::Garbage => "garbage",
        FaultKind::DuplicateUuid { .. } => "duplicate",
        FaultKind::DanglingParent { .. } => "dangling",
        FaultKind::Cycle { .. } => "cycle",
        FaultKind::LoneSurrogate => "surrogate",
        FaultKind::NotUtf8 => "not utf-8",
        _ => "other",
    }
}

fn member(line: &str, name: &str) -> String {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    value[name].as_str().unwrap_or_default().to_owned()
}

fn user(lines: &[String], says: &str) -> usize {
    find(lines, "user", says)
}

fn assistant(lines: &[String], says: &str) -> usize {
    find(lines, "assistant", says)
}

fn find(lines: &[String], kind: &str, says: &str) -> usize {
    let found = lines.iter().position(|line| {
        let value: Value = serde_json::from_str(line).unwrap_or_default();
        let content = &value["message"]["content"];
        let text = content.as_str().or(content[0]["text"].as_str()).unwrap_or_default();
        value["type"] == kind && (text == says || text.starts_with(&format!("{says} ⟦")))
    });
    found.unwrap_or_else(|| panic!("no {kind} says {says}"))
}

fn set_parent(lines: &mut [String], says: &str, parent: &str) {
    let at = user(lines, says);
    let mut line: Value = serde_json::from_str(&lines[at]).unwrap();
    line["parentUuid"] = json!(parent);
    lines[at] = line.to_string();
}

fn name_leaf(lines: &mut Vec<String>, which: fn(&[String]) -> String) {
    let last = lines.iter().rposition(|line| member(line, "type") == "last-prompt").unwrap();
    let mut line: Value = serde_json::from_str(&lines[last]).unwrap();
    lines.retain(|line| member(line, "type") != "last-prompt");
    line["leafUuid"] = json!(which(lines));
    lines.push(line.to_string());
}

fn boundary(lines: &[String]) -> usize {
    lines.iter().position(|line| member(line, "subtype") == "compact_boundary").unwrap()
}

fn change_boundary(lines: &mut [String], change: fn(&mut Value)) {
    let at = boundary(lines);
    let mut line: Value = serde_json::from_str(&lines[at]).unwrap();
    change(&mut line["compactMetadata"]);
    line["compactMetadata"]["preservedSegment"] = Value::Null;
    lines[at] = line.to_string();
}

/// Has the compaction say that it kept what is between two lines, as some do, and not which entries those are.
fn keep_segment(lines: &mut [String], ends: fn(&[String]) -> [usize; 2]) {
    let [head, tail] = ends(lines).map(|at| member(&lines[at], "uuid"));
    let at = boundary(lines);
    let anchor = member(&lines[at + 1], "uuid");
    let mut line: Value = serde_json::from_str(&lines[at]).unwrap();
    line["compactMetadata"]["preservedMessages"] = Value::Null;
    line["compactMetadata"]["preservedSegment"] =
        json!({ "headUuid": head, "anchorUuid": anchor, "tailUuid": tail });
    lines[at] = line.to_string();
}

#[test]
fn a_file_without_a_conversation_says_so_and_where() {
    let title = "{\"type\":\"custom-title\",\"customTitle\":\"x\"}\n";
    for (text, kinds) in
        [("", vec![FaultKind::Empty]), (title, vec![FaultKind::NoConversation]), ("no JSON at all\n", vec![])]
    {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        let faults = Transcript::open(file.path()).unwrap().faults();
        let found: Vec<_> = faults.iter().map(|fault| (fault.offset, fault.kind.clone())).collect();
        match kinds.is_empty() {
            false => {
                assert_eq!(found, kinds.into_iter().map(|kind| (0, kind)).collect::<Vec<_>>(), "{text:?}")
            }
            true => assert!(!found.is_empty(), "{text:?}"),
        }
    }
}

/// The CLI finds "no conversation" there.
#[test]
fn a_last_prompt_that_names_a_subagents_entry_hides_nothing() {
    let entry = |uuid: &str, parent: &str, kind: &str, is_sidechain: bool| {
        format!(
            "{{\"parentUuid\":{parent},\"isSidechain\":{is_sidechain},\"type\":\"{kind}\",\"uuid\":\"{uuid}\",\"message\":{{\"role\":\"{kind}\",\"content\":\"x\"}}}}\n"
        )
    };
    let lines = [
        entry("root", "null", "user", false),
        entry("answer", "\"root\"", "assistant", false),
        entry("side", "\"answer\"", "user", true),
        "{\"type\":\"last-prompt\",\"lastPrompt\":\"x\",\"leafUuid\":\"side\"}\n".to_owned(),
    ];
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines.concat()).unwrap();
    let transcript = Transcript::open(file.path()).unwrap();
    let chain = transcript.active().messages();
    let mut reader = transcript.read(&chain);
    let mut uuids = Vec::new();
    while let Some(entry) = reader.next() {
        uuids.push(entry.unwrap().view().uuid.unwrap().to_string());
    }
    assert_eq!(uuids, ["root", "answer"]);
}
