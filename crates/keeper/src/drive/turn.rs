//! Something that a person says to a session.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rethread_claude::{ContentBlock, Prompt};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many pictures a prompt may have.
pub(crate) const IMAGES: usize = 20;
/// How large each of them may be, in bytes; the API refuses more, and only after the turn has begun.
pub(crate) const IMAGE: u64 = 5 << 20;

/// A part of a prompt.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum Part {
    /// Words.
    Text {
        /// The words.
        text: String,
    },
    /// A picture.
    Image {
        /// What kind it is, such as `image/png`.
        media_type: String,
        /// Its bytes, as base64. Empty where prompts are only listed.
        data: String,
    },
}

/// What to do if a turn runs already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// Refuse.
    #[default]
    Start,
    /// Wait for its end.
    Queue,
}

/// A prompt that is to be sent.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct Turn {
    /// The id that the message gets; the same twice is one message.
    pub(crate) client_message_id: String,
    /// What is said.
    pub(crate) parts: Vec<Part>,
}

impl Turn {
    /// Returns it as the agent gets it.
    pub(crate) fn prompt(&self) -> Prompt {
        let block = |part: &Part| match part {
            Part::Text { text } => ContentBlock::Text { text: text.clone() },
            Part::Image { media_type, data } => ContentBlock::Image {
                source: serde_json::json!({ "type": "base64", "media_type": media_type, "data": data }),
            },
        };
        Prompt::new(self.parts.iter().map(block)).with_uuid(&self.client_message_id)
    }

    /// Returns it as lists show it: pictures without their bytes.
    pub(crate) fn listed(&self) -> Self {
        let part = |part: &Part| match part {
            Part::Image { media_type, .. } => {
                Part::Image { media_type: media_type.clone(), data: String::new() }
            }
            Part::Text { .. } => part.clone(),
        };
        Self {
            client_message_id: self.client_message_id.clone(),
            parts: self.parts.iter().map(part).collect(),
        }
    }

    /// Returns what is wrong with its pictures, in words. Whoever sends a bad one hears so before a turn begins, which
    /// would end with an error, and with the picture in the conversation for ever.
    pub(crate) fn flaw(&self) -> Option<String> {
        let images = self.parts.iter().filter_map(|part| match part {
            Part::Image { media_type, data } => Some((media_type, data)),
            Part::Text { .. } => None,
        });
        let mut count = 0;
        for (media_type, data) in images {
            count += 1;
            let Some(is_kind) = kind(media_type) else {
                return Some(format!("pictures are PNG, JPEG, GIF or WebP, not `{media_type}`"));
            };
            // As many bytes as the text can stand for, before any of it is looked at.
            if data.len() as u64 / 4 * 3 > IMAGE + 2 {
                return Some(format!("a picture has at most {} MB", IMAGE >> 20));
            }
            let Ok(bytes) = STANDARD.decode(data) else {
                return Some("a picture's bytes come as base64".into());
            };
            if !is_kind(&bytes) {
                return Some(format!("a picture is not what it says: `{media_type}`"));
            }
        }
        (count > IMAGES).then(|| format!("a prompt has at most {IMAGES} pictures"))
    }

    /// Returns whether there is anything in it.
    pub(crate) fn says_something(&self) -> bool {
        self.parts.iter().any(|part| match part {
            Part::Text { text } => !text.trim().is_empty(),
            Part::Image { .. } => true,
        })
    }
}

/// Returns how to recognise a kind of picture by its first bytes; `None` for kinds that no model reads.
fn kind(media_type: &str) -> Option<fn(&[u8]) -> bool> {
    Some(match media_type {
        "image/png" => |bytes| bytes.starts_with(b"\x89PNG\r\n\x1a\n"),
        "image/jpeg" => |bytes| bytes.starts_with(b"\xff\xd8\xff"),
        "image/gif" => |bytes| bytes.starts_with(b"GIF8"),
        "image/webp" => |bytes| bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(parts: Vec<Part>) -> Turn {
        Turn { client_message_id: String::new(), parts }
    }

    fn image(media_type: &str, bytes: &[u8]) -> Part {
        Part::Image { media_type: media_type.into(), data: STANDARD.encode(bytes) }
    }

    #[test]
    fn a_picture_that_the_model_would_refuse_is_refused_with_the_reason() {
        let png = b"\x89PNG\r\n\x1a\nrest";
        let flaw = |parts| turn(parts).flaw().unwrap_or_default();
        assert_eq!(flaw(vec![image("image/png", png), image("image/webp", b"RIFF....WEBP")]), "");
        assert_eq!(
            flaw(vec![image("image/svg+xml", png)]),
            "pictures are PNG, JPEG, GIF or WebP, not `image/svg+xml`"
        );
        assert_eq!(flaw(vec![image("image/jpeg", png)]), "a picture is not what it says: `image/jpeg`");
        let large = [png.as_slice(), &vec![0; 5 << 20]].concat();
        assert_eq!(flaw(vec![image("image/png", &large)]), "a picture has at most 5 MB");
        let broken = Part::Image { media_type: "image/png".into(), data: "?".into() };
        assert_eq!(flaw(vec![broken]), "a picture's bytes come as base64");
        assert_eq!(flaw(vec![image("image/png", png); IMAGES + 1]), "a prompt has at most 20 pictures");
    }

    #[test]
    fn a_list_of_prompts_has_no_bytes_of_pictures() {
        let turn = turn(vec![Part::Text { text: "look".into() }, image("image/png", b"x")]);
        let listed = serde_json::to_string(&turn.listed()).unwrap_or_default();
        assert!(listed.contains(r#"{"type":"image","media_type":"image/png","data":""}"#), "{listed}");
    }
}
