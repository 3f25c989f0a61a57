//! The keeper as people run it: the binary, the real CLI, and a keeper that dies.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rethread_keeper::{Attention, AttentionState, Client};
use rethread_testkit::{Home, Prompt, Reply, cannot};
use serde_json::{Value, json};

use crate::kit::until;

/// A home with the real CLI, and a keeper of its own process.
struct Desk {
    home: Home,
    keeper: Option<Child>,
}

impl Desk {
    fn new() -> Option<Self> {
        let Some(home) = Home::new() else {
            cannot("Claude Code cannot be installed");
            return None;
        };
        let mut desk = Self { home, keeper: None };
        desk.start();
        Some(desk)
    }

    fn start(&mut self) {
        let program = self.home.program().path.clone();
        let mut command =
            self.command(&["serve", "--listen", "127.0.0.1:0", "--claude-bin", program.to_str().unwrap()]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("The keeper is ready"), "{line:?}");
        self.keeper = Some(child);
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
        command.args(words).current_dir(self.project()).stdin(Stdio::null());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("LANG", "C.UTF-8");
        command.env("HOME", self.home.path()).env("RETHREAD_HOME", self.home.path().join("rethread"));
        command
            .env("CLAUDE_CONFIG_DIR", self.home.config())
            .env("CLAUDE_CODE_TMPDIR", self.home.path().join("tmp"));
        command.env("ANTHROPIC_API_KEY", "sk-ant-dummy").env("ANTHROPIC_BASE_URL", self.home.api().url());
        for switch in [
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
            "DISABLE_TELEMETRY",
            "DISABLE_AUTOUPDATER",
            "DISABLE_ERROR_REPORTING",
            "IS_SANDBOX",
            "CLAUDE_CODE_MAX_RETRIES",
        ] {
            command.env(switch, "1");
        }
        command
    }

    fn run(&self, words: &[&str]) -> (i32, String, String) {
        let output = self.command(words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
    }

    fn project(&self) -> PathBuf {
        self.home.project().canonicalize().unwrap()
    }

    fn ask<T>(&self, work: impl AsyncFnOnce(Client) -> rethread_keeper::Result<T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = Client::new(&self.home.path().join("rethread/keeper"));
        runtime.block_on(work(client)).unwrap()
    }

    fn create(&self, prompt: &Prompt) -> String {
        let body = json!({ "cwd": self.project(), "prompt": prompt.to_string() });
        let card: Value = self.ask(async |client| client.post("/sessions", &body).await);
        card["session_id"].as_str().unwrap().to_owned()
    }

    fn requests(&self) -> Vec<Attention> {
        let (code, out, err) = self.run(&["attention", "--all", "--json"]);
        assert_eq!(code, 0, "{err}");
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn state(&self, session: &str) -> String {
        self.card(session)["state"].as_str().unwrap().to_owned()
    }

    fn card(&self, session: &str) -> Value {
        self.ask(async |client| client.get(&format!("/sessions/{session}")).await)
    }

    /// Returns the agents and guards that run in this home.
    fn processes(&self) -> usize {
        let mark = self.home.config().to_str().unwrap().to_owned();
        let processes = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
            let cmdline = fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let is_agent =
                cmdline.contains("--permission-prompt-tool") || cmdline.contains("__rethread_guard");
            is_agent
                && fs::read_to_string(entry.path().join("environ"))
                    .is_ok_and(|environ| environ.contains(&mark))
        });
        processes.count()
    }
}

impl Desk {
    fn epoch(&self) -> String {
        let info: Value = self.ask(async |client| client.get("/info").await);
        info["epoch"].as_str().unwrap().to_owned()
    }

    /// Returns what a client hears of a session that has heard everything up to a number.
    fn events(&self, id: &str, epoch: &str, seq: u64) -> Value {
        self.ask(async |client| client.get(&format!("/events?topics=session:{id}&after={epoch}:{seq}")).await)
    }

    /// Whoever was cut off at any event of the keeper that was killed, and then at any event of the next one, knows what
    /// is lost and what was asked again, and was told each of it once.
    #[track_caller]
    fn is_told_once_to_whoever_is_cut_off(&self, id: &str, first: &str, asked: &Value) {
        let seq = |event: &Value| event["seq"].as_u64().unwrap();
        // An outcome has the request's id alone.
        let request = |it: &Value| it["shown"]["id"].as_str().or(it["id"].as_str()).unwrap().to_owned();
        for event in asked["items"].as_array().unwrap() {
            assert_eq!(
                self.events(id, first, seq(event))["resync"],
                true,
                "those numbers were another keeper's"
            );
        }
        let info = || -> Value { self.ask(async |client| client.get("/info").await) };
        until("nothing more happens", || {
            let before = info();
            std::thread::sleep(Duration::from_secs(1));
            (info()["seq"] == before["seq"]).then_some(())
        });
        let (epoch, mut attention) = (self.epoch(), std::collections::BTreeMap::new());
        let all = self.events(id, &epoch, 0);
        let all = all["items"].as_array().unwrap();
        let told = |kind: &str| all.iter().filter(|event| event["type"] == kind).count();
        assert_eq!(["attention.lost", "attention.requested", "attention.decided"].map(told), [1, 1, 1]);
        for (at, event) in all.iter().enumerate() {
            let rest = self.events(id, &epoch, seq(event));
            assert_eq!(rest["items"].as_array().unwrap(), &all[at + 1..], "after {event}");
            if event["type"].as_str().unwrap().starts_with("attention.") {
                attention.insert(request(&event["data"]), event["data"]["state"].clone());
            }
        }
        let shown: Value = self.ask(async |client| client.get("/attention").await);
        let shown = shown["items"].as_array().unwrap().iter();
        let shown = shown.map(|it| (request(it), it["state"].clone())).collect();
        assert_eq!(attention, shown);
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(mut keeper) = self.keeper.take() {
            drop(keeper.kill());
            drop(keeper.wait());
        }
    }
}

/// Returns the program in a home where there is nothing yet.
fn bare(home: &Path, rethread: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rethread"));
    command.args(words).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.env("HOME", home).env("RETHREAD_HOME", rethread).stdin(Stdio::null());
    command
}

#[test]
fn a_pending_approval_is_lost_with_its_keeper_and_asked_again_by_name() {
    let Some(mut desk) = Desk::new() else { return };
    let file = desk.project().join("precious.txt");
    let first = desk.epoch();
    let input = json!({ "file_path": file, "content": "written" });
    let write = || Prompt::new("Write it.").calls("Write", input.clone()).says("Done.");
    let id = desk.create(&write());
    let pending = until("somebody is asked", || desk.requests().into_iter().next());
    assert_eq!((pending.state, pending.shown.tool_name.as_str()), (AttentionState::Pending, "Write"));
    let asked = desk.events(&id, &first, 0);
    assert_eq!(asked["resync"], false);
    let mut keeper = desk.keeper.take().unwrap();
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    until("no agent outlives its keeper", || (desk.processes() == 0).then_some(()));
    assert!(!file.try_exists().unwrap(), "nothing unanswered was allowed");

    desk.start();
    let lost = desk.requests();
    assert_eq!((lost.len(), lost[0].state), (1, AttentionState::Lost));
    let (code, _, err) = desk.run(&["attention", &pending.shown.id, "--allow"]);
    assert!(code == 1 && err.contains("waits"), "{err}");
    // It goes on, and asks again: linked to what was lost, and decided by nobody yet.
    let (code, _, err) = desk.run(&["send", &id, &write().to_string()]);
    assert_eq!(code, 0, "{err}");
    let again = until("it is asked again", || {
        desk.requests().into_iter().find(|it| it.state == AttentionState::Pending)
    });
    assert_eq!(again.repeats.as_deref(), Some(pending.shown.id.as_str()));
    assert!(!file.try_exists().unwrap());
    let (code, _, err) = desk.run(&["attention", &again.shown.id[..8], "--allow"]);
    assert_eq!((code, err.as_str()), (0, "Allowed: Write.\n"));
    until("it is written", || fs::read_to_string(&file).ok().filter(|text| text == "written"));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    desk.is_told_once_to_whoever_is_cut_off(&id, &first, &asked);
    let (code, _, err) = desk.run(&["stop"]);
    assert_eq!((code, err.as_str()), (0, "The keeper has ended.\n"));
    until("no guard is left", || (desk.processes() == 0).then_some(()));
    let (code, _, err) = desk.run(&["send", &id, "x"]);
    assert_eq!((code, err.as_str()), (1, "error: no keeper runs\nhint: `rethread serve` starts one\n"));
}

#[test]
fn a_prompt_that_waits_when_the_keeper_is_killed_waits_in_the_next_one_and_is_said_once() {
    let Some(mut desk) = Desk::new() else { return };
    let gate = desk.home.path().join("gate");
    let id = desk.create(&Prompt::new("First.").reply(Reply::text("One.").once(&gate)));
    until("it is being answered", || (!desk.home.api().requests().is_empty()).then_some(()));
    let (code, _, err) = desk.run(&["send", &id, "--queue", &Prompt::new("second").says("Two.").to_string()]);
    assert_eq!((code, err.as_str()), (0, "It waits for its turn.\n"));
    let mut keeper = desk.keeper.take().unwrap();
    keeper.kill().unwrap();
    keeper.wait().unwrap();
    until("no agent outlives its keeper", || (desk.processes() == 0).then_some(()));
    fs::write(&gate, "").unwrap();

    desk.start();
    let (queue, messages) = (format!("/sessions/{id}/queue"), format!("/sessions/{id}/messages?limit=500"));
    let left: Value = desk.ask(async |client| client.get(&queue).await);
    assert_eq!((left["items"].as_array().unwrap().len(), &left["held"]), (1, &json!(true)), "{left}");
    let _: Value = desk.ask(async |client| client.post(&format!("{queue}/resume"), &json!({})).await);
    until("it was answered", || {
        let page: Value = desk.ask(async |client| client.get(&messages).await);
        let said = page.to_string();
        let is_over = said.contains("\"text\":\"Two.\"") && desk.state(&id) == "idle";
        is_over.then(|| assert_eq!(said.matches("second ").count(), 1, "{said}"))
    });
}

#[test]
fn an_agent_cannot_approve_itself() {
    let Some(desk) = Desk::new() else { return };
    let program = env!("CARGO_BIN_EXE_rethread");
    // Directly, and through a process that has left its family behind.
    let command = format!(
        "{program} attention > asked.txt 2>&1; env > env.txt; \
         (setsid sh -c 'sleep 0.5; {program} status > fled.txt 2>&1; touch fled' &) ; sleep 2"
    );
    let prompt =
        Prompt::new("Try.").calls("Bash", json!({ "command": command, "description": "try" })).says("Tried.");
    let id = desk.create(&prompt);
    let request = until("somebody is asked", || desk.requests().into_iter().next());
    assert_eq!(desk.run(&["attention", &request.shown.id, "--allow"]).0, 0);
    until("both have tried", || desk.project().join("fled").try_exists().unwrap().then_some(()));
    for name in ["asked.txt", "fled.txt"] {
        let said = fs::read_to_string(desk.project().join(name)).unwrap();
        assert!(said.contains("an agent asks that this keeper drives"), "{name}: {said}");
    }
    let token = fs::read_to_string(desk.home.path().join("rethread/keeper/token")).unwrap();
    let environment = fs::read_to_string(desk.project().join("env.txt")).unwrap();
    assert!(environment.contains("RETHREAD_HOME") && !environment.contains(token.trim()));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
}

#[test]
fn a_terminal_sends_watches_and_interrupts() {
    let Some(desk) = Desk::new() else { return };
    let id = desk.create(&Prompt::new("Begin.").says("Begun."));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    let (code, out, err) =
        desk.run(&["send", &id[..8], &Prompt::new("Say it.").says("Said.").to_string(), "--watch"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("assistant: Said."), "{out}");
    assert_eq!(desk.run(&["interrupt", &id]).2, "No turn runs.\n");
    let (code, out, _) = desk.run(&["status"]);
    assert!(
        code == 0 && out.contains("The keeper runs at http://localhost:") && out.contains("It drives"),
        "{out}"
    );
    let (code, out, _) = desk.run(&["open", &id]);
    assert!(
        code == 0 && out.contains("#boot=") && out.trim_end().ends_with(&format!("&session={id}")),
        "{out}"
    );
    let (code, out, _) = desk.run(&["logs", "--audit"]);
    assert!(code == 0 && out.contains("\"create\""), "{out}");
}

#[test]
fn a_terminal_allows_for_the_session_and_denies_with_words_for_the_model() {
    let Some(desk) = Desk::new() else { return };
    let shell = |command: &str| {
        let input = json!({ "command": command, "description": "run" });
        Prompt::new("Run it.").calls("Bash", input).says("Done.")
    };
    let pending = || desk.requests().into_iter().find(|it| it.state == AttentionState::Pending);
    let id = desk.create(&shell("touch one"));
    let request = until("somebody is asked", pending);
    // A list says of it what the keeper says, which learns its name a moment later.
    let listed = until("a list says what the keeper says", || {
        let (_, listed, _) = desk.run(&["list", "--json"]);
        let line = listed.lines().find(|line| line.contains(&id))?.to_owned();
        let (listed, card): (Value, Value) = (serde_json::from_str(&line).unwrap(), desk.card(&id));
        card.as_object()?.iter().all(|(name, value)| listed[name] == *value).then_some(listed)
    });
    assert_eq!(listed["state"], "waiting");
    let (_, listed, _) = desk.run(&["list"]);
    assert!(listed.contains("[needs you] "), "{listed}");
    // What nobody can mean is refused before anybody decides.
    let wrong: [&[&str]; 4] =
        [&["--session"], &["--deny", "--session"], &["--allow", "--deny"], &["--allow", "--message", "x"]];
    for words in wrong {
        assert_eq!(desk.run(&[&["attention", &request.shown.id], words].concat()).0, 2, "{words:?}");
    }
    assert_eq!(desk.run(&["attention", &request.shown.id]).0, 2);
    let (code, out, err) = desk.run(&["attention", &request.shown.id, "--allow", "--session", "--json"]);
    let decided: Attention = serde_json::from_str(&out).unwrap();
    assert_eq!((code, err.as_str(), decided.state), (0, "", AttentionState::Allowed));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    // The same runs unasked, and something else does not.
    fs::remove_file(desk.project().join("one")).unwrap();
    assert_eq!(desk.run(&["send", &id, &shell("touch one").to_string(), "--watch"]).0, 0);
    assert!(desk.project().join("one").try_exists().unwrap());
    assert_eq!(desk.requests().len(), 1);
    let file = desk.project().join("two");
    let write = Prompt::new("Write it.").calls("Write", json!({ "file_path": file, "content": "2" }));
    assert_eq!(desk.run(&["send", &id, &write.says("As you like.").to_string()]).0, 0);
    let request = until("somebody is asked", pending);
    let (code, out, _) = desk.run(&["attention"]);
    assert!(code == 0 && out.contains("Write") && out.contains(file.to_str().unwrap()), "{out}");
    let said = desk.run(&["attention", &request.shown.id[..8], "--deny", "--message", "Ask Ada about two."]);
    assert_eq!((said.0, said.2.as_str()), (0, "Denied: Write.\n"));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    let told = desk.home.api().requests().last().unwrap().body["messages"].to_string();
    assert!(told.contains("Ask Ada about two."), "{told}");
    assert!(!file.try_exists().unwrap());
    assert_eq!(desk.run(&["attention"]).2, "Nothing waits for you.\n");
}

#[test]
fn a_turn_is_watched_from_one_terminal_and_interrupted_from_another() {
    let Some(desk) = Desk::new() else { return };
    let id = desk.create(&Prompt::new("Begin.").says("Begun."));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    let watch = |words: &[&str]| {
        let mut command = desk.command(&[&["watch", &id], words].concat());
        let mut child = Ended(command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap());
        let (told, lines) = std::sync::mpsc::channel();
        let out = BufReader::new(child.0.stdout.take().unwrap());
        // Nobody listens any more when the test is over.
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        (child, lines)
    };
    let ((_text, lines), (_json, events)) = (watch(&[]), watch(&["--json"]));
    // Whoever watches hears what is said from then on.
    let (mut hears, mut hears_too) = (false, false);
    until("both watch", || {
        let ping = Prompt::new("Ping.").says("Pong.").to_string();
        assert_eq!(desk.run(&["send", &id, &ping, "--watch"]).0, 0);
        hears |= lines.try_iter().any(|line| line == "assistant: Pong.");
        hears_too |= events.try_iter().any(|event| event.contains("Pong."));
        (hears && hears_too).then_some(())
    });
    let prompt = Prompt::new("Think.").reply(Reply::text("Half of it").hanging());
    let (code, out, _) = desk.run(&["send", &id, &prompt.to_string(), "--json"]);
    let accepted: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &accepted["queued"]), (0, &json!(false)));
    let message = accepted["client_message_id"].as_str().unwrap().to_owned();
    until("the turn runs", || (desk.state(&id) == "running").then_some(()));
    let event = |kind: &str| {
        let all = events.iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
        all.into_iter().find(|event| event["type"] == kind && event["data"].to_string().contains(&message))
    };
    event("turn.started").unwrap();
    // A second prompt is refused with a name that programs know.
    let (code, _, err) = desk.run(&["send", &id, "And?", "--json"]);
    let problem: Value = serde_json::from_str(&err).unwrap();
    assert_eq!((code, &problem["code"], &problem["retryable"]), (1, &json!("busy"), &json!(true)));
    let (code, _, err) = desk.run(&["rewind", &id, "--to", "anything"]);
    assert_eq!((code, err.lines().next().unwrap()), (1, "error: a turn of this session runs"), "{err}");
    assert_eq!(desk.run(&["interrupt", &id[..8]]).2, "The turn ends.\n");
    assert!(lines.iter().any(|line| line == "the turn was interrupted"));
    assert_eq!(event("turn.interrupted").unwrap()["topic"], format!("session:{id}"));
    until("the session rests", || (desk.state(&id) == "idle").then_some(()));
    assert_eq!(desk.run(&["interrupt", &id]).2, "No turn runs.\n");
}

#[test]
fn a_rewind_offers_to_take_the_conversation_back_as_far_and_does_so_when_asked() {
    let Some(desk) = Desk::new() else { return };
    let file = desk.project().join("greeting.txt");
    fs::write(&file, "hello\n").unwrap();
    let id = desk.create(&Prompt::new("Remember 7.").says("Seven."));
    until("the turn ends", || (desk.state(&id) == "idle").then_some(()));
    let input = json!({ "command": "echo goodbye > greeting.txt", "description": "change it" });
    let prompt = Prompt::new("Change it.").calls("Bash", input).says("Changed.").to_string();
    assert_eq!(desk.run(&["send", &id, &prompt]).0, 0);
    let request = until("somebody is asked", || desk.requests().into_iter().next());
    assert_eq!(desk.run(&["attention", &request.shown.id, "--allow"]).0, 0);
    until("all of it is written down", || {
        let page: Value = desk.ask(async |client| client.get(&format!("/sessions/{id}/messages")).await);
        let items = page["items"].as_array().unwrap();
        let is_written = items.iter().all(|item| item["provisional"] == false);
        (is_written && page.to_string().contains("Changed.") && desk.state(&id) == "idle").then_some(())
    });
    let message = request.message.clone().unwrap();
    let rewind = |words: &[&str]| desk.run(&[&["rewind", &id, "--to", &message], words].concat());
    let (code, _, err) = rewind(&[]);
    assert_eq!((code, fs::read_to_string(&file).unwrap().as_str()), (0, "hello\n"), "{err}");
    // What is offered is a command that does it.
    let offer = err.lines().find_map(|line| line.strip_prefix("hint: `rethread fork ")).unwrap();
    let words: Vec<&str> = offer.split('`').next().unwrap().split(' ').collect();
    let (code, by_hand, err) = desk.run(&[&["fork"], &words[..]].concat());
    assert_eq!(code, 0, "{err}");
    fs::write(&file, "goodbye\n").unwrap();
    let (code, forked, err) = rewind(&["--fork", "--force", "greeting.txt"]);
    assert_eq!((code, fs::read_to_string(&file).unwrap().as_str()), (0, "hello\n"), "{err}");
    let forked = forked.lines().last().unwrap();
    for fork in [by_hand.trim_end(), forked] {
        let said = desk.run(&["show", fork]).1;
        assert!(said.contains("Seven.") && !said.contains("Changed."), "{said}");
    }
    assert!(desk.run(&["show", &id]).1.contains("Changed."), "the old conversation is as it was");
    // The keeper goes on with it, and knows no more than it should.
    let (code, out, err) =
        desk.run(&["send", forked, &Prompt::new("Which number?").says("It was 7.").to_string(), "--watch"]);
    assert!(code == 0 && out.contains("It was 7."), "{out}{err}");
    // Nothing stands before the first message, and that is known before a file is touched.
    fs::write(&file, "mine\n").unwrap();
    let page: Value = desk.ask(async |client| client.get(&format!("/sessions/{id}/messages")).await);
    let first = page["items"][0]["uuid"].as_str().unwrap().to_owned();
    let (code, _, err) = desk.run(&["rewind", &id, "--to", &first, "--fork", "--force", "greeting.txt"]);
    assert!(code == 1 && err.contains("nothing to fork"), "{err}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
}

#[test]
fn a_keeper_in_the_background_outlives_its_terminal_and_is_there_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let run = |words: &[&str]| {
        let output = bare(folder.path(), &folder.path().join("r"), words).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    let begin = ["serve", "--background", "--listen", "127.0.0.1:0", "--traces"];
    let (code, out, err) = run(&begin);
    assert!(code == Some(0) && out.starts_with("The keeper is ready"), "{out}{err}");
    assert!(err.contains("`rethread stop` ends it"), "{err}");
    let (code, out, _) = run(&["status"]);
    assert!(code == Some(0) && out.contains("The keeper runs at"), "{out}");
    // Secrets, where they belong and where they do not.
    let address = fs::read_to_string(folder.path().join("r/keeper/address")).unwrap();
    let token = fs::read_to_string(folder.path().join("r/keeper/token")).unwrap().trim().to_owned();
    let code = run(&["open"]).1;
    let code = code.trim().rsplit_once("#boot=").unwrap().1.to_owned();
    let secrets = [token.clone(), code.clone()];
    for request in [
        format!("GET /api/v1/info?token={token} HTTP/1.1\r\n"),
        format!("GET /{token} HTTP/1.1\r\n"),
        format!("GET /api/v1/sessions HTTP/1.1\r\nAuthorization: Bearer {token}\r\nReferer: /?{token}\r\n"),
        format!("GET /?boot={code} HTTP/1.1\r\nUser-Agent: {token}\r\nCookie: rethread={code}\r\n"),
    ] {
        let host = address.trim().trim_start_matches("http://");
        let mut stream = std::net::TcpStream::connect(host.replace("localhost", "127.0.0.1")).unwrap();
        write!(stream, "{request}Host: {host}\r\nConnection: close\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
    }
    // A second one says that the first one is there.
    let (code, _, err) = run(&begin);
    assert!(code == Some(1) && err.contains("a keeper runs already"), "{err}");
    assert_eq!(run(&["stop"]).2, "The keeper has ended.\n");
    assert_eq!(run(&["status"]).0, Some(1));
    // How long things took is in a file of its own, for its owner only, and the log is free of it.
    let keeper = folder.path().join("r/keeper");
    let traces = fs::read_to_string(keeper.join("traces.jsonl")).unwrap();
    let spans: Vec<Value> = traces.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let asked = spans.iter().find(|span| span["span"]["path"] == "/api/v1/info").unwrap();
    assert!(asked["span"]["status"] == 200 && asked["fields"]["time.busy"].is_string(), "{asked}");
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &fs::metadata(keeper.join("traces.jsonl")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert!(!fs::read_to_string(keeper.join("log.jsonl")).unwrap().contains("/api/v1/info"));
    // No secret is in anything that is written but its own file, whatever somebody put where.
    for entry in fs::read_dir(&keeper).unwrap().map(Result::unwrap) {
        let is_kept = entry.file_type().unwrap().is_file() && entry.file_name() != "token";
        let text = if is_kept { fs::read(entry.path()).unwrap() } else { Vec::new() };
        let text = String::from_utf8_lossy(&text);
        for secret in &secrets {
            assert!(!text.contains(secret.as_str()), "{:?} holds a secret", entry.file_name());
        }
    }
}

/// Point 10: a hook before every tool is the dead man's switch. What needs no approval does not run either while nobody
/// is there who could take it back.
#[test]
fn no_tool_runs_while_the_keeper_cannot_answer_nor_after_it_was_killed() {
    let Some(mut desk) = Desk::new() else { return };
    let gate = desk.home.path().join("gate");
    let file = desk.project().join("written.txt");
    let call = Reply::default().tool("Write", json!({ "file_path": file, "content": "nobody saw this" }));
    let prompt = Prompt::new("Write it.").reply(call.once(&gate)).says("Done.");
    let body =
        json!({ "cwd": desk.project(), "prompt": prompt.to_string(), "permission_mode": "acceptEdits" });
    let card: Value = desk.ask(async |client| client.post("/sessions", &body).await);
    let id = card["session_id"].as_str().unwrap();
    until("the model is asked", || {
        desk.home.api().requests().iter().any(|it| it.body.to_string().contains("Write it.")).then_some(())
    });
    let keeper = rustix::process::Pid::from_child(desk.keeper.as_ref().unwrap());
    rustix::process::kill_process(keeper, rustix::process::Signal::STOP).unwrap();
    fs::write(&gate, "").unwrap();
    let said = || {
        let mut folders = fs::read_dir(desk.home.config().join("projects")).ok()?.flatten();
        let text = folders.find_map(|it| fs::read_to_string(it.path().join(format!("{id}.jsonl"))).ok())?;
        text.contains("\"type\":\"tool_use\"").then_some(())
    };
    until("the agent wants to write", said);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!file.try_exists().unwrap());
    rustix::process::kill_process(keeper, rustix::process::Signal::KILL).unwrap();
    drop(desk.keeper.take().unwrap().wait());
    until("its agent and guard have ended", || (desk.processes() == 0).then_some(()));
    assert!(!file.try_exists().unwrap());
}

/// Claudekeeper's fault 3: every call read every byte of every transcript.
#[test]
fn a_call_reads_what_it_needs_and_not_every_transcript() {
    let folder = tempfile::tempdir().unwrap();
    let claude = folder.path().join("claude");
    let project = claude.join("projects/-tmp");
    fs::create_dir_all(&project).unwrap();
    let ids: Vec<String> =
        (0..60).map(|number| format!("8f529643-98e0-4045-abbb-6f2887e6ce{number:02}")).collect();
    let hour_ago = std::time::SystemTime::now() - Duration::from_secs(3600);
    for id in &ids {
        let (mut text, mut parent) = (String::new(), Value::Null);
        for number in 0..100 {
            let uuid = format!("{}-{number:04}", &id[..31]);
            let (role, said) =
                if number % 2 == 0 { ("user", "a prompt ") } else { ("assistant", "an answer ") };
            let entry = json!({
                "type": role, "uuid": uuid, "parentUuid": parent, "sessionId": id, "cwd": "/tmp", "version": "2.1.325",
                "timestamp": "2026-01-01T00:00:00Z", "message": { "role": role, "content": said.repeat(500) },
            });
            text += &format!("{entry}\n");
            parent = json!(uuid);
        }
        let path = project.join(format!("{id}.jsonl"));
        fs::write(&path, text).unwrap();
        fs::File::options().append(true).open(path).unwrap().set_modified(hour_ago).unwrap();
    }
    let words = ["serve", "--listen", "127.0.0.1:0", "--claude-dir", claude.to_str().unwrap()];
    let mut serve = bare(folder.path(), &folder.path().join("r"), &words);
    let mut keeper = Ended(serve.stdout(Stdio::piped()).spawn().unwrap());
    BufReader::new(keeper.0.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::new(&folder.path().join("r/keeper"));
    let get = |path: String| runtime.block_on(client.get::<Value>(&path)).unwrap();
    until("everything was counted", || {
        let page = get("/sessions?limit=500".into());
        let items = page["items"].as_array().unwrap();
        (items.len() == ids.len() && items.iter().all(|it| it["message_count"] == 100)).then_some(())
    });
    let read = || -> u64 {
        let io = fs::read_to_string(format!("/proc/{}/io", keeper.0.id())).unwrap();
        io.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse().unwrap()
    };
    let before = read();
    for (number, id) in ids.iter().enumerate().step_by(10) {
        get("/sessions".into());
        get(format!("/sessions/{id}"));
        get(format!("/sessions/{id}/messages?limit=10"));
        runtime.block_on(client.delete::<Value>(&format!("/sessions/{}", ids[number + 1]))).unwrap();
    }
    let (read, all) =
        (read() - before, fs::metadata(project.join(format!("{}.jsonl", ids[0]))).unwrap().len() * 60);
    assert!(read * 3 < all, "{read} of {all} bytes");
}

/// A process that ends with its test, however that ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[test]
fn a_demo_edits_files_asks_and_can_be_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let command = |home: &Path, words: &[&str]| bare(folder.path(), home, words);
    let mut serve = command(folder.path(), &["serve", "--demo", "--listen", "127.0.0.1:0"]);
    let mut child = Ended(serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let child = &mut child.0;
    let (mut ready, mut told) = (String::new(), String::new());
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    assert!(ready.starts_with("The demo is ready"), "{ready}");
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    while !told.contains("RETHREAD_HOME=") {
        told.clear();
        assert_ne!(lines.read_line(&mut told).unwrap(), 0);
    }
    let home = PathBuf::from(told.split("RETHREAD_HOME=").nth(1).unwrap().split('`').next().unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::new(&home.join("keeper"));
    let get = |path: &str| runtime.block_on(client.get::<Value>(path)).unwrap();
    assert_eq!(get("/info")["demo"], true);
    let status = command(&home, &["status"]).output().unwrap();
    assert!(String::from_utf8(status.stdout).unwrap().contains("It is a demonstration"));
    for tool in ["Write", "Bash"] {
        let request =
            until("the agent asks", || get("/attention?state=pending")["items"][0].as_object().cloned());
        assert_eq!(request["shown"]["tool_name"], tool);
        let id = request["shown"]["id"].as_str().unwrap();
        assert!(command(&home, &["attention", id, "--allow"]).status().unwrap().success());
        until("it was taken", || {
            get("/attention?state=pending")["items"][0]["shown"]["id"].ne(id).then_some(())
        });
    }
    let session = until("the turn ends", || {
        let card = get("/sessions")["items"][0].clone();
        (card["state"] == "idle" && card["first_prompt"].is_string()).then_some(card)
    });
    let id = session["session_id"].as_str().unwrap().to_owned();
    assert_eq!(session["name"], "Demo: greet the world", "{session}");
    // The terminal that was suggested shows the demo's session, and says each time what it is.
    for words in [&["list"][..], &["attention"], &["open", &id]] {
        let output = command(&home, words).output().unwrap();
        let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        assert!(output.status.success() && err.starts_with("This is the demo: "), "{words:?}: {out}{err}");
        assert_eq!(out.contains("Demo: greet the world"), words == ["list"], "{out}");
    }
    let listed = command(&home, &["list", "--json"]).output().unwrap();
    let card: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((card["session_id"].as_str(), listed.stderr.as_slice()), (Some(id.as_str()), &b""[..]));
    assert!(!folder.path().join(".cache").try_exists().unwrap(), "nothing of the demo is elsewhere");
    let project = home.with_file_name("demo-project");
    assert!(fs::read_to_string(project.join("greeting.txt")).unwrap().contains("demo"));
    assert!(project.join("made-by-the-shell.txt").try_exists().unwrap());
    let message = get(&format!("/sessions/{id}/messages"))["items"][0]["uuid"].as_str().unwrap().to_owned();
    let post = |path: &str, body: Value| runtime.block_on(client.post::<Value>(path, &body)).unwrap();
    let plan = post(&format!("/sessions/{id}/rewind"), json!({ "to": message, "dry_run": true }));
    let done =
        post(&format!("/sessions/{id}/rewind"), json!({ "to": message, "expect_digest": plan["digest"] }));
    assert_eq!(fs::read_to_string(project.join("greeting.txt")).unwrap(), "Hello.\n", "{done}");
    assert!(!project.join("made-by-the-shell.txt").try_exists().unwrap());
    post(done["undo"].as_str().unwrap().strip_prefix("/api/v1").unwrap(), json!({}));
    assert!(project.join("made-by-the-shell.txt").try_exists().unwrap());
    assert!(command(&home, &["stop"]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(!home.try_exists().unwrap(), "nothing of the demo is left");
}

#[test]
fn a_keeper_without_sessions_shows_the_demo_beside_itself_and_clears_it_away_when_it_ends() {
    let folder = tempfile::tempdir().unwrap();
    let temporary = folder.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_rethread"));
    serve.args(["serve", "--listen", "127.0.0.1:0"]).env_clear();
    serve.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("TMPDIR", &temporary);
    serve.env("HOME", folder.path()).env("RETHREAD_HOME", folder.path().join("home")).stdin(Stdio::null());
    let mut child = Ended(serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap());
    let mut ready = String::new();
    BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut ready).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let client = Client::new(&folder.path().join("home/keeper"));
    let post = |path: &str| runtime.block_on(client.post::<Value>(path, &json!({}))).unwrap();
    let places = || fs::read_dir(&temporary).unwrap().map(|it| it.unwrap().path()).collect::<Vec<_>>();
    assert_eq!(places(), [""; 0].map(PathBuf::from));
    let origin = |url: &Value| url.as_str().unwrap().split("/#").next().unwrap().to_owned();
    let (first, second) = (post("/demo")["url"].clone(), post("/demo")["url"].clone());
    assert_ne!(first, second, "each logs in once");
    assert_eq!(origin(&first), origin(&second), "there is one demo");
    assert_eq!(places().len(), 1);
    let demo = Client::new(&places()[0].join("home/keeper"));
    until("the demo's agent asks", || {
        let asked = runtime.block_on(demo.get::<Value>("/attention?state=pending")).unwrap();
        asked["items"][0].as_object().cloned()
    });
    // Nothing of it is the person's own.
    let own: Value = runtime.block_on(client.get("/sessions")).unwrap();
    assert_eq!(own["items"], json!([]));
    let _: Value = runtime.block_on(client.post("/stop", &json!({}))).unwrap_or_default();
    assert!(child.0.wait().unwrap().success());
    assert_eq!(places(), [""; 0].map(PathBuf::from));
}
