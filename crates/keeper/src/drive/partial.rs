//! A message that is just being said, for whoever comes in the middle of it.

use serde::Serialize;
use serde_json::Value;

/// What was said so far.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Partial {
    message_id: Option<String>,
    blocks: Vec<PartialBlock>,
}

#[derive(Clone, Debug, Default, Serialize)]
struct PartialBlock {
    kind: String,
    text: String,
}

/// A piece of it: what is added, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Delta {
    message_id: Option<String>,
    index: usize,
    kind: String,
    /// Where it begins, in bytes: whoever has less has missed something.
    offset: usize,
    text: String,
}

impl Partial {
    /// Takes an event of the API's stream; returns what clients are told.
    pub(crate) fn take(&mut self, event: &Value) -> Option<Delta> {
        let index = usize::try_from(event["index"].as_u64().unwrap_or(0)).unwrap_or(0);
        match event["type"].as_str()? {
            "message_start" => {
                *self = Self {
                    message_id: event["message"]["id"].as_str().map(str::to_owned),
                    blocks: Vec::new(),
                };
                None
            }
            "content_block_start" if index < 1024 => {
                self.blocks.resize_with(index + 1, PartialBlock::default);
                self.blocks[index].kind =
                    event["content_block"]["type"].as_str().unwrap_or_default().to_owned();
                None
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                let text =
                    ["text", "thinking", "partial_json"].iter().find_map(|name| delta[name].as_str())?;
                let block = self.blocks.get_mut(index)?;
                let offset = block.text.len();
                block.text.push_str(text);
                let (message_id, kind) = (self.message_id.clone(), block.kind.clone());
                Some(Delta { message_id, index, kind, offset, text: text.to_owned() })
            }
            "message_stop" => {
                *self = Self::default();
                None
            }
            _ => None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.blocks.iter().all(|block| block.text.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_put_together_are_what_a_latecomer_is_shown() {
        let mut partial = Partial::default();
        partial.take(&json!({ "type": "message_start", "message": { "id": "m" } }));
        partial
            .take(&json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text" } }));
        let mut heard = String::new();
        for piece in ["Hel", "lo ", "wörld"] {
            let event = json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": piece } });
            let delta = partial.take(&event).unwrap();
            assert_eq!(delta.offset, heard.len());
            heard += &delta.text;
        }
        assert_eq!(partial.blocks[0].text, heard);
        partial.take(&json!({ "type": "message_stop" }));
        assert!(partial.is_empty());
    }
}
