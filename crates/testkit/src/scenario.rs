//! What people do with Claude Code, done by the real CLI: the sessions that readers are tested on.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::claude::Ran;
use crate::home::Home;
use crate::script::{Prompt, Reply};

/// One thing that people do.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The first version that can do it.
    pub since: &'static str,
    /// Does it, in a home of its own, and returns the session that came out.
    pub act: fn(&Home) -> String,
}

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";

/// Everything that people do.
pub const SCENARIOS: &[Scenario] = &[
    Scenario { name: "plain", since: "2.0.0", act: plain },
    Scenario { name: "edits", since: "2.0.0", act: edits },
    Scenario { name: "failing_tools", since: "2.0.0", act: failing_tools },
    Scenario { name: "denied_tools", since: "2.0.0", act: denied_tools },
    Scenario { name: "parallel_tools", since: "2.0.0", act: parallel_tools },
    Scenario { name: "foreground_agent", since: "2.0.0", act: foreground_agent },
    Scenario { name: "background_agent", since: "2.1.200", act: background_agent },
    Scenario { name: "compacted", since: "2.0.0", act: compacted },
    Scenario { name: "resumed", since: "2.0.0", act: resumed },
    Scenario { name: "forked", since: "2.0.0", act: forked },
    Scenario { name: "resumed_at", since: "2.1.100", act: resumed_at },
    // Earlier ones choose among branches in another way.
    Scenario { name: "two_writers", since: "2.1.100", act: two_writers },
    // Earlier ones have written nothing by then.
    Scenario { name: "killed_at_first", since: "2.1.100", act: killed_at_first },
    Scenario { name: "killed_in_stream", since: "2.0.0", act: killed_in_stream },
    Scenario { name: "killed_in_tool", since: "2.0.0", act: killed_in_tool },
    Scenario { name: "large_output", since: "2.0.0", act: large_output },
    Scenario { name: "image", since: "2.0.0", act: image },
    Scenario { name: "unicode", since: "2.0.0", act: unicode },
    Scenario { name: "renamed", since: "2.1.200", act: renamed },
    Scenario { name: "worktree", since: "2.1.200", act: worktree },
    Scenario { name: "queued", since: "2.1.100", act: queued },
    Scenario { name: "api_errors", since: "2.0.0", act: api_errors },
    Scenario { name: "interrupted", since: "2.1.100", act: interrupted },
    Scenario { name: "checkpointed", since: "2.1.200", act: checkpointed },
];

fn plain(home: &Home) -> String {
    let answer = Reply::default().thinking("A greeting.").says("Hello!");
    home.claude().session(FIRST).asked(Prompt::new("Say hello").reply(answer));
    FIRST.into()
}

fn edits(home: &Home) -> String {
    let file = home.project().join("notes.txt");
    let (read, path) = (json!({ "file_path": file }), file.to_string_lossy().into_owned());
    let prompt = Prompt::new("Write and mend the notes")
        .calls("Write", json!({ "file_path": path, "content": "one\ntwo\n" }))
        .calls("Read", read)
        .calls("Edit", json!({ "file_path": path, "old_string": "two", "new_string": "three" }))
        .says("Mended.");
    home.claude().session(FIRST).bypassing().asked(prompt);
    assert_eq!(fs::read_to_string(file).unwrap(), "one\nthree\n");
    FIRST.into()
}

fn failing_tools(home: &Home) -> String {
    let prompt = Prompt::new("Try what fails")
        .calls("Bash", json!({ "command": "echo no >&2; exit 3", "description": "fails" }))
        .calls("Read", json!({ "file_path": home.project().join("absent") }))
        .calls("NoSuchTool", json!({ "x": 1 }))
        .says("It all failed.");
    home.claude().session(FIRST).bypassing().asked(prompt);
    FIRST.into()
}

fn denied_tools(home: &Home) -> String {
    let touch = json!({ "command": "touch denied", "description": "touches" });
    let prompt = Prompt::new("Do what is not allowed").calls("Bash", touch).says("I may not.");
    // By a rule, because some versions allow it without one. Another option must follow: this one takes several values.
    home.claude().args(["--disallowedTools", "Bash(touch:*)"]).session(FIRST).asked(prompt);
    assert!(!home.project().join("denied").try_exists().unwrap());
    FIRST.into()
}

fn parallel_tools(home: &Home) -> String {
    let echo = |word: &str| json!({ "command": format!("echo {word}"), "description": "echoes" });
    let three = Reply::text("All at once.").tool("Bash", echo("one")).tool("Bash", echo("two"));
    let prompt = Prompt::new("Run three").reply(three.tool("Bash", echo("three")));
    let two = Reply::default().thinking("Again.").tool("Bash", echo("four")).tool("Bash", echo("five"));
    home.claude().session(FIRST).bypassing().asked(prompt.reply(two).says("All five ran."));
    FIRST.into()
}

/// The tool has had two names.
fn agent(home: &Home) -> &'static str {
    if home.program().is_at_least("2.1.100") { "Agent" } else { "Task" }
}

fn foreground_agent(home: &Home) -> String {
    let echo = json!({ "command": "echo inside", "description": "echoes" });
    let inner = Prompt::new("Look inside").calls("Bash", echo).says("Seen from inside.");
    let call = json!({
        "description": "Look", "prompt": inner.to_string(), "subagent_type": "general-purpose",
        "run_in_background": false,
    });
    let call = if home.program().is_at_least("2.1.100") { call } else { without_background(call) };
    let prompt = Prompt::new("Send an agent").calls(agent(home), call).says("The agent came back.");
    home.claude().session(FIRST).bypassing().asked(prompt);
    FIRST.into()
}

fn without_background(mut call: Value) -> Value {
    call.as_object_mut().unwrap().remove("run_in_background");
    call
}

fn background_agent(home: &Home) -> String {
    let inner = Prompt::new("Work alone").says("Worked alone.");
    let call = json!({
        "description": "Alone", "prompt": inner.to_string(), "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let prompt = Prompt::new("Send an agent away").calls(agent(home), call).says("It is on its way.");
    home.claude().session(FIRST).bypassing().asked(prompt);
    FIRST.into()
}

fn compacted(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("First question").says("First answer"));
    let echo = json!({ "command": "echo before", "description": "echoes" });
    let second = Prompt::new("Second question").calls("Bash", echo).says("Second answer");
    home.claude().resume(FIRST).bypassing().asked(second);
    home.claude().resume(FIRST).asked("/compact");
    home.claude().resume(FIRST).asked(Prompt::new("After the summary").says("It goes on"));
    FIRST.into()
}

fn resumed(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("One").says("1"));
    home.claude().resume(FIRST).asked(Prompt::new("Two").says("2"));
    home.claude().args(["--continue"]).asked(Prompt::new("Three").says("3"));
    FIRST.into()
}

fn forked(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("Trunk").says("I am the trunk"));
    let fork = home.claude().resume(FIRST).args(["--fork-session", "--output-format", "json"]);
    let ran = fork.asked(Prompt::new("Branch").says("I am the branch"));
    home.claude().resume(FIRST).asked(Prompt::new("More trunk").says("Still the trunk"));
    let result: Value = serde_json::from_str(&ran.out).unwrap();
    result["session_id"].as_str().unwrap().to_owned()
}

fn resumed_at(home: &Home) -> String {
    let (one, two) = ("aaaaaaaa-0000-4000-8000-000000000001", "aaaaaaaa-0000-4000-8000-000000000002");
    let mut talk = home.claude().session(FIRST).converse();
    talk.say(one, Prompt::new("Keep this").says("Kept"));
    let kept = talk.wait_for("assistant")["uuid"].as_str().unwrap().to_owned();
    talk.wait_for("result");
    talk.say(two, Prompt::new("Leave this behind").says("Left behind"));
    talk.wait_for("result");
    talk.close();
    let back = home.claude().resume(FIRST).args(["--resume-session-at", &kept]);
    back.asked(Prompt::new("Another way").says("Another answer"));
    FIRST.into()
}

fn two_writers(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("Common").says("Common answer"));
    let slow = |text: &str, milliseconds| {
        let answer = Reply::text(format!("{text} answered")).after_milliseconds(milliseconds);
        home.claude().resume(FIRST).start(Prompt::new(text).reply(answer))
    };
    let (one, other) = (slow("Writer one", 900), slow("Writer two", 1500));
    let ends = [Ran::of(one), Ran::of(other)];
    assert!(ends.iter().all(|ran| ran.code == 0), "{ends:?}");
    FIRST.into()
}

fn killed_in_stream(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("Before").says("Before the cut"));
    let before = home.api().requests().len();
    let answer = Reply::text("This is never finis").hanging();
    let mut child = home.claude().resume(FIRST).start(Prompt::new("Cut me off").reply(answer));
    home.api().wait_for(before + 1);
    // 2.0.0 writes a prompt together with the answer to it.
    if home.program().is_at_least("2.1.100") {
        home.wait_until_written(FIRST, "user", "Cut me off");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    FIRST.into()
}

/// What the program tells the model at the beginning stands behind the first prompt, so that the prompt is not the last entry.
fn killed_at_first(home: &Home) -> String {
    let answer = Reply::text("This is never finis").hanging();
    let mut child = home.claude().session(FIRST).start(Prompt::new("Begin").reply(answer));
    home.wait_until_written(FIRST, "user", "Begin");
    child.kill().unwrap();
    child.wait().unwrap();
    FIRST.into()
}

fn killed_in_tool(home: &Home) -> String {
    let started = home.project().join("started");
    let sleep = json!({ "command": "touch started; sleep 60", "description": "sleeps" });
    let prompt = Prompt::new("Sleep").reply(Reply::text("Good night.").tool("Bash", sleep));
    let mut child = home.claude().session(FIRST).bypassing().start(prompt);
    // Either may come first.
    home.wait_until_written(FIRST, "assistant", r#""type":"tool_use""#);
    while !started.try_exists().unwrap() {
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    FIRST.into()
}

fn large_output(home: &Home) -> String {
    let count = json!({ "command": "seq 1 20000", "description": "counts" });
    let prompt = Prompt::new("Count").calls("Bash", count).says("Counted.");
    home.claude().session(FIRST).bypassing().asked(prompt);
    FIRST.into()
}

/// A picture of one pixel.
const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn image(home: &Home) -> String {
    let source = json!({ "type": "base64", "media_type": "image/png", "data": PIXEL });
    let text = Prompt::new("What is this?").says("A pixel.").to_string();
    let mut talk = home.claude().session(FIRST).converse();
    let content = json!([{ "type": "image", "source": source }, { "type": "text", "text": text }]);
    talk.say_blocks("bbbbbbbb-0000-4000-8000-000000000001", content);
    talk.wait_for("result");
    talk.close();
    FIRST.into()
}

fn unicode(home: &Home) -> String {
    let folder = home.project().join("Ünïcode 漢字 🎉.d_x");
    fs::create_dir(&folder).unwrap();
    let prompt = Prompt::new("Grüße, 世界! \u{1F468}\u{200D}\u{1F469} \u{2028} \"quoted\" \\ \t tab")
        .calls("Bash", json!({ "command": "printf 'naïve \\u2603 🎉\\n'", "description": "雪" }))
        .says("Fertig — 完了 🎉");
    home.claude().session(FIRST).bypassing().inside(&folder).asked(prompt);
    FIRST.into()
}

fn renamed(home: &Home) -> String {
    home.claude().session(FIRST).args(["--name", "First name"]).asked(Prompt::new("Who am I?").says("You."));
    let mut talk = home.claude().resume(FIRST).converse();
    talk.control("r1", json!({ "subtype": "rename_session", "title": "Second name" }));
    talk.wait_for("control_response");
    talk.say("cccccccc-0000-4000-8000-000000000001", Prompt::new("And now?").says("Somebody else."));
    talk.wait_for("result");
    talk.close();
    FIRST.into()
}

fn worktree(home: &Home) -> String {
    let project = home.project();
    fs::write(project.join("README"), "a repository\n").unwrap();
    git(&project, &["init", "--quiet", "--initial-branch=main"]);
    git(&project, &["add", "README"]);
    git(&project, &["commit", "--quiet", "--message=first"]);
    home.claude().session(SECOND).asked(Prompt::new("In the repository").says("On main"));
    let prompt = Prompt::new("In a worktree").says("On a branch of its own");
    home.claude().session(FIRST).args(["--worktree", "side"]).asked(prompt);
    FIRST.into()
}

/// Runs git as nobody in particular.
fn git(folder: &Path, words: &[&str]) {
    let mut command = Command::new("git");
    for (name, value) in [("user.name", "Nobody"), ("user.email", "nobody@example.org")] {
        command.args(["-c", &format!("{name}={value}")]);
    }
    let done = command.args(words).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    assert!(done.stdout(Stdio::null()).status().unwrap().success(), "git {words:?}");
}

fn queued(home: &Home) -> String {
    let mut talk = home.claude().session(FIRST).bypassing().converse();
    let sleep = json!({ "command": "sleep 1", "description": "sleeps" });
    talk.say(
        "dddddddd-0000-4000-8000-000000000001",
        Prompt::new("Take your time").calls("Bash", sleep).says("Rested."),
    );
    talk.wait_for("assistant");
    talk.say("dddddddd-0000-4000-8000-000000000002", "Meanwhile, think of this");
    talk.wait_for("result");
    talk.close();
    FIRST.into()
}

fn api_errors(home: &Home) -> String {
    home.claude().session(FIRST).asked(Prompt::new("Well").says("Well answered"));
    let failed = home.claude().resume(FIRST).ask(Prompt::new("Badly").reply(Reply::status(400)));
    assert_eq!(failed.code, 1, "{failed:?}");
    home.claude().resume(FIRST).asked(Prompt::new("Well again").says("Well answered again"));
    FIRST.into()
}

fn interrupted(home: &Home) -> String {
    let mut talk = home.claude().session(FIRST).bypassing().converse();
    let sleep = json!({ "command": "touch started; sleep 60", "description": "sleeps" });
    talk.say("eeeeeeee-0000-4000-8000-000000000001", Prompt::new("Begin").calls("Bash", sleep));
    talk.wait_for("assistant");
    while !home.project().join("started").try_exists().unwrap() {
        thread::sleep(Duration::from_millis(10));
    }
    talk.control("i1", json!({ "subtype": "interrupt" }));
    talk.wait_for("result");
    talk.say("eeeeeeee-0000-4000-8000-000000000002", Prompt::new("Something else").says("Gladly."));
    talk.wait_for("result");
    talk.close();
    FIRST.into()
}

fn checkpointed(home: &Home) -> String {
    let file = home.project().join("code.txt");
    fs::write(&file, "old\n").unwrap();
    let (path, fresh) = (file.to_string_lossy().into_owned(), home.project().join("new.txt"));
    let mut talk = home.claude().session(FIRST).bypassing();
    talk = talk.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    let mut talk = talk.converse();
    let first = Prompt::new("Change it")
        .calls("Read", json!({ "file_path": path }))
        .calls("Edit", json!({ "file_path": path, "old_string": "old", "new_string": "new" }))
        .calls("Write", json!({ "file_path": fresh, "content": "fresh\n" }))
        .says("Changed.");
    talk.say("ffffffff-0000-4000-8000-000000000001", first);
    talk.wait_for("result");
    let again = json!({ "file_path": path, "old_string": "new", "new_string": "newer" });
    talk.say(
        "ffffffff-0000-4000-8000-000000000002",
        Prompt::new("Again").calls("Edit", again).says("Twice."),
    );
    talk.wait_for("result");
    talk.close();
    FIRST.into()
}
