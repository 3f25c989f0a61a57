//! From an agent's line to a browser's socket, against a thread that does nothing but pass lines on.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};

use serde_json::json;

use super::agent::{age, program};
use super::listeners::Listeners;
use super::served::Served;
use crate::bar::Bar;
use crate::bench::Bench;
use crate::contest::Contest;
use crate::errand::Errand;
use crate::failure::Outcome;
use crate::row::{Row, Unit};
use crate::samples::Samples;

const LINES: usize = 1_000;

pub(super) fn run(bench: &Bench) -> Outcome<Vec<Row>> {
    let (home, config, work) = (bench.fresh()?, bench.fresh()?, bench.fresh()?);
    let lines = if bench.scale.judged { LINES } else { 20 };
    std::fs::create_dir_all(config.join("projects"))?;
    let mut served = Served::start(&home, &config, Some(&program(&bench.fresh()?)?))?;
    let session = served.post("/sessions", &json!({ "cwd": work }))?["session_id"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let mut listeners = Listeners::new(vec![served.stream(&session)?])?;
    let mut turn = 0;
    let row = Contest::new(
        format!("an agent's line to a browser's socket, p99 of {lines}"),
        Unit::Microseconds,
        |_| {
            turn += 1;
            let mut ages = Samples::default();
            let body = json!({
                "client_message_id": format!("{turn:08x}-3333-4333-8333-333333333333"), "mode": "queue",
                "parts": [{ "type": "text", "text": lines.to_string() }],
            });
            served.post(&format!("/sessions/{session}/turns"), &body)?;
            // The same ids come in every turn, and are told again because they say something else.
            listeners.wait(lines, |frame| ages.extend(age(frame)))?;
            Ok(ages.quantile(0.99))
        },
    )
    .peer("bare relay: a pipe's lines to a socket", Bar::AtMost(3.0), |_| bare(lines))
    .run(bench)?;
    Ok(vec![row])
}

fn bare(lines: usize) -> Outcome<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let client = TcpStream::connect(listener.local_addr()?)?;
    let (mut browser, _) = listener.accept()?;
    browser.set_nodelay(true)?;
    let mut child = Errand::Speak { lines }.start()?;
    let output = child.stdout.take().ok_or("no output")?;
    let relay = std::thread::spawn(move || -> std::io::Result<()> {
        let mut lines = BufReader::new(output);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            browser.write_all(&line)?;
            line.clear();
        }
        Ok(())
    });
    let mut ages = Samples::default();
    for line in BufReader::new(client).split(b'\n') {
        ages.extend(age(&line?));
    }
    relay.join().map_err(|_| "the relay failed")??;
    child.wait()?;
    Ok(ages.quantile(0.99))
}
