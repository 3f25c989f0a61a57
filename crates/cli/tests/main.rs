//! The program as a person and as a script meet it: typed words in, answers, messages and an exit code out.

mod append;
mod bundle;
mod care;
mod checkpoints;
mod clients;
mod copies;
mod encryption;
mod fire;
mod fork;
mod handoff;
mod ids;
mod keeper;
mod keepers;
mod kit;
mod list;
mod native;
mod off;
mod places;
mod processes;
mod secrets;
mod show;
mod tail;
mod tour;
mod trash;
mod trouble;
mod ui;
