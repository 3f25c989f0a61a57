//! The official SDKs with the adapters in `clients/`, against the real keeper on every store.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod forgetful;
mod served;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rethread_testkit::{Home, Postgres, Prompt, PythonSdk, cannot};
use serde_json::{Value, json};

use self::forgetful::Forgetful;
use self::served::Served;

/// Every store that a keeper can have, by name. Another one is another line here.
fn stores() -> Vec<(&'static str, Served)> {
    let mut stores = vec![
        ("files", Served::on_files()),
        ("sqlite", Served::on(|path| format!("sqlite:{}.db", path.display()))),
    ];
    match Postgres::shared() {
        Some(postgres) => stores.push(("postgres", Served::on(|_| postgres.fresh()))),
        None => cannot("PostgreSQL is not installed"),
    }
    stores
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Runs tests of the Python adapter; none of them may be left out.
fn python(tests: &str, served: &Served, proxy: Option<&Forgetful>) {
    let Some(sdk) = PythonSdk::find() else { return cannot("the agent SDK for Python cannot be installed") };
    let client = repository().join("clients/python");
    let home = tempfile::tempdir().unwrap();
    let mut command = sdk.command(home.path(), "");
    let sdk = command.get_envs().find_map(|(name, value)| (name == "PYTHONPATH").then_some(value?));
    let path = format!("{}:{}", client.join("src").display(), sdk.unwrap().to_str().unwrap());
    command = Command::new("python3");
    command.args(["-B", "-m", "unittest", "-v", tests]).current_dir(&client).env("PYTHONPATH", path);
    command.env("HOME", home.path()).env("RETHREAD_URL", &served.url).env("RETHREAD_TOKEN", &served.token);
    command.envs(proxy.map(|proxy| ("RETHREAD_PROXY", &proxy.url)));
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains("skipped"), "{said}");
}

/// Returns the folder of the TypeScript adapter, built with its tests; `None` where that is impossible.
fn typescript() -> Option<&'static Path> {
    static BUILT: LazyLock<Option<PathBuf>> = LazyLock::new(|| {
        let script = repository().join("scripts/clients");
        let built = Command::new(script).arg("build").stdin(Stdio::null()).status().ok()?;
        built.success().then(|| repository().join("clients/typescript"))
    });
    if BUILT.is_none() {
        cannot("the TypeScript adapter cannot be built");
    }
    BUILT.as_deref()
}

#[test]
fn the_official_suite_passes_on_every_store() {
    for (name, served) in stores() {
        eprintln!("on {name}");
        python("tests.test_conformance", &served, None);
        // What is kept is as whole as any other session.
        served.run(&["verify"]);
    }
}

#[test]
fn the_python_adapter_loses_and_doubles_nothing_though_answers_are_lost() {
    for (name, served) in stores() {
        eprintln!("on {name}");
        let proxy = Forgetful::before(served.port());
        python("tests.test_appends", &served, Some(&proxy));
        assert!(proxy.asked() > 40, "{}", proxy.asked());
    }
}

#[test]
fn the_typescript_adapter_loses_and_doubles_nothing_though_answers_are_lost() {
    let Some(client) = typescript() else { return };
    for (name, served) in stores() {
        eprintln!("on {name}");
        let proxy = Forgetful::before(served.port());
        let mut command = Command::new("node");
        command.args(["--test", "build/tests/appends.js"]).current_dir(client).stdin(Stdio::null());
        command.env("RETHREAD_URL", &served.url).env("RETHREAD_TOKEN", &served.token);
        let output = command.env("RETHREAD_PROXY", &proxy.url).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("# skipped 0"), "{said}");
        assert!(proxy.asked() > 40, "{}", proxy.asked());
    }
}

/// Runs a turn of the real CLI through the SDK with our adapter. Returns the session's id.
fn turn(
    home: &Home,
    client: &Path,
    served: &Served,
    token: &str,
    cwd: &Path,
    prompt: &Prompt,
    resume: Option<&str>,
) -> String {
    let mut command = Command::new("node");
    command.arg(client.join("build/tests/turn.js")).arg(prompt.to_string()).args(resume);
    command.env_clear().envs(home.environment()).current_dir(cwd).stdin(Stdio::null());
    command.env("CLAUDE", &home.program().path).env("RETHREAD_URL", &served.url);
    command.env("RETHREAD_TOKEN", token).env("RETHREAD_NAMESPACE", "team");
    let output = command.output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    serde_json::from_str::<Value>(out.lines().last().unwrap()).unwrap()["session_id"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Every line of a transcript and of its subagents', in no order.
fn lines(folder: &Path) -> BTreeSet<String> {
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            lines.extend(self::lines(&path));
        } else if path.extension().is_some_and(|extension| extension == "jsonl") {
            lines.extend(fs::read_to_string(path).unwrap().lines().map(str::to_owned));
        }
    }
    lines
}

#[test]
fn a_session_of_the_real_cli_is_mirrored_and_resumed_on_another_machine() {
    let (Some(client), Some(here), Some(there)) = (typescript(), Home::new(), Home::new()) else {
        return cannot("Claude Code cannot be installed");
    };
    for (name, served) in stores() {
        eprintln!("on {name}");
        let token = served.run(&["token", "ci", "--namespace", "team"]);
        // The same path on both, as a container has it; everything else of the first one is gone.
        let cwd = tempfile::tempdir().unwrap();
        let agent = Prompt::new("Look into it.").says("I looked.");
        let input = json!({ "description": "look", "prompt": agent.to_string(), "subagent_type": "general-purpose", "run_in_background": false });
        let tool = if here.program().is_at_least("2.1.100") { "Agent" } else { "Task" };
        let first = Prompt::new("The word is heliotrope.").calls(tool, input).says("I shall remember it.");
        let id = turn(&here, client, &served, token.trim(), cwd.path(), &first, None);
        let projects = here.config().join("projects");
        let written = lines(&projects);
        assert!(written.len() > 5, "{written:?}");
        let stored: Vec<Value> = served
            .run(&["list", "--all", "--json"])
            .lines()
            .map(|it| serde_json::from_str(it).unwrap())
            .collect();
        assert_eq!(stored.len(), 2, "the session and its subagent: {stored:?}");
        let mut kept = BTreeSet::new();
        for session in &stored {
            let shown = served.run(&["show", session["session_id"].as_str().unwrap(), "--json"]);
            kept.extend(shown.lines().map(str::to_owned));
        }
        // Some lines the CLI keeps to itself, or writes when its host has left; none of the conversation is among them.
        let value = |line: &String| serde_json::from_str::<Value>(line).unwrap();
        let kept: Vec<Value> = kept.iter().map(value).collect();
        let missing = written.iter().map(value).filter(|line| !kept.contains(line));
        let missing: Vec<Value> = missing.filter(|line| line["uuid"].is_string()).collect();
        assert_eq!(missing, [] as [Value; 0]);
        fs::remove_dir_all(here.config()).unwrap();

        let before = there.api().requests().len();
        let second = Prompt::new("Which word was it?").says("Heliotrope.");
        assert_eq!(turn(&there, client, &served, token.trim(), cwd.path(), &second, Some(&id)), id);
        let asked: String = there.api().requests()[before..]
            .iter()
            .map(|request| request.body["messages"].to_string())
            .collect();
        assert!(
            asked.contains("The word is heliotrope.") && asked.contains("I shall remember it."),
            "{asked}"
        );
        let main =
            stored.iter().find(|session| session["session_id"].as_str().unwrap().ends_with(&id)).unwrap();
        let all = served.run(&["show", main["session_id"].as_str().unwrap(), "--json"]);
        assert!(all.contains("Which word was it?") && all.contains("The word is heliotrope."), "{all}");
    }
}

#[test]
fn a_token_is_made_shown_once_listed_and_ended() {
    let served = Served::on_files();
    let token = served.run(&["token", "laptop"]);
    assert!(token.starts_with("rtk_") && token.trim().len() == 68, "{token}");
    let listed = served.run(&["token", "--json"]);
    assert!(
        listed.contains(r#""name":"laptop","namespace":"default""#) && !listed.contains(token.trim()),
        "{listed}"
    );
    assert!(served.run(&["token"]).starts_with("laptop  "));
    served.run(&["token", "laptop", "--revoke"]);
    assert_eq!(served.run(&["token", "--json"]), "");
}
