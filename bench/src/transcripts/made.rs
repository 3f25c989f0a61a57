//! Made-up folders of Claude Code's.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use fastrand::Rng;

use crate::corpus::Corpus;
use crate::failure::Outcome;

/// How many projects the sessions are spread over.
const PROJECTS: usize = 100;
/// Median and spread of a session's length in lines.
const MU: f64 = 3.1;
const SIGMA: f64 = 1.0;

/// Returns a session's id.
pub(crate) fn id(number: usize) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

/// Makes a folder with many sessions.
pub(crate) fn many(config: &Path, count: usize) -> Outcome<()> {
    let (corpus, mut rng, mut first) = (Corpus::new(5), Rng::with_seed(5), 0);
    for number in 0..count {
        let folder = config.join("projects").join(format!("-home-ada-project-{}", number % PROJECTS));
        fs::create_dir_all(&folder)?;
        let length = lognormal(&mut rng);
        session(&folder.join(format!("{}.jsonl", id(number))), corpus, first, length)?;
        first += length;
    }
    Ok(())
}

/// Makes a folder with one session, and returns its transcript.
pub(crate) fn one(config: &Path, lines: usize) -> Outcome<PathBuf> {
    let folder = config.join("projects/-home-ada-parser");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{}.jsonl", id(0)));
    session(&path, Corpus::new(6), 0, lines)?;
    Ok(path)
}

/// Writes a session whose lines follow each other, as Claude Code would have.
fn session(path: &Path, corpus: Corpus, first: usize, lines: usize) -> Outcome<()> {
    let mut file = BufWriter::with_capacity(1 << 20, File::create(path)?);
    let mut parent: Option<usize> = None;
    for index in first..first + lines {
        // A session begins with what a person asks.
        let line = if index == first { corpus.prompt(index) } else { corpus.line(index) };
        let text = std::str::from_utf8(&line)?;
        // A snapshot takes no part in the conversation, so nothing follows it.
        if text.contains("\"type\":\"file-history-snapshot\"") {
            continue;
        }
        let follows = parent.map_or("null".into(), |parent| format!("\"{}\"", corpus.uuid(parent)));
        let (_, rest) = text.split_once(",\"isSidechain\"").ok_or("a line begins in another way")?;
        // Each answer is a message of its own.
        let rest = rest.replacen("\"id\":\"msg_01\"", &format!("\"id\":\"msg_{index}\""), 1);
        writeln!(file, "{{\"parentUuid\":{follows},\"isSidechain\"{rest}")?;
        parent = Some(index);
    }
    let leaf = parent.map(|parent| corpus.uuid(parent)).unwrap_or_default();
    writeln!(
        file,
        "{{\"type\":\"last-prompt\",\"lastPrompt\":\"go on\",\"leafUuid\":\"{leaf}\",\"sessionId\":\"x\"}}"
    )?;
    Ok(file.flush()?)
}

fn lognormal(rng: &mut Rng) -> usize {
    let (radius, angle) = ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    ((MU + SIGMA * radius * angle.cos()).exp() as usize).clamp(2, 400)
}
