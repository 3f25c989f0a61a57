//! `logs`: what the keeper noted.

use std::fs;

use crate::args;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::keeper_place::KeeperPlace;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Logs {
    file: &'static str,
    lines: usize,
}

impl From<args::Logs> for Logs {
    fn from(typed: args::Logs) -> Self {
        Self { file: if typed.audit { "audit.jsonl" } else { "log.jsonl" }, lines: typed.lines }
    }
}

impl Logs {
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let path = KeeperPlace::find()?.home.join(self.file);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(Failure::failed("there is no log yet", "`rethread serve` starts a keeper"));
            }
            Err(error) => {
                return Err(Failure::Failed {
                    message: format!("cannot read {}: {error}", path.display()),
                    hint: None,
                });
            }
        };
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(self.lines)..].iter().try_for_each(|line| ui.data(line.as_bytes()))?;
        Ok(Done::Fully)
    }
}
