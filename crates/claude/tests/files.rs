//! Checkpoints of files, and going back to them.

use rethread_claude::{PermissionMode, Prompt};
use rethread_testkit::Prompt as Script;
use serde_json::json;

use crate::kit::{Heard, ask, connect, options, own_home};

#[tokio::test]
async fn files_go_back_to_what_they_were_before_a_prompt() {
    let Some(home) = own_home() else { return };
    let file = home.project().join("poem.txt");
    let write = |text: &str| {
        Script::new("Write it").calls("Write", json!({ "file_path": file, "content": text })).says("written")
    };
    let editing = options(&home).enable_file_checkpointing(true).permission_mode(PermissionMode::AcceptEdits);
    let client = connect(editing).await;
    ask(&client, write("first\n")).await;
    let second = Prompt::from(write("second\nthird\n").to_string());
    let at = second.uuid().to_owned();
    Heard::all(client.send_message(second).await.unwrap()).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "second\nthird\n");

    let dry = client.rewind_files_dry_run(&at).await.unwrap();
    assert!(dry.can_rewind, "{dry:?}");
    assert_eq!((dry.insertions, dry.deletions, dry.files_changed.len()), (1, 2, 1), "{dry:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "second\nthird\n", "a dry run changes nothing");

    assert!(client.rewind_files(&at).await.unwrap().can_rewind);
    let restored = std::fs::read_to_string(&file).unwrap();
    if !home.program().is_at_least("2.1.200") {
        return rethread_testkit::not_in_this_version(
            "it says that it rewound, and leaves the file as it is",
        );
    }
    assert_eq!(restored, "first\n");
}

#[tokio::test]
async fn a_prompt_without_a_checkpoint_is_no_failure() {
    let Some(home) = own_home() else { return };
    let client = connect(options(&home).enable_file_checkpointing(true)).await;
    ask(&client, Script::new("Hello").says("Hi.")).await;
    let unknown = client.rewind_files("00000000-0000-4000-8000-000000000000").await.unwrap();
    assert!(!unknown.can_rewind && unknown.error.is_some(), "{unknown:?}");
}
