//! Decisions about tool calls, and what becomes of them.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use rethread_claude::{
    ClaudeAgentOptionsBuilder, ErrorSubtype, PermissionMode, PermissionRequest, PermissionResult,
    PermissionUpdate, ResultMessage,
};
use rethread_testkit::{Home, Prompt as Script};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

use crate::kit::{Heard, ask, connect, home, options, own_home};

/// Returns a prompt that has a file made.
fn makes(home: &Home, name: &str) -> Script {
    let command = format!("echo made > {}", home.project().join(name).display());
    Script::new("Make it").calls("Bash", json!({ "command": command, "description": "d" })).says("over")
}

fn exists(home: &Home, name: &str) -> bool {
    home.project().join(name).try_exists().unwrap()
}

fn deciding(
    home: &Home,
    decide: impl Fn() -> PermissionResult + Send + Sync + 'static,
) -> ClaudeAgentOptionsBuilder {
    options(home).can_use_tool(move |_| std::future::ready(decide()))
}

#[tokio::test]
async fn what_is_allowed_is_run_and_what_is_denied_is_not() {
    let Some(home) = home() else { return };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let client =
        connect(
            options(home).can_use_tool(move |request: PermissionRequest| {
                let allows = request.input["command"].as_str().unwrap().contains("allowed");
                seen.lock().unwrap().push(request);
                async move {
                    if allows { PermissionResult::allow() } else { PermissionResult::deny("not this one") }
                }
            }),
        )
        .await;
    ask(&client, makes(home, "allowed")).await;
    let denied = ask(&client, makes(home, "denied")).await;
    assert_eq!((exists(home, "allowed"), exists(home, "denied")), (true, false));
    assert!(denied.tool_results().contains("not this one"), "{denied:?}");
    assert_eq!(denied.result().details().permission_denials[0].tool_name, "Bash");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.iter().map(|request| request.tool_name.as_str()).collect::<Vec<_>>(), ["Bash", "Bash"]);
    assert!(!asked[0].tool_use_id.is_empty());
}

#[tokio::test]
async fn a_changed_input_is_what_is_run() {
    let Some(home) = home() else { return };
    let changed = format!("echo changed > {}", home.project().join("changed").display());
    let client = connect(deciding(home, move || {
        PermissionResult::allow_with(json!({ "command": changed, "description": "d" }))
    }))
    .await;
    ask(&client, makes(home, "unchanged")).await;
    assert_eq!((exists(home, "unchanged"), exists(home, "changed")), (false, true));
}

#[tokio::test]
async fn a_rule_that_comes_with_a_decision_saves_the_next_question() {
    let Some(home) = home() else { return };
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let client = connect(deciding(home, move || {
        *counted.lock().unwrap() += 1;
        PermissionResult::allow_and([PermissionUpdate::allow_for_session("Bash")])
    }))
    .await;
    ask(&client, makes(home, "first-of-two")).await;
    ask(&client, makes(home, "second-of-two")).await;
    assert_eq!((exists(home, "second-of-two"), *count.lock().unwrap()), (true, 1));
}

#[tokio::test]
async fn a_denial_that_interrupts_ends_the_turn() {
    let Some(home) = home() else { return };
    let client = connect(deciding(home, || PermissionResult::deny_and_interrupt("stop it"))).await;
    let heard = ask(&client, makes(home, "interrupted")).await;
    assert!(
        matches!(heard.result(), ResultMessage::Error { subtype: ErrorSubtype::DuringExecution, .. }),
        "{heard:?}"
    );
    assert!(!exists(home, "interrupted"));
}

#[tokio::test]
async fn a_callback_that_panics_denies() {
    let Some(home) = home() else { return };
    let client = connect(deciding(home, || panic!("as planned"))).await;
    let heard = ask(&client, makes(home, "panicked")).await;
    assert!(heard.tool_results().contains("the host did not decide"), "{heard:?}");
    assert_eq!((heard.text(), exists(home, "panicked")), ("over", false));
}

#[tokio::test]
async fn a_callback_that_takes_too_long_denies() {
    let Some(home) = home() else { return };
    let hanging =
        options(home).permission_timeout(Duration::from_millis(100)).can_use_tool(|_| std::future::pending());
    let heard = ask(&connect(hanging).await, makes(home, "late")).await;
    assert!(heard.tool_results().contains("it took too long"), "{heard:?}");
    assert!(!exists(home, "late"));
}

/// Tells when it is dropped.
struct Told(Option<oneshot::Sender<()>>);

impl Drop for Told {
    fn drop(&mut self) {
        let _ = self.0.take().unwrap().send(());
    }
}

#[tokio::test]
async fn a_question_that_is_withdrawn_is_dropped_with_its_callback() {
    let Some(home) = home() else { return };
    let (told, dropped) = oneshot::channel();
    let told = Mutex::new(Some(Told(Some(told))));
    let is_asked = Arc::new(Notify::new());
    let ask_now = Arc::clone(&is_asked);
    let client = connect(options(home).can_use_tool(move |_| {
        let told = told.lock().unwrap().take();
        ask_now.notify_one();
        async move {
            std::future::pending::<()>().await;
            drop(told);
            PermissionResult::allow()
        }
    }))
    .await;
    let turn = client.send_message(makes(home, "withdrawn").to_string()).await.unwrap();
    is_asked.notified().await;
    client.interrupt().await.unwrap();
    dropped.await.unwrap();
    Heard::all(turn).await;
    assert!(!exists(home, "withdrawn"));
}

#[tokio::test]
async fn a_decision_may_come_late_and_meanwhile_the_session_can_be_spoken_to() {
    let Some(home) = home() else { return };
    let (is_asked, decided) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (ask_now, decision) = (Arc::clone(&is_asked), Arc::clone(&decided));
    let client = connect(options(home).can_use_tool(move |_| {
        let decision = Arc::clone(&decision);
        ask_now.notify_one();
        async move {
            decision.notified().await;
            PermissionResult::allow()
        }
    }))
    .await;
    let turn = client.send_message(makes(home, "decided-late").to_string()).await.unwrap();
    is_asked.notified().await;
    assert!(client.mcp_status().await.is_ok(), "it still answers");
    assert!(!exists(home, "decided-late"));
    decided.notify_one();
    assert_eq!(Heard::all(turn).await.text(), "over");
    assert!(exists(home, "decided-late"));
    assert_eq!(ask(&client, Script::new("Next").says("next")).await.text(), "next");
}

#[tokio::test]
async fn a_question_of_the_model_is_answered_with_a_changed_input() {
    let Some(home) = home() else { return };
    let question = json!({ "question": "Which one?", "header": "Which", "multiSelect": false,
        "options": [{ "label": "This", "description": "a" }, { "label": "That", "description": "b" }] });
    let script =
        Script::new("Ask me").calls("AskUserQuestion", json!({ "questions": [question] })).says("thanks");
    let client = connect(options(home).can_use_tool(async |request: PermissionRequest| {
        let mut input = request.input;
        input["answers"] = json!({ "Which one?": "That" });
        PermissionResult::allow_with(input)
    }))
    .await;
    let heard = ask(&client, script).await;
    assert!(heard.tool_results().contains("That"), "{heard:?}");
}

#[tokio::test]
async fn a_plan_is_approved_like_a_tool_call() {
    let Some(home) = own_home() else { return };
    let asked = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&asked);
    let plan = options(&home).permission_mode(PermissionMode::Plan).can_use_tool(
        move |request: PermissionRequest| {
            seen.lock().unwrap().push_str(&request.tool_name);
            std::future::ready(PermissionResult::allow())
        },
    );
    let script = Script::new("Plan").calls("ExitPlanMode", json!({ "plan": "Do it." })).says("planned");
    assert_eq!(ask(&connect(plan).await, script).await.text(), "planned");
    assert_eq!(*asked.lock().unwrap(), "ExitPlanMode");
}

/// The CLI passes half a character on as it is. The request could not be read, and the session waited for ever.
#[tokio::test]
async fn a_command_with_half_a_character_is_decided_about_and_its_turn_ends() {
    let Some(home) = home() else { return };
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let client = connect(options(home).can_use_tool(move |request: PermissionRequest| {
        seen.lock().unwrap().push(request.input["command"].clone());
        std::future::ready(PermissionResult::deny("not this one"))
    }))
    .await;
    let half = rethread_testkit::HALF_A_CHARACTER;
    let input = json!({ "command": format!("touch {half}"), "description": "d" });
    let heard = ask(&client, Script::new("Run it").calls("Bash", input).says(format!("so {half}"))).await;
    assert!(heard.tool_results().contains("not this one"), "{heard:?}");
    assert_eq!(*asked.lock().unwrap(), [json!("touch \u{fffd}")]);
    assert_eq!(heard.text(), "so \u{fffd}");
}
