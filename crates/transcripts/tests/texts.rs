//! Text that other programs refuse, and subagents within a session's own file.

use std::fs;

use rethread_testkit::{Fixture, not_in_this_version};
use rethread_transcripts::{ClaudeFolder, FaultKind, Subagent, Transcript};
use serde_json::{Value, json};

use crate::projection::{Said, of_chain};

const ID: &str = "11111111-1111-4111-8111-111111111111";

fn entry(kind: &str, uuid: &str, parent: Option<&str>, sidechain: bool, text: &str) -> String {
    let content = if kind == "user" { json!(text) } else { json!([{ "type": "text", "text": text }]) };
    let message = json!({ "role": kind, "content": content });
    let line = json!({
        "parentUuid": parent, "isSidechain": sidechain, "type": kind, "message": message, "uuid": uuid,
        "timestamp": "2026-02-09T10:00:00.000Z", "sessionId": ID, "cwd": "/work",
    });
    format!("{line}\n")
}

/// Returns a folder of Claude Code's with one session, and where that is.
fn folder(bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("projects/-work").join(format!("{ID}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

#[test]
fn text_that_some_programs_refuse_is_read_and_told_with_its_place() {
    let whole = entry("user", "a", None, false, "a crab \u{1F980}").replace('\u{1F980}', "\\ud83e\\udd80");
    let half = entry("assistant", "b", Some("a"), false, "half of one: HALF").replace("HALF", "\\ud83e");
    let odd = entry("user", "c", Some("b"), false, "latin: LATIN");
    let at = odd.find("LATIN").unwrap();
    let mut bytes = [whole.as_bytes(), half.as_bytes(), &odd.as_bytes()[..at]].concat();
    let latin = bytes.len() as u64;
    bytes.push(0xE9);
    bytes.extend_from_slice(&odd.as_bytes()[at + 5..]);
    let (folder, path) = folder(&bytes);
    let transcript = Transcript::open(&path).unwrap();
    let faults: Vec<_> = transcript.faults().into_iter().map(|fault| (fault.offset, fault.kind)).collect();
    let surrogate = (whole.len() + half.find("\\ud83e").unwrap()) as u64;
    assert_eq!(faults, [(surrogate, FaultKind::LoneSurrogate), (latin, FaultKind::NotUtf8)]);
    assert_eq!(transcript.messages(&transcript.active()).unwrap().len(), 3);

    // A repaired copy is text for everybody, down to the last byte.
    let copy = ClaudeFolder::new(folder.path()).repaired_copy(ID).unwrap();
    let text = fs::read_to_string(&copy.path).unwrap();
    text.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).unwrap()));
    assert_eq!(Transcript::open(&copy.path).unwrap().faults(), []);
    assert!(text.contains("a crab \\ud83e\\udd80") && text.contains("half of one: \\ufffd"), "{text}");
    assert_eq!(fs::read(&path).unwrap(), bytes, "the damaged one is as it was");
}

#[test]
fn subagents_within_the_main_file_are_offered_each_on_its_own() {
    let lines = [
        entry("user", "a", None, false, "go"),
        entry("user", "s1", None, true, "look here"),
        entry("user", "t1", None, true, "look there"),
        entry("assistant", "s2", Some("s1"), true, "nothing here"),
        entry("assistant", "t2", Some("t1"), true, "something there"),
        entry("assistant", "b", Some("a"), false, "done"),
    ];
    let (_folder, path) = folder(lines.concat().as_bytes());
    let transcript = Transcript::open(&path).unwrap();
    let told: Vec<(String, Vec<String>)> = transcript
        .sidechains()
        .into_iter()
        .map(|it| (it.uuid, transcript.messages(&it.chain).unwrap().iter().map(|said| said.text()).collect()))
        .collect();
    let expected = [("s1", ["look here", "nothing here"]), ("t1", ["look there", "something there"])];
    let expected = expected.map(|(uuid, said)| (uuid.to_owned(), said.map(str::to_owned).to_vec()));
    assert_eq!(told, expected);
    assert_eq!(transcript.active().len(), 2, "and they take no part in the conversation");
}

/// What a subagent said can be had from every version, wherever that version wrote it.
#[test]
fn the_subagent_of_the_real_cli_is_found_in_its_own_file_or_in_the_main_one() {
    let Some(fixture) = Fixture::named("foreground_agent") else {
        return not_in_this_version("there is no such fixture");
    };
    let session = Transcript::open(fixture.transcript()).unwrap();
    let (files, within) = (Subagent::all_of(session.path()), session.sidechains());
    assert_eq!(files.len() + within.len(), 1);
    let said = match files.first() {
        Some(subagent) => {
            let transcript = Transcript::open(&subagent.path).unwrap();
            of_chain(&transcript, &transcript.active())
        }
        None => of_chain(&session, &within[0].chain),
    };
    let calls = said.iter().filter(|said| matches!(said, Said::Call(_) | Said::Answer(_))).count();
    assert_eq!(calls, 2, "{said:?}");
}

/// Not one of these may be compared with all the others.
#[test]
fn a_large_file_that_is_no_transcript_at_all_is_told_of_line_by_line() {
    let lines = 300_000;
    let (_folder, path) = folder(&b"\xff\xfe no entry\n".repeat(lines));
    let faults = Transcript::open(&path).unwrap().faults();
    assert_eq!(faults.iter().filter(|fault| fault.kind == FaultKind::Garbage).count(), lines);
    assert_eq!(faults.iter().filter(|fault| fault.kind == FaultKind::NotUtf8).count(), 0);
    // One line that broke off within as many blocks, each of which begins as an entry does.
    let blocks = "{\"type\":\"text\",\"text\":\"x\"},".repeat(lines);
    let torn =
        format!("{{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"u\",\"message\":{{\"content\":[{blocks}");
    fs::write(&path, torn).unwrap();
    let faults = Transcript::open(&path).unwrap().faults();
    let kinds: Vec<_> = faults.into_iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::TornTail, FaultKind::NothingReadable]);
}
