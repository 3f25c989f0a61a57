//! The official SDKs with the adapters in `clients/`, against the real keeper on every store.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod forgetful;
mod served;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use rethread_testkit::{Home, Postgres, Prompt, cannot, package};
use serde_json::{Value, json};

use self::forgetful::Forgetful;
use self::served::Served;
use crate::kit::s3;

/// Every store that a keeper can have, by name. Another one is another line here.
fn stores() -> Vec<(&'static str, Served)> {
    let mut stores = vec![
        ("files", Served::on_files()),
        ("sqlite", Served::on(|path| format!("sqlite:{}.db", path.display()))),
        ("encrypted files", Served::on(|path| format!("encrypted+file:{}", path.display()))),
    ];
    match Postgres::shared() {
        Some(postgres) => stores.push(("postgres", Served::on(|_| postgres.fresh()))),
        None => cannot("PostgreSQL is not installed"),
    }
    stores.extend(s3().map(|store| ("s3", Served::on(|_| store))));
    stores
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns a command of Python's with the SDK and our adapter at hand; `None` where the SDK cannot be had.
fn python(module: &[&str]) -> Option<Command> {
    let sdk = package("agent-sdk-python")?;
    let client = repository().join("clients/python");
    let mut command = Command::new("python3");
    command.args(["-B", "-m"]).args(module).current_dir(&client).env_clear().stdin(Stdio::null());
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
    command.env("PYTHONPATH", format!("{}:{}", client.join("src").display(), sdk.display()));
    Some(command)
}

/// Runs tests of the Python adapter; none of them may be left out.
fn python_tests(tests: &str, served: &Served, proxy: Option<&Forgetful>) {
    let Some(mut command) = python(&["unittest", "-v", tests]) else {
        return cannot("the agent SDK for Python cannot be installed");
    };
    let home = tempfile::tempdir().unwrap();
    command.env("HOME", home.path()).env("RETHREAD_URL", &served.url).env("RETHREAD_TOKEN", &served.token);
    let output = command.envs(proxy.map(|proxy| ("RETHREAD_PROXY", &proxy.url))).output().unwrap();
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
        python_tests("tests.test_conformance", &served, None);
        // What is kept is as whole as any other session.
        served.run(&["verify"]);
    }
}

#[test]
fn the_python_adapter_loses_and_doubles_nothing_though_answers_are_lost() {
    for (name, served) in stores() {
        eprintln!("on {name}");
        let proxy = Forgetful::before(served.port());
        python_tests("tests.test_appends", &served, Some(&proxy));
        assert!(proxy.asked() > 25, "{}", proxy.asked());
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
        assert!(proxy.asked() > 25, "{}", proxy.asked());
    }
}

/// What a program of somebody's own does with the adapter that it has installed: say something, and read it back.
const USE_IN_NODE: &str = r#"
import { RethreadSessionStore } from "rethread-session-store";
const store = RethreadSessionStore.fromEnvironment();
const key = { projectKey: "p", sessionId: "8f529643-98e0-4045-abbb-6f2887e6ce71" };
await store.append(key, [{ type: "user", uuid: "u1" }]);
console.log(JSON.stringify(await store.load(key)));
"#;
const USE_IN_PYTHON: &str = r#"
import asyncio, json
from rethread_session_store import RethreadSessionStore
async def main():
    key = {"project_key": "p", "session_id": "00529643-98e0-4045-abbb-6f2887e6ce71"}
    async with RethreadSessionStore.from_environment() as store:
        await store.append(key, [{"type": "user", "uuid": "u1"}])
        print(json.dumps(await store.load(key)))
asyncio.run(main())
"#;

#[test]
fn what_is_published_of_each_adapter_works_in_a_project_that_has_nothing_else() {
    let (served, folder) = (Served::on_files(), tempfile::tempdir().unwrap());
    let folder = folder.path();
    let run = |command: &mut Command| {
        command.stdin(Stdio::null()).current_dir(folder);
        command.env("RETHREAD_URL", &served.url).env("RETHREAD_TOKEN", &served.token);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let Some(sdk) = package("agent-sdk-python") else {
        return cannot("the agent SDK for Python cannot be installed");
    };
    if typescript().is_none() {
        return;
    }
    run(Command::new(repository().join("scripts/clients")).args(["pack", folder.to_str().unwrap()]));
    let packed = |extension: &str| {
        let mut files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        files.find(|path| path.extension().is_some_and(|it| it == extension)).unwrap()
    };

    fs::write(folder.join("package.json"), r#"{"type":"module"}"#).unwrap();
    fs::write(folder.join("use.js"), USE_IN_NODE).unwrap();
    let install = ["install", "--omit=optional", "--no-audit", "--no-fund", "--loglevel=error"];
    run(Command::new("npm").args(install).arg(packed("tgz")));
    assert_eq!(run(Command::new("node").arg("use.js")), "[{\"type\":\"user\",\"uuid\":\"u1\"}]\n");
    let installed = folder.join("node_modules/rethread-session-store");
    assert!(installed.join("dist/index.d.ts").is_file() && installed.join("LICENSE-MIT").is_file());

    // An environment that has the SDK, which is large, and nothing else of this machine: what the wheel says it needs is found
    // there, or fetched.
    let (environment, python) = (folder.join("python"), folder.join("python/bin/python"));
    run(Command::new("python3").args(["-m", "venv", "--without-pip"]).arg(&environment));
    let ask = ["-c", "import sysconfig; print(sysconfig.get_path('purelib'))"];
    let target = PathBuf::from(run(Command::new(&python).args(ask)).trim());
    fs::write(target.join("sdk.pth"), sdk.to_str().unwrap()).unwrap();
    let install = ["install", "--quiet", "--disable-pip-version-check", "--root-user-action=ignore"];
    run(Command::new("python3")
        .args(["-m", "pip", "--python"])
        .arg(&python)
        .args(install)
        .arg(packed("whl")));
    fs::write(folder.join("use.py"), USE_IN_PYTHON).unwrap();
    assert_eq!(run(Command::new(&python).arg("use.py")), "[{\"type\": \"user\", \"uuid\": \"u1\"}]\n");
    assert!(target.join("rethread_session_store/py.typed").is_file());
}

/// A program that asks the real CLI through an official SDK, with our adapter.
struct Program<'a> {
    command: Command,
    home: &'a Home,
    served: &'a Served,
    token: &'a str,
}

impl Program<'_> {
    /// Runs one turn, in a directory. Returns the session's id.
    fn turn(mut self, cwd: &Path, prompt: &Prompt, resume: Option<&str>) -> String {
        let command = &mut self.command;
        command.arg(prompt.to_string()).args(resume).envs(self.home.environment()).env("PROJECT", cwd);
        command.env("CLAUDE", &self.home.program().path).env("RETHREAD_URL", &self.served.url);
        command.env("RETHREAD_TOKEN", self.token).env("RETHREAD_NAMESPACE", "team");
        let output = command.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{out}{err}");
        let result: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(result["subtype"], "success", "{out}{err}");
        result["session_id"].as_str().unwrap().to_owned()
    }
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
fn a_session_of_the_real_cli_is_mirrored_and_resumed_on_another_machine_by_either_sdk() {
    let (Some(client), Some(here), Some(there)) = (typescript(), Home::new(), Home::new()) else {
        return cannot("Claude Code cannot be installed");
    };
    for (name, served) in stores() {
        eprintln!("on {name}");
        let token = served.run(&["token", "ci", "--namespace", "team"]);
        let token = token.trim();
        let typescript = |home| {
            let mut command = Command::new("node");
            command.arg(client.join("build/tests/turn.js")).env_clear().stdin(Stdio::null());
            Program { command, home, served: &served, token }
        };
        // The same path on both, as a container has it; everything else of the first one is gone.
        let cwd = tempfile::tempdir().unwrap();
        let agent = Prompt::new("Look into it.").says("I looked.").to_string();
        let input = json!({ "description": "look", "prompt": agent, "subagent_type": "general-purpose", "run_in_background": false });
        let first = Prompt::new("The word is heliotrope.").calls("Agent", input).says("I shall remember it.");
        let id = typescript(&here).turn(cwd.path(), &first, None);
        let stored = sessions(&served);
        assert_eq!(stored.len(), 2, "the session and its subagent: {stored:?}");
        is_mirrored(&here, &served, &stored);
        forget(&here);

        let second = Prompt::new("Which word was it?").says("Heliotrope.");
        let before = there.api().requests().len();
        assert_eq!(typescript(&there).turn(cwd.path(), &second, Some(&id)), id);
        remembers(&there, before, &["The word is heliotrope.", "I shall remember it."]);
        forget(&there);

        let Some(command) = python(&["tests.turn"]) else {
            return cannot("the agent SDK for Python cannot be installed");
        };
        let third = Prompt::new("And once more?").says("Heliotrope it is.");
        let before = here.api().requests().len();
        let program = Program { command, home: &here, served: &served, token };
        assert_eq!(program.turn(cwd.path(), &third, Some(&id)), id);
        remembers(&here, before, &["The word is heliotrope.", "Which word was it?"]);
        let main = stored.iter().find(|session| session.ends_with(&id)).unwrap();
        let all = served.run(&["show", main, "--json"]);
        for said in ["The word is heliotrope.", "Which word was it?", "And once more?", "Heliotrope it is."] {
            assert!(all.contains(said), "{said}: {all}");
        }
        assert_eq!(sessions(&served), stored);
        forget(&here);
    }
}

/// Takes away all that the CLI left in a home.
fn forget(home: &Home) {
    // One that resumed from a store left nothing: the SDK gave it another folder.
    drop(fs::remove_dir_all(home.config()));
    assert!(!home.config().try_exists().unwrap());
}

/// Returns the names of all sessions, children included.
fn sessions(served: &Served) -> Vec<String> {
    let listed = served.run(&["list", "--all", "--json"]);
    let ids = listed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["session_id"].clone());
    let mut ids: Vec<String> = ids.map(|id| id.as_str().unwrap().to_owned()).collect();
    ids.sort();
    ids
}

/// Checks that every message that the CLI wrote here is in the store as it is.
fn is_mirrored(home: &Home, served: &Served, sessions: &[String]) {
    let value = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let mut kept = Vec::new();
    for session in sessions {
        kept.extend(served.run(&["show", session, "--json"]).lines().map(value));
    }
    let written = lines(&home.config().join("projects"));
    // Some lines the CLI keeps to itself, or writes when its host has left; no message is among them.
    let messages = written.iter().map(|line| value(line)).filter(|line| line["uuid"].is_string());
    let messages: Vec<Value> = messages.collect();
    assert!(messages.len() > 5, "{written:?}");
    let missing: Vec<&Value> = messages.iter().filter(|line| !kept.contains(line)).collect();
    assert_eq!(missing, [] as [&Value; 0]);
}

/// Checks what the model was told since some request.
fn remembers(home: &Home, before: usize, said: &[&str]) {
    let requests = home.api().requests();
    let told: String =
        requests[before..].iter().map(|request| request.body["messages"].to_string()).collect();
    assert!(said.iter().all(|said| told.contains(said)), "{told}");
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
