//! What people write first: a few lines of node that pass each line on to everybody.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::served::websocket;
use crate::failure::Outcome;

const MODULE: &str = "
import { WebSocketServer, WebSocket } from 'ws';
import { createInterface } from 'node:readline';
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false });
server.on('listening', () => console.log(server.address().port));
createInterface({ input: process.stdin }).on('line', (line) => {
  for (const client of server.clients) if (client.readyState === WebSocket.OPEN) client.send(line);
});";

/// The broadcaster.
pub(super) struct Broadcaster {
    child: Child,
    input: ChildStdin,
    port: u16,
}

impl Broadcaster {
    pub(super) fn start() -> Outcome<Self> {
        let folder = rethread_testkit::package("ws").ok_or("the package ws cannot be installed")?;
        let mut command = Command::new("node");
        command.args(["--input-type=module", "-e", MODULE]).current_dir(folder);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().ok_or("no output")?).read_line(&mut line)?;
        let input = child.stdin.take().ok_or("no input")?;
        Ok(Self { child, input, port: line.trim().parse()? })
    }

    pub(super) fn clients(&self, count: usize) -> Outcome<Vec<TcpStream>> {
        (0..count).map(|_| websocket(self.port, "/", "")).collect()
    }

    pub(super) fn send(&mut self, lines: &[u8]) -> Outcome<()> {
        Ok(self.input.write_all(lines)?)
    }
}

impl Drop for Broadcaster {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
