//! The program as a person and as a script meet it: typed words in, answers, messages and an exit code out.

mod append;
mod asking;
mod branches;
mod bundle;
mod care;
mod checkpoints;
mod clients;
mod copies;
mod doctor;
mod encryption;
mod exported;
mod fire;
mod fork;
mod handoff;
mod ids;
mod keeper;
mod keepers;
mod kit;
mod list;
#[cfg(target_os = "linux")]
mod load;
mod native;
mod off;
mod places;
mod processes;
mod secrets;
mod serving;
mod show;
mod tail;
mod tour;
mod trash;
mod trouble;
mod ui;
