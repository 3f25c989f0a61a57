//! Everything the program says: progress on standard error, the table on standard output.

use std::io::{IsTerminal, Write};
use std::time::Instant;

use crate::bench::Bench;
use crate::errand::Answer;
use crate::failure::Outcome;
use crate::neighbours::is_quiet;
use crate::row::{Peer, Row};

/// Says what went wrong.
pub(crate) fn error(error: &dyn std::error::Error) {
    say(&format!("error: {error}\n"));
}

/// Hands an errand's answer to the process that sent it.
pub(crate) fn answer(answer: &Answer) -> Outcome<()> {
    writeln!(std::io::stdout(), "{}", serde_json::to_string(answer)?)?;
    Ok(())
}

/// Says that one more entry is durable, to whoever is about to kill this process.
pub(crate) fn acknowledge(count: usize) -> Outcome<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{count}")?;
    out.flush()?;
    Ok(())
}

/// What is being measured, and how far it is.
pub(crate) struct Progress {
    what: String,
    begun: Instant,
    live: bool,
}

impl Progress {
    /// Says what is measured now.
    pub(crate) fn begin(what: impl Into<String>) -> Self {
        let what = what.into();
        let live = std::io::stderr().is_terminal();
        if !live {
            say(&format!("{what} … "));
        }
        Self { what, begun: Instant::now(), live }
    }

    /// Says how many rounds count so far.
    pub(crate) fn round(&self, round: usize, of: usize) {
        if self.live {
            say(&format!("\r\x1b[K{} … round {round} of {of}", self.what));
        } else {
            say(".");
        }
    }

    /// Says how long it took.
    pub(crate) fn end(self) {
        let seconds = self.begun.elapsed().as_secs_f64();
        let line = if self.live { format!("\r\x1b[K{} … ", self.what) } else { " ".into() };
        say(&format!("{line}{seconds:.1} s\n"));
    }
}

/// Prints what came out.
pub(crate) fn table(area: &str, rows: &[Row], bench: &Bench) -> Outcome<()> {
    let mut out = std::io::stdout().lock();
    for row in rows {
        let once = if row.is_of_one_round() { ", counted once" } else { "" };
        writeln!(out, "\n{}, {}{once}{}", row.what, row.unit.name(), disturbance(row.others))?;
        writeln!(out, "  {:<58} {:>11}", "rethread", figure(row.ours))?;
        for peer in &row.peers {
            writeln!(out, "{}", line(peer, bench.scale.judged))?;
        }
    }
    let bars: Vec<&Peer> =
        rows.iter().flat_map(|row| &row.peers).filter(|peer| !peer.bar.is_shown()).collect();
    let met = bars.iter().filter(|peer| peer.holds).count();
    match bench.scale.judged {
        true => writeln!(
            out,
            "\n{area}: {met} of {} bars hold, medians of at least {} rounds where not counted once",
            bars.len(),
            bench.scale.rounds
        )?,
        false => writeln!(out, "\n{area}: a quick run, so no bar was judged")?,
    }
    writeln!(out, "{}", bench.file.display())?;
    Ok(())
}

fn disturbance(others: f64) -> String {
    match is_quiet(others) {
        true => String::new(),
        false => format!("  (other programs had {:.0} % of the processors)", others * 100.0),
    }
}

fn line(peer: &Peer, judged: bool) -> String {
    let verdict = match (peer.bar.is_shown() || !judged, peer.holds) {
        (true, _) => "",
        (_, true) => "holds",
        (_, false) => "FAILS",
    };
    let (name, bar) = (&peer.name, peer.bar.words());
    let text =
        format!("  {name:<58} {:>11} {:>9} ×  {bar:<14} {verdict}", figure(peer.figure), figure(peer.ratio));
    text.trim_end().to_owned()
}

fn figure(figure: f64) -> String {
    match figure.abs() {
        0.0 => "0".into(),
        size if size < 10.0 => format!("{figure:.2}"),
        size if size < 100.0 => format!("{figure:.1}"),
        _ => format!("{figure:.0}"),
    }
}

fn say(text: &str) {
    // Without a standard error there is nobody to tell, and the measuring goes on.
    let _ = std::io::stderr().write_all(text.as_bytes());
}
