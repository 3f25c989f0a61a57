//! What a frame says about the prompts it belongs to.

use serde::Deserialize;

use super::queue::Item;
use crate::frame::{Frame, FrameKind};

/// How the CLI says that it is at work, or is not any more.
const STATE: &[u8] = br#"{"type":"system","subtype":"session_state_changed""#;

/// A message, by what it does to turns.
pub(super) enum About {
    /// It ends the turns of prompts: those that it names, or the oldest.
    Result {
        prompts: Vec<String>,
        /// Whether it answers no prompt at all, but tells what a subagent in the background did.
        is_nobodys: bool,
    },
    /// The CLI has a prompt.
    Known {
        prompt: Option<String>,
        /// Whether it has begun to answer it.
        has_begun: bool,
    },
    /// The CLI is at work, or is not any more.
    State {
        is_at_work: bool,
        /// Whether the host asked for it only for itself.
        is_for_host: bool,
    },
    /// It is part of a turn.
    Part,
}

impl About {
    pub(super) fn of(item: &Item) -> Self {
        match item {
            Ok(frame) if frame.kind() == FrameKind::Result => {
                let Fields { user_message_uuids, user_message_uuid, origin, .. } = Fields::of(frame);
                Self::Result {
                    prompts: user_message_uuids.into_iter().flatten().chain(user_message_uuid).collect(),
                    is_nobodys: origin.is_some_and(|origin| origin.kind == "task-notification"),
                }
            }
            Ok(frame) if frame.kind() == FrameKind::CommandLifecycle => {
                let Fields { command_uuid: prompt, state, .. } = Fields::of(frame);
                Self::Known { prompt, has_begun: state.as_deref() != Some("queued") }
            }
            Ok(frame) if frame.raw().starts_with(STATE) => {
                let Fields { state, sdk_host_only, .. } = Fields::of(frame);
                Self::State { is_at_work: state.as_deref() != Some("idle"), is_for_host: sdk_host_only }
            }
            _ => Self::Part,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Fields {
    user_message_uuid: Option<String>,
    user_message_uuids: Option<Vec<String>>,
    command_uuid: Option<String>,
    state: Option<String>,
    origin: Option<Origin>,
    sdk_host_only: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Origin {
    kind: String,
}

impl Fields {
    fn of(frame: &Frame) -> Self {
        frame.read_leniently().unwrap_or_default()
    }
}
