//! What was typed and is no command: the answer to a mistake, and to `--help`.

use clap::CommandFactory as _;

use crate::args::Args;
use crate::failure::{Done, Failure};
use crate::ui::Ui;

/// Answers with help where it was asked for, else says in one line what is wrong with what was typed.
pub(crate) fn refuse(refused: &clap::Error, ui: &mut Ui) -> Result<Done, Failure> {
    let text = refused.render().to_string();
    if !refused.use_stderr() {
        ui.data(text.trim_end().as_bytes())?;
        return Ok(Done::Fully);
    }
    if refused.kind() == clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        ui.say(text.trim_end());
        return Err(Failure::wrongly(
            "no command was given",
            "`rethread tour` shows around in half a minute",
        ));
    }
    let mut paragraphs =
        text.split("\n\n").map(|paragraph| paragraph.split_whitespace().collect::<Vec<_>>().join(" "));
    let message = paragraphs.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(&message).to_owned();
    let rest: Vec<String> = paragraphs.collect();
    let begins = |with: &str| rest.iter().find_map(|paragraph| paragraph.strip_prefix(with));
    let hint = match (begins("tip: "), begins("Usage: ")) {
        (Some(tip), _) => tip.to_owned(),
        (None, Some(usage)) => format!("`{usage}`"),
        (None, None) => match verb_typed() {
            Some(verb) => format!("`rethread {verb} --help` shows how it is used"),
            None => "`rethread --help` shows every command".into(),
        },
    };
    Err(Failure::wrongly(message, hint))
}

/// Returns the command that was typed, if it is one.
fn verb_typed() -> Option<String> {
    let known = Args::command();
    std::env::args().skip(1).find(|word| known.find_subcommand(word).is_some())
}
