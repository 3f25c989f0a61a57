//! Whatever the CLI sends is a message.

use proptest::prelude::*;
use rethread_claude::{Frame, Message, ResultMessage, SystemMessage};
use serde_json::{Map, Value, json};

/// Frames as the CLI sends them today, one of each kind.
fn known() -> Vec<Value> {
    let block = json!({ "type": "tool_use", "id": "t", "name": "Bash", "input": { "command": "ls" } });
    let answer = json!({ "type": "tool_result", "tool_use_id": "t", "content": "a", "is_error": false });
    let usage = json!({ "input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": null });
    vec![
        json!({ "type": "system", "subtype": "init", "session_id": "s", "cwd": "/", "tools": ["Bash"], "model": "m",
            "mcp_servers": [{ "name": "n", "status": "connected" }], "permissionMode": "default" }),
        json!({ "type": "system", "subtype": "api_retry", "attempt": 1, "max_retries": 2, "retry_delay_ms": 1.5 }),
        json!({ "type": "system", "subtype": "task_notification", "task_id": "t", "status": "completed" }),
        json!({ "type": "assistant", "message": { "id": "m", "content": [block], "usage": usage }, "uuid": "u" }),
        json!({ "type": "user", "message": { "role": "user", "content": [answer] }, "parent_tool_use_id": null }),
        json!({ "type": "result", "subtype": "success", "result": "r", "usage": usage, "permission_denials": [],
            "num_turns": 1, "total_cost_usd": 0.1, "user_message_uuids": ["u"], "session_id": "s" }),
        json!({ "type": "stream_event", "event": { "type": "message_stop" }, "uuid": "u" }),
        json!({ "type": "command_lifecycle", "command_uuid": "u", "state": "queued" }),
        json!({ "type": "transcript_mirror", "filePath": "/f", "entries": [{}] }),
        json!({ "type": "tool_progress", "tool_use_id": "t", "tool_name": "Bash", "elapsed_time_seconds": 1.0 }),
        json!({ "type": "rate_limit_event", "rate_limit_info": {} }),
    ]
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| json!(number)),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,8}", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Puts something else in the place of some value within a frame.
fn disturb(frame: &mut Value, mut at: usize, other: Value) {
    fn walk(value: &mut Value, at: &mut usize, other: &mut Option<Value>) {
        if other.is_some() && *at == 0 {
            *value = other.take().unwrap_or_default();
            return;
        }
        *at = at.saturating_sub(1);
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| walk(value, at, other)),
            Value::Array(values) => values.iter_mut().for_each(|value| walk(value, at, other)),
            _ => {}
        }
    }
    at += 1; // The frame itself stays an object.
    walk(frame, &mut at, &mut Some(other));
}

#[test]
fn every_kind_that_is_sent_today_has_a_type_of_its_own() {
    for frame in known() {
        let message = Frame::parse(frame.to_string()).unwrap().message().unwrap();
        assert!(!matches!(message, Message::Other(_)), "{frame}");
    }
}

/// A frame with half a character in it could not be read, and was no result to those who wait for one.
#[test]
fn a_message_with_half_a_character_is_what_it_was_meant_to_be() {
    let read = |line: &str| Frame::parse(line.to_owned()).unwrap().message().unwrap();
    let said = read(r#"{"type":"assistant","message":{"content":[{"type":"text","text":"a\ud83d"}]}}"#);
    assert!(matches!(&said, Message::Assistant(said) if said.text() == "a\u{fffd}"), "{said:?}");
    let result = read(r#"{"type":"result","subtype":"success","result":"\udc00b","session_id":"s"}"#);
    let Message::Result(ResultMessage::Success { result, session_id, .. }) = result else {
        panic!("{result:?}")
    };
    assert_eq!((result.as_str(), session_id.as_deref()), ("\u{fffd}b", Some("s")));
}

/// One field of another type than today's took the session's id with it, and the end of the turn.
#[test]
fn an_odd_field_costs_neither_a_result_nor_the_session() {
    let read = |frame: Value| Frame::parse(frame.to_string()).unwrap().message().unwrap();
    let result = read(json!({ "type": "result", "subtype": "success", "result": "r", "session_id": "s",
        "num_turns": "many", "usage": { "input_tokens": -1 }, "duration_ms": 7, "errors": null }));
    let Message::Result(result) = result else { panic!("{result:?}") };
    assert_eq!((result.session_id(), result.details().duration_ms, result.is_error()), (Some("s"), 7, false));
    let init =
        read(json!({ "type": "system", "subtype": "init", "session_id": "s", "tools": { "Bash": true },
        "model": "m", "agents": [{ "name": "a" }] }));
    let Message::System(SystemMessage::Init { session_id, model, .. }) = init else { panic!("{init:?}") };
    assert_eq!((session_id.as_str(), model.as_str()), ("s", "m"));
}

proptest! {
    #[test]
    fn a_frame_in_which_anything_is_something_else_is_still_a_message(
        which in 0..11usize, at in 0..24usize, other in any_json()
    ) {
        let mut frame = known()[which].clone();
        disturb(&mut frame, at, other);
        let message = Frame::parse(frame.to_string()).unwrap().message();
        prop_assert!(message.is_ok(), "{frame}: {message:?}");
    }

    #[test]
    fn any_object_is_a_message(fields in prop::collection::btree_map(".{0,8}", any_json(), 0..6)) {
        let frame = Value::Object(fields.into_iter().collect::<Map<_, _>>());
        prop_assert!(Frame::parse(frame.to_string()).unwrap().message().is_ok());
    }
}
