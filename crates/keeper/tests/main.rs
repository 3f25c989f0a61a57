//! The keeper over its real sockets, on port 0.

mod defects;
mod driving;
mod file_history;
mod files;
mod fire;
mod kit;
mod looks;
mod page;
mod reading;
mod security;
mod session_store;
mod shared;
mod streams;
mod ui;
