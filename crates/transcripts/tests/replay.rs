//! Inputs that once reached something new in a fuzz target, and as many made up.

#[path = "../../../fuzz/src/transcript.rs"]
mod transcript;

use std::fs;
use std::path::Path;

use fastrand::Rng;

/// Runs a target on its corpus, and on inputs made up from it.
fn replay(name: &str, target: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let files = fs::read_dir(&corpus).unwrap().map(|file| fs::read(file.unwrap().path()).unwrap());
    let inputs: Vec<Vec<u8>> = files.collect();
    assert!(!inputs.is_empty(), "there is no corpus in {}", corpus.display());
    let mut rng = Rng::with_seed(1);
    for input in &inputs {
        target(input);
        for _ in 0..60 {
            let mut other = input.clone();
            for _ in 0..rng.usize(1..4) {
                let at = rng.usize(..=other.len());
                match rng.u8(..4) {
                    0 => other.truncate(at),
                    1 => other.insert(at, rng.u8(..)),
                    2 => other.extend_from_within(at..),
                    _ => other.iter_mut().skip(at).take(3).for_each(|byte| *byte = rng.u8(..)),
                }
            }
            target(&other);
        }
    }
}

#[test]
fn no_transcript_breaks_its_reader() {
    replay("transcript", transcript::transcript);
}

#[test]
fn no_conversation_breaks_the_chain() {
    replay("transcript_chain", transcript::transcript_chain);
}

#[test]
fn no_line_says_something_else_when_it_is_followed() {
    replay("transcript_line", transcript::transcript_line);
}
