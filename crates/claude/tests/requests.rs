//! What an agent may ask in odd ways, and what it is answered: always something, and never more than was decided.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use rethread_claude::{
    ClaudeAgentOptions, ClaudeAgentOptionsBuilder, HookEvent, HookInput, HookMatcher, HookOutput,
    PermissionRequest, PermissionResult,
};
use serde_json::{Value, json};

use crate::by_hand::connect;

/// What callbacks were told.
type Seen = Arc<Mutex<Vec<Value>>>;

/// Allows everything but `Bash`, as a person might write it.
fn careless(seen: &Seen) -> ClaudeAgentOptionsBuilder {
    let seen = Arc::clone(seen);
    ClaudeAgentOptions::builder().can_use_tool(move |request: PermissionRequest| {
        seen.lock().unwrap().push(json!([request.tool_name, request.input]));
        std::future::ready(match request.tool_name.as_str() {
            "Bash" => PermissionResult::deny("no shell"),
            _ => PermissionResult::allow(),
        })
    })
}

/// Claude Code cuts texts at UTF-16 units, and so sends half a character now and then. The request could not be read, and
/// was never answered.
#[tokio::test]
async fn a_request_that_holds_half_a_character_is_decided_about() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(careless(&seen)).await;
    let answer = hand
        .asks(r#"{"subtype":"can_use_tool","tool_name":"Write","input":{"content":"a \ud83d"},"tool_use_id":"t"}"#)
        .await;
    assert_eq!(
        answer["response"],
        json!({ "behavior": "allow", "updatedInput": { "content": "a \u{fffd}" } })
    );
    assert_eq!(*seen.lock().unwrap(), [json!(["Write", { "content": "a \u{fffd}" }])]);
}

#[tokio::test]
async fn a_request_that_is_no_utf8_is_decided_about() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(careless(&seen)).await;
    hand.says(b"{\"type\":\"control_request\",\"request_id\":\"q\",\"request\":{\"subtype\":\"can_use_tool\",\"tool_name\":\"Bash\",\"input\":{\"command\":\"\xff\"}}}")
        .await;
    assert_eq!(hand.answer().await["response"]["message"], "no shell");
}

#[tokio::test]
async fn a_request_that_is_nested_too_deeply_is_refused() {
    let (_client, mut hand) = connect(careless(&Seen::default())).await;
    let deep = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
    let request = format!(r#"{{"subtype":"can_use_tool","tool_name":"Write","input":{{"content":{deep}}}}}"#);
    let answer = hand.asks(request).await;
    assert_eq!(
        (&answer["subtype"], &answer["error"]),
        (&json!("error"), &json!("the host cannot read this request"))
    );
}

/// One field that was not as expected made the whole request empty, and an empty one was what the callback decided about.
#[tokio::test]
async fn an_odd_field_does_not_hide_which_tool_is_asked_about() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(careless(&seen)).await;
    let request = json!({ "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "rm" },
        "permission_suggestions": null, "requires_user_interaction": "no" });
    assert_eq!(hand.asks(&request).await["response"]["message"], "no shell");
    assert_eq!(*seen.lock().unwrap(), [json!(["Bash", { "command": "rm" }])]);
}

#[tokio::test]
async fn what_does_not_say_which_tool_it_is_about_is_denied_without_asking() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(careless(&seen)).await;
    for request in [
        json!({ "subtype": "can_use_tool", "tool_name": ["Bash"], "input": {} }),
        json!({ "subtype": "can_use_tool", "input": {} }),
        json!({ "subtype": "can_use_tool", "tool_name": "Write" }),
        json!({ "subtype": "can_use_tool", "tool_name": "Write", "input": "all" }),
    ] {
        let answer = hand.asks(&request).await;
        assert_eq!(answer["response"]["behavior"], "deny", "{request}");
    }
    assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
}

/// Looks at every tool before it runs, and objects to none.
fn watching(seen: &Seen) -> ClaudeAgentOptionsBuilder {
    let seen = Arc::clone(seen);
    ClaudeAgentOptions::builder().hook(HookEvent::PreToolUse, "", move |input: HookInput| {
        seen.lock().unwrap().push(json!([input.hook_event_name, input.tool_name, input.tool_input]));
        std::future::ready(HookOutput::allow("fine"))
    })
}

#[tokio::test]
async fn an_odd_field_does_not_hide_what_a_hook_is_about() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(watching(&seen)).await;
    let input = json!({ "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": { "a": 1 }, "cwd": null });
    let answer =
        hand.asks(json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": input })).await;
    assert_eq!(answer["response"]["hookSpecificOutput"]["hookEventName"], "PreToolUse");
    assert_eq!(*seen.lock().unwrap(), [json!(["PreToolUse", "Bash", { "a": 1 }])]);
}

#[tokio::test]
async fn a_hook_that_cannot_tell_which_tool_it_is_about_denies_it() {
    let seen = Seen::default();
    let (_client, mut hand) = connect(watching(&seen)).await;
    for input in [json!(null), json!({}), json!({ "tool_name": 7 })] {
        let answer =
            hand.asks(json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": input })).await;
        let output = &answer["response"]["hookSpecificOutput"];
        assert_eq!(
            (&output["hookEventName"], &output["permissionDecision"]),
            (&json!("PreToolUse"), &json!("deny"))
        );
    }
    assert!(seen.lock().unwrap().is_empty(), "{seen:?}");
}

/// An event that was given by its name was one that nobody knows, and so a hook that failed before a tool let it run.
#[tokio::test]
async fn a_hook_that_fails_before_a_tool_denies_it_however_the_event_was_named() {
    let named = HookEvent::Other("PreToolUse".into());
    let options = ClaudeAgentOptions::builder().hook(named, "", async |_| panic!("as planned"));
    let (_client, mut hand) = connect(options).await;
    let input = json!({ "tool_name": "Write" });
    let answer =
        hand.asks(json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": input })).await;
    assert_eq!(answer["response"]["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
}

/// A callback that blocks its thread, as no async function should, also blocked its own time limit, and what it decided in
/// the end was still sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_callback_that_blocks_its_thread_is_answered_for_in_time() {
    let (release, released) = mpsc::channel::<()>();
    let released = Arc::new(Mutex::new(released));
    let blocks = move || {
        let _ = released.lock().unwrap().recv();
    };
    let waits = blocks.clone();
    let hook = HookMatcher::new("", move |_| {
        waits();
        std::future::ready(HookOutput::allow("late"))
    });
    let options = ClaudeAgentOptions::builder()
        .permission_timeout(Duration::from_millis(100))
        .hook_matcher(HookEvent::PreToolUse, hook.timeout(Duration::from_millis(100)))
        .can_use_tool(move |_| {
            blocks();
            std::future::ready(PermissionResult::allow())
        });
    let (_client, mut hand) = connect(options).await;
    let answer = hand.asks(json!({ "subtype": "can_use_tool", "tool_name": "Write", "input": {} })).await;
    assert_eq!(answer["response"]["message"], "the host did not decide: it took too long");
    let input = json!({ "tool_name": "Write" });
    let answer =
        hand.asks(json!({ "subtype": "hook_callback", "callback_id": "hook_0", "input": input })).await;
    assert_eq!(answer["response"]["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    drop(release);
}

#[tokio::test]
async fn forms_and_dialogs_that_nobody_sees_are_declined() {
    let (_client, mut hand) = connect(ClaudeAgentOptions::builder()).await;
    let form = json!({ "subtype": "elicitation", "mcp_server_name": "s", "message": "Who are you?" });
    assert_eq!(hand.asks(form).await["response"], json!({ "action": "decline" }));
    let dialog = json!({ "subtype": "request_user_dialog", "dialog_kind": "new", "payload": {} });
    assert_eq!(hand.asks(dialog).await["response"], json!({ "behavior": "cancelled" }));
    let unknown = hand.asks(json!({ "subtype": "sing" })).await;
    assert_eq!(unknown["error"], r#"this host does not answer "sing""#);
}
