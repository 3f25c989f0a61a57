//! What becomes of every option.

use rethread_claude::{
    AgentDefinition, ClaudeAgentOptions, ClaudeAgentOptionsBuilder, Effort, McpServer, PermissionMode,
    PermissionResult, SettingSource, SystemPrompt, Thinking, Tools,
};
use serde_json::json;

/// Returns the command line and the environment that options come to, a word a line.
fn launched(options: ClaudeAgentOptionsBuilder) -> String {
    let launch = options.try_build().unwrap().launch("claude");
    let words = launch.arguments.iter().map(|word| word.to_str().unwrap().to_owned());
    // Those come with every launch, and are seen in the first test.
    let common = ["--print", "--output-format=stream-json", "--input-format=stream-json", "--verbose"];
    let words = words.filter(|word| !common.contains(&word.as_str()));
    let variables = launch.environment.iter().filter_map(|(name, value)| {
        let shown = format!("{}={}", name.to_str()?, value.as_ref()?.to_str()?);
        (name != "CLAUDE_CODE_SDK_READS_SESSION_STATE").then_some(shown)
    });
    words.chain(variables).collect::<Vec<_>>().join("\n")
}

fn builder() -> ClaudeAgentOptionsBuilder {
    ClaudeAgentOptions::builder()
}

#[test]
fn every_launch_speaks_json_and_hides_the_claude_code_around_it() {
    let launch = ClaudeAgentOptions::default().launch("/usr/bin/claude");
    insta::assert_debug_snapshot!(launch, @r#"
    Launch {
        program: "/usr/bin/claude",
        arguments: [
            "--print",
            "--output-format=stream-json",
            "--input-format=stream-json",
            "--verbose",
        ],
        environment: {
            "CLAUDECODE": None,
            "CLAUDE_CODE_ENTRYPOINT": None,
            "CLAUDE_CODE_SDK_READS_SESSION_STATE": Some(
                "1",
            ),
        },
        clear_environment: false,
        cwd: None,
        version_within: Some(
            60s,
        ),
    }
    "#);
}

#[test]
fn the_options_of_sessions() {
    let resumed =
        builder().resume("ID").fork_session(true).session_id("0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22");
    let resumed =
        resumed.resume_session_at("AT").resume_drops_turn("TURN").session_name("debug-investigation");
    insta::assert_snapshot!(launched(resumed.enable_file_checkpointing(true)), @r"
    --resume=ID
    --fork-session
    --session-id=0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22
    --name=debug-investigation
    --resume-session-at=AT
    --resume-drops-turn=TURN
    CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true
    ");
    insta::assert_snapshot!(launched(builder().continue_conversation(true).no_session_persistence(true)), @r"
    --continue
    --no-session-persistence
    ");
}

#[test]
fn the_options_of_the_model() {
    let model =
        builder().model("opus").fallback_model("sonnet").effort(Effort::ExtraHigh).betas(["one", "two"]);
    let model = model.thinking(Thinking::Tokens(4000)).max_turns(3).max_budget_usd(0.5).task_budget(9000);
    let model = model.append_system_prompt("Be brief.").output_schema(json!({ "type": "object" }));
    insta::assert_snapshot!(launched(model), @r#"
    --model=opus
    --fallback-model=sonnet
    --effort=xhigh
    --max-thinking-tokens=4000
    --betas=one,two
    --append-system-prompt=Be brief.
    --json-schema={"type":"object"}
    --max-turns=3
    --max-budget-usd=0.5
    --task-budget=9000
    "#);
    insta::assert_snapshot!(launched(builder().system_prompt("You are a poet.").thinking(Thinking::Disabled)), @r"
    --thinking=disabled
    --system-prompt=You are a poet.
    ");
    insta::assert_snapshot!(launched(builder().system_prompt(SystemPrompt::File("p.md".into()))), @"--system-prompt-file=p.md");
}

#[test]
fn the_options_of_tools() {
    let tools =
        builder().tools(["Read", "Bash"]).allowed_tools(["Bash(git *)", "Read"]).disallowed_tools(["Write"]);
    let tools = tools.permission_mode(PermissionMode::AcceptEdits).allow_dangerously_skip_permissions(true);
    insta::assert_snapshot!(launched(tools.can_use_tool(async |_| PermissionResult::allow())), @r"
    --tools=Read,Bash
    --allowedTools=Bash(git *),Read
    --disallowedTools=Write
    --permission-mode=acceptEdits
    --allow-dangerously-skip-permissions
    --permission-prompt-tool=stdio
    ");
    insta::assert_snapshot!(launched(builder().tools(Tools::None)), @"--tools=");
    insta::assert_snapshot!(launched(builder().tools(Tools::All)), @"--tools=default");
}

#[test]
fn the_options_of_surroundings() {
    let around = builder().add_dirs(["/a", "/b"]).env("NAME", "value").settings("{}").agent("reviewer");
    let around = around.setting_sources([SettingSource::User, SettingSource::Local]).plugins(["/plugin"]);
    let around =
        around.mcp_server("files", McpServer::stdio("server", ["--root", "/a"])).strict_mcp_config(true);
    let around = around.mcp_server("web", McpServer::http("http://localhost:1"));
    insta::assert_snapshot!(launched(around.subagent("reviewer", AgentDefinition::new("Reviews", "Review."))), @r#"
    --add-dir=/a
    --add-dir=/b
    --settings={}
    --setting-sources=user,local
    --mcp-config={"mcpServers":{"files":{"type":"stdio","command":"server","args":["--root","/a"],"env":{}},"web":{"type":"http","url":"http://localhost:1","headers":{}}}}
    --strict-mcp-config
    --agent=reviewer
    --plugin-dir=/plugin
    NAME=value
    "#);
}

#[test]
fn the_options_of_what_is_said() {
    let said = builder().include_partial_messages(true).replay_user_messages(true).include_hook_events(true);
    let said = said.session_mirror(true).extra_flag("bare").extra_arg("debug-file", "/tmp/log");
    insta::assert_snapshot!(launched(said), @r"
    --include-partial-messages
    --replay-user-messages
    --include-hook-events
    --session-mirror
    --bare
    --debug-file=/tmp/log
    ");
}

#[test]
fn no_value_can_become_a_flag() {
    let hostile = "--dangerously-skip-permissions";
    let options =
        builder().resume(hostile).session_name(hostile).model(hostile).append_system_prompt(hostile);
    let options = options.allowed_tools([hostile]).add_dirs([hostile]).extra_arg("settings", hostile);
    let launch = options.build().launch("claude");
    assert!(!launch.arguments.iter().any(|word| word == hostile), "{launch:?}");
    assert!(builder().extra_flag("bare --dangerously-skip-permissions").try_build().is_err());
    assert!(builder().extra_arg("name=x --y", "z").try_build().is_err());
}

#[test]
fn contradictions_are_named() {
    let id = "0198f2c1-7d7e-7e50-9c3a-0d3f6a9b1c22";
    let wrong = [
        builder().fork_session(true),
        builder().resume("x").continue_conversation(true),
        builder().resume(""),
        builder().session_id("x"),
        builder().session_id(id).resume("x"),
        builder().resume_session_at("x"),
        builder().resume("x").resume_drops_turn("y"),
        builder().no_session_persistence(true).enable_file_checkpointing(true),
        builder().model("x").fallback_model("x"),
        builder().system_prompt("x").append_system_prompt("y"),
        builder().max_turns(0),
        builder().max_waiting_bytes(0),
    ];
    let told = wrong.map(|options| options.try_build().unwrap_err().to_string()).join("\n");
    insta::assert_snapshot!(told, @r"
    fork_session needs `resume` or `continue_conversation`
    resume contradicts `continue_conversation`
    resume is empty
    session_id is no UUID
    session_id needs `fork_session` when a session is resumed
    resume_session_at needs `resume`
    resume_drops_turn needs `resume_session_at`
    enable_file_checkpointing contradicts `no_session_persistence`
    fallback_model is the model itself
    append_system_prompt contradicts `system_prompt`
    max_turns is zero
    max_waiting_bytes is zero
    ");
}

/// Anything longer than 128 KiB made the start fail with "Argument list too long".
#[test]
fn what_no_argument_has_room_for_is_named() {
    let long = "x".repeat(128 << 10);
    let refused = builder().settings(long.as_str()).try_build().unwrap_err();
    insta::assert_snapshot!(refused, @"--settings is longer than the 131071 bytes that an argument may have; name a file instead, or say less");
    // These two go with the first request instead.
    assert_eq!(launched(builder().system_prompt(long.as_str())), "");
    assert_eq!(launched(builder().append_system_prompt(long.as_str())), "");
}
