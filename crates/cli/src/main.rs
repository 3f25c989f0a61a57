//! `rethread`: every verb of the store as a command.

mod age;
mod args;
mod commands;
mod config;
mod context;
mod conversation;
mod daemon;
mod demo;
mod failure;
mod family;
mod files;
mod fork_point;
mod keeper_place;
mod key_file;
mod named;
mod native;
mod pager;
mod patience;
mod place;
mod short_ids;
mod stored_log;
mod text;
mod ui;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{Args, Verb};
use crate::commands::{
    Append, Archive, Attention, Checkpoint, Checkpoints, Completions, Copy, Delete, Diff, Doctor, Du, Erase,
    Export, Fork, Gc, Handoff, Import, Interrupt, Key, List, Logs, Materialize, New, Open, Purge, Rename,
    Repair, Restore, Resume, Rewind, Scan, Send, Serve, ServeUi, Service, Show, Status, Stop, Sync, Tag,
    Tail, Take, Token, Tour, Verify, Watch,
};
use crate::config::Config;
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::native::Native;
use crate::place::Place;
use crate::ui::{Answer, Ui};

fn main() -> ExitCode {
    // Agents that a keeper drives are guarded by this program itself.
    rethread_claude::guard::init();
    let mut words = std::env::args_os().skip(1);
    if words.next().is_some_and(|word| word == demo::SIGN) {
        demo::play(words);
        return ExitCode::SUCCESS;
    }
    let mut ui = Ui::new();
    let done = match Args::try_parse() {
        Ok(args) => run(args, &mut ui),
        Err(refused) => commands::refuse(&refused, &mut ui),
    };
    let done = done.and_then(|done| ui.flush().map(|()| done));
    ui.end(&done, Answer::typed());
    match done {
        Ok(done) => done.exit_code(),
        Err(failure) => failure.exit_code(),
    }
}

fn run(args: Args, ui: &mut Ui) -> Result<Done, Failure> {
    let verb = match args.verb {
        Verb::Completions(typed) => return Completions::from(typed).run(ui),
        Verb::Key(typed) => return Key::from(typed).run(ui),
        Verb::Tour(_) if args.store.is_some() => {
            return Err(Failure::wrongly("the tour has a store of its own", "`rethread tour`"));
        }
        Verb::Tour(typed) => return Tour::from(typed).run(ui),
        Verb::Ui(_) if args.store.is_some() => {
            return Err(Failure::wrongly("the page has no store: its keeper has one", "leave out --store"));
        }
        Verb::Ui(typed) => return ServeUi::from(typed).run(ui),
        verb => verb,
    };
    let redact = args.redact || std::env::var_os("RETHREAD_REDACT").is_some_and(|set| set == "1");
    let config = Config::read()?;
    let store = verb.from().map(str::to_owned).or(args.store);
    let place = Place::find(store, config.store.as_deref(), args.key_file.as_deref())?;
    let is_encrypted = place.is_encrypted() || verb.other().is_some_and(key_file::is_encrypted);
    if args.key_file.is_some() && !is_encrypted {
        let hint = "`--store encrypted+URL` names one that is; without --key-file it is used as it is";
        return Err(Failure::wrongly("a key was given, and no store is encrypted", hint));
    }
    let context =
        Context::open(place, args.key_file, Native::find(args.claude_dir, config.claude_dir), redact)?;
    let done = match verb {
        Verb::Serve(typed) => Serve::new(typed, config.serve).run(&context, ui),
        verb => dispatch(verb, &context, ui),
    };
    context.finish(done, ui)
}

fn dispatch(verb: Verb, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
    match verb {
        Verb::List(typed) => List::from(typed).run(context, ui),
        Verb::Show(typed) => Show::from(typed).run(context, ui),
        Verb::New(typed) => New::from(typed).run(context, ui),
        Verb::Append(typed) => Append::from(typed).run(context, ui),
        Verb::Fork(typed) => Fork::from(typed).run(context, ui),
        Verb::Materialize(typed) => Materialize::from(typed).run(context, ui),
        Verb::Archive(typed) => Archive::from(typed).run(context, ui),
        Verb::Delete(typed) => Delete::from(typed).run(context, ui),
        Verb::Restore(typed) => Restore::from(typed).run(context, ui),
        Verb::Purge(typed) => Purge::from(typed).run(context, ui),
        Verb::Erase(typed) => Erase::from(typed).run(context, ui),
        Verb::Verify(typed) => Verify::from(typed).run(context, ui),
        Verb::Repair(typed) => Repair::from(typed).run(context, ui),
        Verb::Gc(typed) => Gc::from(typed).run(context, ui),
        Verb::Checkpoint(typed) => Checkpoint::from(typed).run(context, ui),
        Verb::Checkpoints(typed) => Checkpoints::from(typed).run(context, ui),
        Verb::Diff(typed) => Diff::from(typed).run(context, ui),
        Verb::Rewind(typed) => Rewind::from(typed).run(context, ui),
        Verb::Du(typed) => Du::from(typed).run(context, ui),
        Verb::Import(typed) => Import::from(typed).run(context, ui),
        Verb::Export(typed) => Export::from(typed).run(context, ui),
        Verb::Copy(typed) => Copy::from(typed).run(context, ui),
        Verb::Sync(typed) => Sync::from(typed).run(context, ui),
        Verb::Handoff(typed) => Handoff::from(typed).run(context, ui),
        Verb::Take(typed) => Take::from(typed).run(context, ui),
        Verb::Tail(typed) => Tail::from(typed).run(context, ui),
        Verb::Resume(typed) => Resume::from(typed).run(context, ui),
        Verb::Rename(typed) => Rename::from(typed).run(context, ui),
        Verb::Tag(typed) => Tag::from(typed).run(context, ui),
        Verb::Doctor(typed) => Doctor::from(typed).run(context, ui),
        Verb::Scan(typed) => Scan::from(typed).run(context, ui),
        Verb::Open(typed) => Open::from(typed).run(context, ui),
        Verb::Status(typed) => Status::from(typed).run(context, ui),
        Verb::Stop(typed) => Stop::from(typed).run(context, ui),
        Verb::Logs(typed) => Logs::from(typed).run(context, ui),
        Verb::Send(typed) => Send::from(typed).run(context, ui),
        Verb::Interrupt(typed) => Interrupt::from(typed).run(context, ui),
        Verb::Watch(typed) => Watch::from(typed).run(context, ui),
        Verb::Attention(typed) => Attention::from(typed).run(context, ui),
        Verb::Token(typed) => Token::from(typed).run(context, ui),
        Verb::Service(typed) => Service::from(typed).run(context, ui),
        Verb::Tour(_) | Verb::Completions(_) | Verb::Key(_) | Verb::Ui(_) | Verb::Serve(_) => {
            unreachable!("these were run before")
        }
    }
}
