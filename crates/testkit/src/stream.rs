//! A reply as the Messages API streams it.

use serde_json::{Value, json};

use crate::script::{Block, HALF, HALF_A_CHARACTER, Reply};

/// Returns the events of a reply. `number` makes its ids its own.
pub(crate) fn events(reply: &Reply, model: &Value, number: usize) -> Vec<String> {
    let message = json!({
        "id": format!("msg_{number:06}"), "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 1 },
    });
    let mut events = vec![event(json!({ "type": "message_start", "message": message }))];
    for (index, block) in reply.blocks.iter().enumerate() {
        let (empty, delta) = match block {
            Block::Text(text) => {
                (json!({ "type": "text", "text": "" }), json!({ "type": "text_delta", "text": text }))
            }
            Block::Thinking(thought) => (
                json!({ "type": "thinking", "thinking": "", "signature": "" }),
                json!({ "type": "thinking_delta", "thinking": thought }),
            ),
            Block::Tool { name, input } => (
                json!({ "type": "tool_use", "id": format!("toolu_{number:06}_{index}"), "name": name, "input": {} }),
                json!({ "type": "input_json_delta", "partial_json": input.to_string() }),
            ),
        };
        events.push(event(json!({ "type": "content_block_start", "index": index, "content_block": empty })));
        events.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        if matches!(block, Block::Thinking(_)) {
            let delta = json!({ "type": "signature_delta", "signature": "c2lnbmF0dXJl" });
            events.push(event(json!({ "type": "content_block_delta", "index": index, "delta": delta })));
        }
        events.push(event(json!({ "type": "content_block_stop", "index": index })));
    }
    if reply.hang || reply.cut {
        events.pop();
        return events;
    }
    let calls = reply.blocks.iter().any(|block| matches!(block, Block::Tool { .. }));
    let reason = if calls { "tool_use" } else { "end_turn" };
    let delta = json!({ "stop_reason": reason, "stop_sequence": null });
    events.push(event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 20 } })));
    events.push(event(json!({ "type": "message_stop" })));
    events
}

fn event(event: Value) -> String {
    let data = event.to_string().replace(HALF_A_CHARACTER, HALF);
    format!("event: {}\ndata: {data}\n\n", event["type"].as_str().unwrap_or_default())
}

/// Returns a reply as it is when nobody wants a stream.
pub(crate) fn whole(reply: &Reply, model: &Value, number: usize) -> Value {
    let blocks = reply.blocks.iter().enumerate().map(|(index, block)| match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::Thinking(thought) => json!({ "type": "thinking", "thinking": thought, "signature": "c2ln" }),
        Block::Tool { name, input } => {
            json!({ "type": "tool_use", "id": format!("toolu_{number:06}_{index}"), "name": name, "input": input })
        }
    });
    json!({
        "id": format!("msg_{number:06}"), "type": "message", "role": "assistant", "model": model,
        "content": blocks.collect::<Vec<_>>(), "stop_reason": "end_turn", "stop_sequence": null,
        "usage": { "input_tokens": 100, "output_tokens": 20 },
    })
}
