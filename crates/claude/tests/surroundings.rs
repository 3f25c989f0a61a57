//! Options that change what the real CLI may use: tools, directories, skills, agents, servers.

use rethread_claude::transport::Ending;
use rethread_claude::{
    AgentDefinition, ClaudeAgentOptions, ClaudeAgentOptionsBuilder, ClaudeClient, Error, PermissionMode,
};
use rethread_testkit::{Home, Prompt as Script};
use serde_json::{Value, json};
use std::fs;

use crate::kit::{Heard, ask, connect, home, options, own_home};

async fn run(options: ClaudeAgentOptionsBuilder, tool: &str, input: Value) -> Heard {
    ask(&connect(options).await, Script::new("Do it").calls(tool, input).says("over")).await
}

#[tokio::test]
async fn a_tool_that_is_allowed_needs_nobody_and_others_are_refused() {
    let Some(home) = home() else { return };
    let makes = |name: &str| {
        let command = format!("install /dev/null {}", home.project().join(name).display());
        json!({ "command": command, "description": "d" })
    };
    let allowed = run(options(home).allowed_tools(["Bash(install:*)"]), "Bash", makes("by-a-rule")).await;
    run(options(home).allowed_tools(["Bash(git:*)"]), "Bash", makes("by-no-rule")).await;
    let exists = |name: &str| home.project().join(name).try_exists().unwrap();
    assert_eq!((exists("by-a-rule"), exists("by-no-rule")), (true, false), "{allowed:?}");
}

#[tokio::test]
async fn edits_are_accepted_in_directories_that_were_added_and_in_no_others() {
    let Some(home) = home() else { return };
    let (added, other) = (home.path().join("added"), home.path().join("other"));
    [&added, &other].iter().for_each(|folder| fs::create_dir_all(folder).unwrap());
    for folder in [&added, &other] {
        let edits = options(home).permission_mode(PermissionMode::AcceptEdits).add_dirs([&added]);
        run(edits, "Write", json!({ "file_path": folder.join("file"), "content": "x" })).await;
    }
    let exists = |folder: &std::path::Path| folder.join("file").try_exists().unwrap();
    assert_eq!((exists(&added), exists(&other)), (true, false));
}

#[tokio::test]
async fn a_session_can_be_an_agent_itself() {
    let Some(home) = own_home() else { return };
    let poet = AgentDefinition::new("Writes poems", "You answer in verse only.").tools(["Read"]);
    let client = connect(options(&home).subagent("poet", poet).agent("poet")).await;
    let heard = ask(&client, Script::new("a prompt to the poet").says("Roses.")).await;
    let requests = home.api().requests();
    let asked = requests.iter().find(|it| it.body["messages"].to_string().contains("a prompt to the poet"));
    let system = asked.unwrap().body["system"].to_string();
    assert!(system.contains("You answer in verse only."), "{system}");
    assert_eq!(heard.text(), "Roses.");
}

/// Writes a program that says that it ran, and with which `PATH`.
fn telling(program: &std::path::Path, told: &std::path::Path) {
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(program, format!("#!/bin/sh\necho \"$PATH\" > '{}'\n", told.display())).unwrap();
    fs::set_permissions(program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
}

/// A relative path was taken as one of the folder to work in, so that a project could bring its own CLI.
#[tokio::test]
async fn a_relative_path_never_means_a_program_of_the_project() {
    let project = tempfile::tempdir().unwrap();
    let told = project.path().join("told");
    telling(&project.path().join("bin/claude"), &told);
    for check in [true, false] {
        let options = ClaudeAgentOptions::builder().cli_path("bin/claude").cwd(project.path());
        let mut client = ClaudeClient::new(options.check_version(check).build()).unwrap();
        client.connect().await.unwrap_err();
        client.close().await.unwrap();
    }
    assert!(!told.try_exists().unwrap());
}

/// The script that guards the CLI looked for its own helpers where the CLI was to look for programs.
#[tokio::test]
async fn a_cli_is_guarded_whatever_its_path_is() {
    let folder = tempfile::tempdir().unwrap();
    let (program, told) = (folder.path().join("claude"), folder.path().join("told"));
    telling(&program, &told);
    let options = ClaudeAgentOptions::builder().cli_path(&program).check_version(false);
    let mut client = ClaudeClient::new(options.env("PATH", "/nowhere").build()).unwrap();
    let ended = client.connect().await.unwrap_err();
    assert!(
        matches!(&ended, Error::Ended { ending: Ending::Exited(0), complaints } if complaints.is_empty()),
        "{ended}"
    );
    assert_eq!(fs::read_to_string(&told).unwrap(), "/nowhere\n");
}

/// Returns the skills that the model is told of.
async fn skills(home: &Home, options: ClaudeAgentOptionsBuilder) -> Vec<String> {
    ask(&connect(options).await, Script::new("Hello").says("Hi.")).await;
    let requests = home.api().requests();
    let last = requests.iter().rev().find(|it| it.body["messages"].to_string().contains("Hello"));
    let body = last.unwrap().body.to_string();
    ["first-skill", "second-skill"]
        .into_iter()
        .filter(|name| body.contains(name))
        .map(str::to_owned)
        .collect()
}

#[tokio::test]
async fn only_the_skills_that_are_asked_for_are_offered() {
    let Some(home) = own_home() else { return };
    for name in ["first-skill", "second-skill"] {
        let folder = home.config().join("skills").join(name);
        fs::create_dir_all(&folder).unwrap();
        let text = format!("---\nname: {name}\ndescription: Knows about {name}\n---\nBe skilful.\n");
        fs::write(folder.join("SKILL.md"), text).unwrap();
    }
    assert_eq!(skills(&home, options(&home)).await, ["first-skill", "second-skill"]);
    if !home.program().is_at_least("2.1.200") {
        return rethread_testkit::not_in_this_version("skills cannot be chosen");
    }
    assert_eq!(skills(&home, options(&home).skills(["first-skill".to_owned()])).await, ["first-skill"]);
}
