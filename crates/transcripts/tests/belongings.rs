//! What belongs to a session and is not in its transcript: subagents, large outputs, file history.

use std::fs;

use rethread_testkit::{Fixture, not_in_this_version};
use rethread_transcripts::{ClaudeFolder, FileDifference, Subagent, Transcript};

use crate::projection::{Said, of_chain};

#[test]
fn a_subagent_has_a_transcript_of_its_own() {
    let Some(fixture) = Fixture::named("foreground_agent") else {
        return not_in_this_version("there is no such fixture");
    };
    let subagents = Subagent::all_of(&fixture.transcript());
    if subagents.is_empty() {
        return not_in_this_version("this version of Claude Code keeps subagents in the main transcript");
    }
    assert_eq!(subagents.len(), 1);
    assert_eq!(subagents[0].description.as_deref(), Some("Look"));
    let transcript = Transcript::open(&subagents[0].path).unwrap();
    let said = of_chain(&transcript, &transcript.active());
    let texts = said.iter().filter(|said| matches!(said, Said::Text(..))).count();
    let calls = said.iter().filter(|said| matches!(said, Said::Call(_) | Said::Answer(_))).count();
    assert_eq!((texts, calls), (2, 2), "{said:?}");
}

#[test]
fn a_large_output_is_found_beside_the_transcript() {
    let Some(fixture) = Fixture::named("large_output") else {
        return not_in_this_version("there is no such fixture");
    };
    let transcript = Transcript::open(fixture.transcript()).unwrap();
    let chain = transcript.active();
    let mut reader = transcript.read(&chain);
    let mut found = Vec::new();
    while let Some(entry) = reader.next() {
        found.extend(transcript.persisted_output(&entry.unwrap()));
    }
    if found.is_empty() {
        return not_in_this_version("this version of Claude Code keeps large outputs in the transcript");
    }
    let expected: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with(&fixture.config), "{}", found[0].display());
    assert_eq!(fs::read_to_string(&found[0]).unwrap().trim_end(), expected.trim_end());
}

#[test]
fn a_checkpoint_holds_what_files_were_before_its_prompt() {
    let Some(fixture) = Fixture::named("checkpointed") else {
        return not_in_this_version("there is no such fixture");
    };
    let checkpoints = ClaudeFolder::new(&fixture.config).checkpoints(&fixture.session).unwrap();
    let prompts: Vec<&str> = checkpoints.iter().map(|checkpoint| checkpoint.message_uuid.as_str()).collect();
    assert_eq!(prompts, ["ffffffff-0000-4000-8000-000000000001", "ffffffff-0000-4000-8000-000000000002"]);
    let project = fixture.home.project();
    let difference = |name: &str, before: Option<&str>, after: &str| FileDifference {
        path: project.join(name),
        before: before.map(|text| text.as_bytes().to_vec()),
        after: Some(after.as_bytes().to_vec()),
    };
    let first = [difference("code.txt", Some("old\n"), "newer\n"), difference("new.txt", None, "fresh\n")];
    assert_eq!(checkpoints[0].differences().unwrap(), first);
    assert_eq!(checkpoints[1].differences().unwrap(), [difference("code.txt", Some("new\n"), "newer\n")]);
}

/// Paths of the file history are told from where the session worked, which a transcript may say later.
#[test]
fn a_checkpoint_before_the_first_prompt_is_of_the_directory_that_the_session_worked_in() {
    let folder = tempfile::tempdir().unwrap();
    let id = "11111111-1111-4111-8111-111111111111";
    let path = folder.path().join("projects/-p").join(format!("{id}.jsonl"));
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let snapshot = "{\"type\":\"file-history-snapshot\",\"messageId\":\"u\",\"snapshot\":{\"messageId\":\"u\",\"trackedFileBackups\":{\"src/a\":{\"backupFileName\":null}}}}";
    let prompt = "{\"parentUuid\":null,\"type\":\"user\",\"uuid\":\"u\",\"cwd\":\"/work\",\"message\":{\"content\":\"Hi\"}}";
    fs::write(&path, format!("{snapshot}\n{prompt}\n")).unwrap();
    let checkpoints = ClaudeFolder::new(folder.path()).checkpoints(id).unwrap();
    assert_eq!(checkpoints[0].files[0].path, std::path::Path::new("/work/src/a"));
}
