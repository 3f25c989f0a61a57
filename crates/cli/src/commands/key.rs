//! `key`: a new key for a store that is to be encrypted.

use std::path::PathBuf;

use crate::args;
use crate::failure::{Done, Failure};
use crate::key_file;
use crate::native::quoted;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Key {
    file: PathBuf,
}

impl From<args::Key> for Key {
    fn from(typed: args::Key) -> Self {
        Self { file: typed.file }
    }
}

impl Key {
    pub(crate) fn run(self, ui: &mut Ui) -> Result<Done, Failure> {
        key_file::make(&self.file)?;
        let file = quoted(&self.file);
        ui.say(&format!("Wrote a new key to {file}. Keep a copy elsewhere: without it nothing can be read."));
        ui.say(&format!("`rethread --key-file {file} --store encrypted+file:DIR …` uses it."));
        Ok(Done::Fully)
    }
}
