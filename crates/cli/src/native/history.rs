//! Claude Code's own file history: what it kept before each prompt, listed and compared with what is there.

use std::path::Path;

use rethread_checkpoint::unified_diff;
use rethread_transcripts::{KeptFile, NativeCheckpoint};
use serde_json::json;

use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::named::ambiguous;
use crate::text::count;
use crate::ui::{Answer, Tone, Ui};

/// Lists what was kept, the oldest first.
pub(crate) fn checkpoints(id: &str, answer: Answer, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let all = context.native.claude()?.checkpoints(id)?;
    for checkpoint in &all {
        let NativeCheckpoint { message_uuid, timestamp, files, .. } = checkpoint;
        match answer {
            Answer::Json => {
                let text = |path: &Path| path.to_string_lossy().into_owned();
                let told = |file: &KeptFile| json!({ "path": text(&file.path), "backup": file.backup.as_deref().map(text) });
                let files: Vec<_> = files.iter().map(told).collect();
                let line = json!({ "message": message_uuid, "timestamp": timestamp, "files": files });
                ui.data(line.to_string().as_bytes())?;
            }
            Answer::Text => {
                let files = match &files[..] {
                    [] => "no files yet".into(),
                    [only] => only.path.display().to_string(),
                    [first, rest @ ..] => {
                        format!("{} and {}", first.path.display(), count(rest.len(), "more path"))
                    }
                };
                let time = timestamp.as_deref().unwrap_or("-");
                ui.line(Tone::Plain, &format!("{message_uuid}  {time}  {files}"))?;
            }
        }
    }
    if all.is_empty() && answer == Answer::Text {
        ui.say("Claude Code has kept no files of this session.");
    }
    if id.parse().is_ok_and(|id| pollster::block_on(context.store.load(&id)).is_ok_and(|it| it.is_some())) {
        let stored = context.command(&format!("checkpoints stored:{}", context.short_of(id)));
        ui.aside(&format!("that is what Claude Code kept; {stored} lists what the store has"));
    }
    Ok(Done::Fully)
}

/// Shows what became of files since a prompt.
pub(crate) fn diff(id: &str, prompt: &str, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    let all = context.native.claude()?.checkpoints(id)?;
    let mut found: Vec<&NativeCheckpoint> =
        all.iter().filter(|checkpoint| checkpoint.message_uuid.starts_with(prompt)).collect();
    let checkpoint = match found.len() {
        1 => found.remove(0),
        0 => {
            let hint = format!("{} shows what there is", context.command("checkpoints ID"));
            return Err(Failure::failed(format!("Claude Code kept nothing before {prompt}"), hint));
        }
        count => {
            let ids = found.into_iter().map(|it| it.message_uuid.clone());
            return Err(ambiguous("prompts", prompt, ids, count));
        }
    };
    for difference in checkpoint.differences()? {
        let name = difference.path.display().to_string();
        let name = name.trim_start_matches('/');
        match unified_diff(name, difference.before.as_deref(), difference.after.as_deref()) {
            Some(text) => text.lines().try_for_each(|line| ui.line(Tone::Plain, line))?,
            None => ui.line(Tone::Plain, &format!("{name} differs"))?,
        }
    }
    Ok(Done::Fully)
}
