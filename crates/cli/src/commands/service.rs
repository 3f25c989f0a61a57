//! `service`: a unit that keeps the keeper running.

use crate::args::{self, Manager};
use crate::context::Context;
use crate::failure::{Done, Failure};
use crate::ui::Ui;

#[derive(Debug)]
pub(crate) struct Service {
    manager: Manager,
}

impl From<args::Service> for Service {
    fn from(typed: args::Service) -> Self {
        Self { manager: typed.manager }
    }
}

impl Service {
    pub(crate) fn run(self, _: &Context, ui: &mut Ui) -> Result<Done, Failure> {
        let fail = |error: std::io::Error| Failure::Failed {
            message: format!("cannot say where this program is: {error}"),
            hint: None,
        };
        let program = std::env::current_exe().map_err(fail)?.display().to_string();
        let (unit, hint) = match self.manager {
            Manager::Systemd => (
                systemd(&program),
                "`rethread service systemd > ~/.config/systemd/user/rethread.service`, then `systemctl --user enable --now rethread`",
            ),
            Manager::Launchd => (
                launchd(&program),
                "`rethread service launchd > ~/Library/LaunchAgents/dev.rethread.keeper.plist`, then `launchctl load` it",
            ),
        };
        ui.data(unit.trim_end().as_bytes())?;
        ui.aside(hint);
        Ok(Done::Fully)
    }
}

fn systemd(program: &str) -> String {
    // A percent sign means something to systemd, and so does a backslash within quotes.
    let program = program.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!(
        "[Unit]\nDescription=rethread keeper\n\n[Service]\nExecStart=\"{program}\" serve --no-open\nRestart=on-failure\n\
         KillMode=mixed\nTimeoutStopSec=30\nNoNewPrivileges=true\n\n[Install]\nWantedBy=default.target\n"
    )
}

fn launchd(program: &str) -> String {
    let program = program.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
         <plist version=\"1.0\">\n<dict>\n  <key>Label</key><string>dev.rethread.keeper</string>\n  <key>ProgramArguments</key>\n\
         \x20 <array><string>{program}</string><string>serve</string><string>--no-open</string></array>\n\
         \x20 <key>RunAtLoad</key><true/>\n  <key>KeepAlive</key><dict><key>SuccessfulExit</key><false/></dict>\n</dict>\n</plist>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_with_odd_characters_stays_one_argument() {
        assert!(systemd("/a b/50%/re\"thread").contains("ExecStart=\"/a b/50%%/re\\\"thread\" serve"));
        assert!(launchd("/a&b/<x>").contains("<string>/a&amp;b/&lt;x&gt;</string>"));
    }
}
