//! The branches of a session of Claude Code's own: what is resumed, what was left, what was summed up.

use rethread_transcripts::{BranchReason, Transcript};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::text::one_line;
use crate::ui::{Answer, Tone, Ui};

/// Lists the branches of a session, each by the last that was said there.
pub(crate) fn list_branches(
    id: &str,
    answer: Answer,
    context: &Context,
    ui: &mut Ui,
) -> Result<Done, Failure> {
    let transcript = Transcript::open(context.native.claude()?.find(id)?)?;
    let ends = transcript.branch_ends();
    for end in &ends {
        let chain = transcript.chain_to(&end.uuid)?;
        let last = transcript.messages(&chain.messages().last(1))?.pop();
        let (timestamp, said) = last.map(|last| (last.timestamp.clone(), last.text())).unwrap_or_default();
        let messages = chain.message_count();
        match answer {
            Answer::Json => {
                let line = json!({
                    "uuid": end.uuid, "reason": end.reason, "message_count": messages, "timestamp": timestamp, "text": said,
                });
                ui.data(line.to_string().as_bytes())?;
            }
            Answer::Text => {
                let reason = match end.reason {
                    BranchReason::Active => "active",
                    BranchReason::Left => "left",
                    BranchReason::Compacted => "compacted",
                };
                let time = timestamp.as_deref().unwrap_or("-");
                let said = one_line(&said, 80);
                ui.line(Tone::Plain, &format!("{}  {messages:>4}  {time}  [{reason}] {said}", end.uuid))?;
            }
        }
    }
    if ends.is_empty() && answer == Answer::Text {
        ui.say("There is no conversation in it.");
    }
    Ok(Done::Fully)
}
