//! `completions`: a shell's completion script.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::args::{self, Args};
use crate::failure::{Done, Failure};
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Completions {
    shell: Shell,
}

impl From<args::Completions> for Completions {
    fn from(typed: args::Completions) -> Self {
        Self { shell: typed.shell }
    }
}

impl Completions {
    pub(crate) fn run(self, ui: &mut Ui) -> Result<Done, Failure> {
        // Written aside first: the generator panics when nobody reads to the end.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Args::command(), "rethread", &mut script);
        ui.data(script.trim_ascii_end())?;
        Ok(Done::Fully)
    }
}
