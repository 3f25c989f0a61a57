//! The CLI as a process, under a guard.

use std::io::{PipeReader, PipeWriter, pipe};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::Stdio;
use std::time::Duration;

use async_trait::async_trait;
use rustix::io::FdFlags;
use tokio::process::{Child, Command};

use super::{Agent, Connection, Ending, Transport};
use crate::error::{Error, Result};
use crate::guard;
use crate::locate;
use crate::options::Launch;
use crate::version;

/// Finds the CLI, asks it for its version, and starts it in a process group of its own, under a [guard](crate::guard).
#[derive(Clone, Debug)]
pub struct ProcessTransport {
    grace: Duration,
}

impl Default for ProcessTransport {
    /// Gives a CLI that is to end five seconds to do so by itself.
    fn default() -> Self {
        Self { grace: Duration::from_secs(5) }
    }
}

impl ProcessTransport {
    /// Gives a CLI that is to end some time to do so by itself.
    pub fn with_grace(grace: Duration) -> Self {
        Self { grace }
    }
}

#[async_trait]
impl Transport for ProcessTransport {
    async fn open(&self, launch: &Launch) -> Result<Connection> {
        let program = locate::program(&launch.program)?;
        if let Some(cwd) = launch.cwd.as_ref().filter(|cwd| !cwd.is_dir()) {
            return Err(Error::io("work in", cwd)(std::io::ErrorKind::NotADirectory.into()));
        }
        if let Some(limit) = launch.version_within {
            version::check(&program, launch, limit).await?;
        }
        let refused = || Error::io("start", &program);
        let (control, host) = pipe().map_err(refused())?;
        let control = inheritable(&control).map_err(refused())?;
        let mut command = guard::command(program.as_os_str(), &launch.arguments, control.as_fd(), self.grace);
        launch.surroundings(&mut command);
        let mut command = Command::from(command);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut guard = command.spawn().map_err(refused())?;
        drop(control);
        let (Some(input), Some(output), Some(complaints)) =
            (guard.stdin.take(), guard.stdout.take(), guard.stderr.take())
        else {
            unreachable!("the three were asked for")
        };
        Ok(Connection::new(output, input, Guarded { guard, host: Some(host) }).complaining(complaints))
    }
}

/// Returns the same end of a pipe for a guard to inherit, out of the way of the few numbers that a script can use.
fn inheritable(end: &PipeReader) -> std::io::Result<OwnedFd> {
    let end = rustix::io::fcntl_dupfd_cloexec(end, 10)?;
    rustix::io::fcntl_setfd(&end, FdFlags::empty())?;
    Ok(end)
}

/// A CLI that a guard owns.
#[derive(Debug)]
struct Guarded {
    guard: Child,
    /// The guard ends the CLI when this is closed, by us or by our death.
    host: Option<PipeWriter>,
}

#[async_trait]
impl Agent for Guarded {
    async fn ended(&mut self) -> Ending {
        match self.guard.wait().await.map(|status| status.code()) {
            Ok(Some(code)) => Ending::Exited(code),
            _ => Ending::Unknown,
        }
    }

    fn end(&mut self) {
        self.host = None;
    }
}
