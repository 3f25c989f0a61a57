//! The keeper over its real sockets, on port 0.

mod attention;
mod background;
mod broken_agents;
mod bypass;
mod defects;
mod driving;
mod file_history;
mod files;
mod finding;
mod fire;
mod health;
mod kit;
mod looks;
mod misfortunes;
mod page;
mod queue;
mod reading;
mod recorded;
mod security;
mod session_store;
mod shared;
mod stored;
mod streams;
mod tls;
mod ui;
