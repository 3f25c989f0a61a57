//! `ui`: serves the page for a keeper that may be elsewhere.

use std::net::SocketAddr;
use std::path::PathBuf;

use rethread_keeper::{KeeperUrl, RunningUi, UiSettings};

use crate::args;
use crate::daemon::{Traces, asked_to_end, log_to};
use crate::failure::{Done, Failure};
use crate::keeper_place::{Threads, explain, read_tls, runtime};
use crate::place::default_home;
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct ServeUi {
    keeper: String,
    keeper_ca: Option<PathBuf>,
    token_file: Option<PathBuf>,
    listen: Option<SocketAddr>,
    allowed_roots: Vec<PathBuf>,
    allow_hosts: Vec<String>,
    tls: args::Tls,
    no_open: bool,
    log: String,
}

impl From<args::ServeUi> for ServeUi {
    fn from(typed: args::ServeUi) -> Self {
        let args::ServeUi {
            keeper,
            keeper_ca,
            token_file,
            listen,
            allowed_roots,
            allow_hosts,
            tls,
            no_open,
            log,
        } = typed;
        Self { keeper, keeper_ca, token_file, listen, allowed_roots, allow_hosts, tls, no_open, log }
    }
}

impl ServeUi {
    pub(crate) fn run(self, ui: &mut Ui) -> Result<Done, Failure> {
        let home = default_home()?;
        let keeper: KeeperUrl = self.keeper.parse().map_err(|error| explain(&error))?;
        let token_file = self.token_file.unwrap_or_else(|| home.join("keeper/token"));
        let mut settings = UiSettings::new(home.join("ui"), keeper, token_file);
        settings.listen = self.listen.unwrap_or(settings.listen);
        settings.keeper_ca = self.keeper_ca;
        settings.allowed_roots = self.allowed_roots;
        settings.allowed_hosts = self.allow_hosts;
        let files = self.tls.tls_cert.as_ref().zip(self.tls.tls_key.as_ref());
        settings.tls = files.map(|(certificate, key)| read_tls(certificate, key)).transpose()?;
        log_to(&settings.home, &self.log, Traces::Off)?;
        rethread_keeper::allow_many_open_files();
        runtime(Threads::Several)?.block_on(async {
            let running = RunningUi::start(settings).await.map_err(|error| explain(&error))?;
            let way = match self.no_open {
                true => format!("{}/", running.url()),
                false => running.one_time_url(),
            };
            let keeper = running.keeper();
            ui.data(format!("The page is ready for the keeper at {keeper}: {way}").as_bytes())?;
            ui.flush()?;
            running.until(asked_to_end()).await.map_err(|error| explain(&error))
        })?;
        Ok(Done::Fully)
    }
}
