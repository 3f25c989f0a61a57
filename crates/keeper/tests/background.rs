//! What an agent does in the background: it is not cut off, and can be taken back.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::time::Duration;

use rethread_testkit::{Prompt, Reply};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::driving::{Desk, create, decide, live_pid, state, turn, until_state, wait_for_request};
use crate::kit::{Kept, Socket};

fn in_background(command: &str) -> Value {
    json!({ "command": command, "description": "go on", "run_in_background": true })
}

fn until_there(kept: &Kept, file: &std::path::Path) {
    kept.until("the file is there", || file.try_exists().unwrap().then_some(()));
}

#[test]
fn what_a_command_in_the_background_changes_after_its_turn_can_be_taken_back() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let begun = kept.get("/events?topics=all").good()["after"].as_str().unwrap().to_owned();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let (gate, late) = (desk.gate(), desk.project().join("late.txt"));
    fs::write(desk.project().join("kept.txt"), "as it was\n").unwrap();
    let id = create(&kept, &desk, &Prompt::new("First.").says("One."));
    until_state(&kept, &id, "idle");
    let command = format!(
        "until [ -e {} ]; do sleep 0.05; done; echo gone > kept.txt; echo late > late.txt",
        gate.display()
    );
    let (message, _) =
        turn(&kept, &id, &Prompt::new("Go.").calls("Bash", in_background(&command)).says("Began."), "start");
    decide(&kept, &wait_for_request(&kept), "allow").good();
    socket.until("turn.completed");
    socket.until("turn.completed");
    assert!(!late.try_exists().unwrap());
    fs::write(&gate, "").unwrap();
    until_there(&kept, &late);
    let rewind = |body: Value| kept.post(&format!("/sessions/{id}/rewind"), body);
    kept.until("what it changed is known", || {
        let diff = kept.get(&format!("/sessions/{id}/diff?turn={message}")).good();
        (diff["items"].as_array().unwrap().len() == 2).then_some(())
    });
    until_state(&kept, &id, "idle");
    // A command is no subagent, wherever it runs.
    let told = kept.get(&format!("/events?topics=all&after={begun}")).good();
    assert!(!told["items"].to_string().contains("subagent."), "{told}");
    let plan = rewind(json!({ "to": message, "dry_run": true })).good();
    rewind(json!({ "to": message, "expect_digest": plan["digest"] })).good();
    assert_eq!(fs::read_to_string(desk.project().join("kept.txt")).unwrap(), "as it was\n");
    assert!(!late.try_exists().unwrap());
}

#[test]
fn an_agent_with_something_in_the_background_is_not_idle() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper_with(|settings| settings.idle = Duration::from_millis(300));
    let (gate, late) = (desk.gate(), desk.project().join("late.txt"));
    let command = format!("until [ -e {} ]; do sleep 0.05; done; echo late > late.txt", gate.display());
    let id = create(&kept, &desk, &Prompt::new("Go.").calls("Bash", in_background(&command)).says("Began."));
    decide(&kept, &wait_for_request(&kept), "allow").good();
    until_state(&kept, &id, "idle");
    let agent = live_pid(&desk, &id);
    std::thread::sleep(Duration::from_secs(2));
    turn(&kept, &id, &Prompt::new("Still there?").says("Yes."), "start");
    until_state(&kept, &id, "idle");
    assert!(agent.is_some() && live_pid(&desk, &id) == agent, "the same agent answered");
    fs::write(&gate, "").unwrap();
    until_there(&kept, &late);
}

/// Has an agent begin a turn of its own, once a prompt is answered: a subagent of it is done only then. Returns the session,
/// and how the prompt's turn ended.
fn answering_itself(kept: &Kept, desk: &Desk, socket: &mut Socket, reply: Reply) -> (String, Value) {
    let gate = desk.project().join("subagent's gate");
    let inner = Prompt::new("Look around.").reply(Reply::text("There is nothing.").once(&gate)).to_string();
    let input = json!({ "description": "Look", "prompt": inner, "subagent_type": "general-purpose" });
    let prompt = Prompt::new("Ask somebody.").calls("Agent", input).says("Nobody knows.").reply(reply);
    let id = create(kept, desk, &prompt);
    let (_, asked) = socket.until("turn.completed");
    assert!(asked["data"]["message"].is_string(), "{asked}");
    // The state follows a moment later, and what runs from then on is a turn of the agent's own.
    until_state(kept, &id, "idle");
    fs::write(gate, "").unwrap();
    (id, asked)
}

/// Waits for the result that a prompt ends with.
fn answer_to(socket: &mut Socket, message: &str) -> Value {
    loop {
        let (_, ended) = socket.until("turn.completed");
        if ended["data"]["message"] == message {
            return ended;
        }
    }
}

#[test]
fn a_prompt_that_comes_while_the_agent_answers_itself_is_answered_by_its_own_result() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let gate = desk.gate();
    let (id, _) = answering_itself(&kept, &desk, &mut socket, Reply::text("I see.").once(&gate));
    socket.until("subagent.completed");
    kept.until("it answers itself", || (desk.requests() >= 4).then_some(()));
    let (message, _) = turn(&kept, &id, &Prompt::new("And?").says("Well."), "queue");
    fs::write(&gate, "").unwrap();
    let its_own = answer_to(&mut socket, &message);
    assert_eq!(its_own["data"]["result"], "Well.", "{its_own}");
    until_state(&kept, &id, "idle");
    assert_eq!(state(&kept, &id), "idle");
}

#[test]
fn an_agent_that_answers_itself_is_at_work_and_can_be_interrupted() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let (id, asked) = answering_itself(&kept, &desk, &mut socket, Reply::text("On and on and on.").hanging());
    until_state(&kept, &id, "running");
    // Whoever rewinds now would rewind what the agent is doing.
    let rewind = kept.post(
        &format!("/sessions/{id}/rewind"),
        json!({ "to": asked["data"]["message"], "dry_run": false, "expect_digest": "" }),
    );
    assert_eq!((rewind.status, &rewind.json()["code"]), (409, &json!("busy")));
    let done = kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good();
    assert_eq!(done["interrupted"], true);
    let (_, ended) = socket.until("turn.interrupted");
    assert_eq!(ended["data"]["message"], Value::Null);
    until_state(&kept, &id, "idle");
    assert_eq!(kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good()["interrupted"], false);
    turn(&kept, &id, &Prompt::new("And?").says("Well."), "start");
    until_state(&kept, &id, "idle");
}

#[test]
fn a_prompt_that_waits_for_the_end_of_what_nobody_asked_is_interrupted_with_it() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    let (id, _) = answering_itself(&kept, &desk, &mut socket, Reply::text("On and on and on.").hanging());
    until_state(&kept, &id, "running");
    let talk = Prompt::new("Talk.").reply(Reply::text("And on.").hanging());
    let (message, _) = turn(&kept, &id, &talk, "start");
    kept.post(&format!("/sessions/{id}/interrupt"), json!({})).good();
    let its_own = loop {
        let (before, ended) = socket.until("turn.interrupted");
        let failed = before.iter().find(|frame| frame["type"] == "turn.failed");
        assert_eq!(failed, None, "what somebody ended has not failed");
        if ended["data"]["message"] == message.as_str() {
            break ended;
        }
    };
    assert!(its_own["data"]["errors"].is_array(), "{its_own}");
    until_state(&kept, &id, "idle");
}

/// Has an agent stand still in a turn of its own that somebody wants to end, and does something meanwhile.
fn while_its_own_turn_is_interrupted(kept: &Kept, desk: &Desk, work: impl FnOnce(&str, Pid)) {
    let mut socket = Socket::open(kept);
    socket.subscribe("all", None);
    let (id, _) = answering_itself(kept, desk, &mut socket, Reply::text("On and on and on.").hanging());
    until_state(kept, &id, "running");
    let agent = Pid::from_raw(live_pid(desk, &id).unwrap().try_into().unwrap()).unwrap();
    kill_process(agent, Signal::STOP).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| kept.post(&format!("/sessions/{id}/interrupt"), json!({})));
        // Nothing tells that it was heard: the agent has to say the rest.
        std::thread::sleep(Duration::from_secs(3));
        work(&id, agent);
    });
}

#[test]
fn a_prompt_that_comes_after_the_interruption_of_what_nobody_asked_is_answered() {
    // It was refused: that somebody wanted something to end was taken to mean whatever runs.
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    while_its_own_turn_is_interrupted(&kept, &desk, |id, agent| {
        let (message, _) = turn(&kept, id, &Prompt::new("And?").says("Well."), "start");
        kill_process(agent, Signal::CONT).unwrap();
        let (_, its_own) = socket.until("turn.interrupted");
        assert_eq!(its_own["data"]["message"], Value::Null);
        let ended = answer_to(&mut socket, &message);
        assert_eq!(ended["data"]["result"], "Well.", "{ended}");
    });
}

#[test]
fn an_interruption_ends_with_the_agent_that_it_was_meant_for() {
    let Some(desk) = Desk::new() else { return };
    let kept = desk.keeper();
    let mut socket = Socket::open(&kept);
    socket.subscribe("all", None);
    while_its_own_turn_is_interrupted(&kept, &desk, |id, agent| {
        kill_process(agent, Signal::KILL).unwrap();
        until_state(&kept, id, "idle");
        let (message, _) = turn(&kept, id, &Prompt::new("And?").says("Well."), "start");
        let ended = answer_to(&mut socket, &message);
        assert_eq!(ended["data"]["result"], "Well.", "{ended}");
    });
}
