//! `serve`: runs the keeper.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rethread_keeper::{Agent, Bypass, Running, Settings};

use crate::args;
use crate::config;
use crate::context::Context;
use crate::daemon::{Traces, asked_to_end, log_to};
use crate::demo::{Demo, Stage};
use crate::failure::{Done, Failure};
use crate::keeper_place::{KeeperPlace, Threads, explain, read_tls, runtime};
use crate::text::count;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Serve {
    typed: args::Serve,
    configured: config::Serve,
}

impl Serve {
    pub(crate) fn new(typed: args::Serve, configured: config::Serve) -> Self {
        Self { typed, configured }
    }

    pub(crate) fn run(self, context: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        if self.typed.background {
            return background(ui);
        }
        let demo =
            match self.typed.demo {
                true => Some(Demo::new().map_err(|error| {
                    Failure::failed(format!("cannot make the demo: {error}"), "make room")
                })?),
                false => None,
            };
        let place = match &demo {
            Some(demo) => demo.keeper(),
            None => KeeperPlace::find()?,
        };
        let stage = Stage::default();
        let settings = match &demo {
            Some(demo) => demo.settings(self.typed.listen),
            None => self.settings(&place, context, &stage)?,
        };
        let traces = if self.typed.traces { Traces::Written } else { Traces::Off };
        log_to(&place.home, &self.typed.log, traces)?;
        rethread_keeper::allow_many_open_files();
        let runtime = runtime(Threads::Several)?;
        runtime.block_on(async {
            let running = Running::start(settings).await.map_err(|error| match error {
                // As every other command tells it, with what to do next.
                rethread_keeper::Error::Store(error) => Failure::Store(error),
                error => explain(&error),
            })?;
            let sessions = count(running.sessions(), "session");
            let way = match self.typed.no_open || self.configured.no_open {
                true => format!("{}/", running.url()),
                false => running.one_time_url(),
            };
            let what = if demo.is_some() { "The demo" } else { "The keeper" };
            ui.data(format!("{what} is ready with {sessions}: {way}").as_bytes())?;
            ui.flush()?;
            if let Some(missing) = running.missing() {
                ui.warn(&format!("sessions are only read: {missing}"));
            }
            if let Some(demo) = &demo {
                introduce(demo, ui);
                let performance = demo.perform();
                tokio::spawn(async move {
                    if let Err(error) = performance.await {
                        tracing::error!(%error, "the demo's session did not begin");
                    }
                });
            }
            let ended = running.until(asked_to_end()).await.map_err(|error| explain(&error));
            stage.clear().await;
            ended
        })?;
        Ok(Done::Fully)
    }

    fn settings(&self, place: &KeeperPlace, context: &Context, stage: &Stage) -> Result<Settings, Failure> {
        let (typed, configured) = (&self.typed, &self.configured);
        let mut settings = Settings::new(&place.home, context.store.clone());
        settings.listen = typed.listen.or(configured.listen).unwrap_or(settings.listen);
        settings.allowed_roots = either(&typed.allowed_roots, &configured.allowed_root);
        settings.start = std::env::var_os("HOME").map_or(settings.start, PathBuf::from);
        settings.allowed_hosts = either(&typed.allow_hosts, &configured.allow_host);
        let files = match &typed.tls {
            args::Tls { tls_cert: Some(certificate), tls_key: Some(key) } => Some((certificate, key)),
            _ => configured.tls_cert.as_ref().zip(configured.tls_key.as_ref()),
        };
        settings.tls = files.map(|(certificate, key)| read_tls(certificate, key)).transpose()?;
        settings.claude_folder = context.native.claude().ok().map(|claude| claude.path().to_owned());
        settings.cache = context.native.cache().unwrap_or(settings.cache);
        settings.trash = context.native.trash()?;
        let named = typed.claude_bin.as_ref().or(configured.claude_bin.as_ref());
        let program = named.map(|named| program(named)).or_else(|| rethread_claude::find_cli().ok());
        settings.agent = program.map(|program| Agent { program, environment: context.native.environment() });
        let bypass = typed.allow_bypass || configured.allow_bypass;
        settings.bypass = if bypass { Bypass::Allowed } else { Bypass::Refused };
        settings.demonstration = Some(stage.demonstration());
        Ok(settings)
    }
}

/// Returns what was typed, else what is configured.
fn either<T: Clone>(typed: &[T], configured: &[T]) -> Vec<T> {
    if typed.is_empty() { configured.to_vec() } else { typed.to_vec() }
}

/// Returns the program that was named, by its whole path. A mere name is looked for on `PATH` as by a shell, and never where
/// we stand; one that is not found stays what it is, for the keeper to complain about.
fn program(named: &Path) -> PathBuf {
    if named.file_name() != Some(named.as_os_str()) {
        return std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&folders).map(|folder| folder.join(named));
    places.find(|place| place.is_absolute() && place.is_file()).unwrap_or_else(|| named.to_owned())
}

/// Says what to try.
fn introduce(demo: &Demo, ui: &mut Ui) {
    ui.say("This is a demo: its agent asks no model. Everything is in a temporary folder that goes when this ends.");
    let home = demo.place().home();
    let home = home.display();
    ui.say(&format!(
        "In another terminal: `export RETHREAD_HOME={home}`, then `rethread list` and `rethread attention`."
    ));
}

/// Starts the keeper once more, apart from this terminal, and waits until it is ready.
fn background(ui: &mut Ui) -> Result<Done, Failure> {
    let fail = |error: std::io::Error| Failure::Failed {
        message: format!("cannot start the keeper: {error}"),
        hint: None,
    };
    let program = std::env::current_exe().map_err(fail)?;
    let arguments = std::env::args_os().skip(1).filter(|argument| argument != "--background");
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Out of this terminal's group, so that what is typed here does not reach it.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(fail)?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).map_err(fail)?;
    }
    if line.is_empty() {
        let output = child.wait_with_output().map_err(fail)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let mut lines = said.lines();
        let message =
            lines.next().unwrap_or("error: the keeper ended").trim_start_matches("error: ").to_owned();
        let hint = lines.next().map(|line| line.trim_start_matches("hint: ").to_owned());
        return Err(Failure::Failed { message, hint });
    }
    ui.data(line.trim_end().as_bytes())?;
    ui.say("`rethread logs` shows its log, `rethread stop` ends it.");
    Ok(Done::Fully)
}
