//! Entries as Claude Code writes them, made up: each is a pure function of the seed and its index.
//!
//! Sizes are lognormal with a mean of about 2.5 KB and up to 200 KB; six in ten are an assistant's, with thoughts,
//! text and tool calls, most others a person's or a tool's, and a few are about the session itself.

use bytes::Bytes;
use fastrand::Rng;
use rethread_store::Entry;
use serde_json::{Value, json};

use crate::failure::Outcome;

/// Median and spread of the lognormal sizes: their mean is `exp(MU + SIGMA² / 2)`, about 2.5 KB.
const MU: f64 = 7.1;
const SIGMA: f64 = 1.2;
const LONGEST: f64 = 200_000.0;
/// What an entry is long before it says anything.
const ENVELOPE: usize = 420;
/// From which of a hundred on an entry is a prompt.
const PROMPT: u8 = 60;

const WORDS: &[&str] = &[
    "the",
    "session",
    "a",
    "to",
    "writer",
    "of",
    "log",
    "is",
    "and",
    "parser",
    "in",
    "entry",
    "that",
    "test",
    "for",
    "fn",
    "let",
    "self",
    "error",
    "->",
    "Result<()>",
    "{",
    "}",
    "\n",
    "\n    ",
    "\"quoted\"",
    "\t",
    "return",
    "if",
    "match",
    "None",
    "Some(line)",
    "offset",
    "buffer",
    "naïve",
    "façade",
    "Größe",
    "日本語",
    "→",
    "…",
    "🚀",
    "C:\\temp",
    "append",
    "fsync",
    "commit",
    "0x1F",
    "42",
    "//",
    "why",
    "segment",
    "index",
    "position",
    "parent",
    "fork",
];

/// Made-up entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Corpus {
    seed: u64,
}

impl Corpus {
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// Returns the entries of some indices, each one line of JSON without its newline.
    pub(crate) fn lines(self, indices: impl IntoIterator<Item = usize>) -> Vec<Bytes> {
        let lines: Vec<Bytes> = indices.into_iter().map(|index| self.line(index)).collect();
        // Copied, so that they lie side by side for everybody, and not with what they were made from in between.
        lines.iter().map(|line| Bytes::copy_from_slice(line)).collect()
    }

    /// Returns the entry of an index.
    pub(crate) fn line(self, index: usize) -> Bytes {
        self.entry(index, None)
    }

    /// Returns the entry of an index, had a person said it.
    pub(crate) fn prompt(self, index: usize) -> Bytes {
        self.entry(index, Some(PROMPT))
    }

    /// Returns the entry of an index, of some kind or of any.
    fn entry(self, index: usize, kind: Option<u8>) -> Bytes {
        let mut rng = Rng::with_seed(self.seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let room = size(&mut rng).saturating_sub(ENVELOPE);
        let mut entry = json!({
            "parentUuid": index.checked_sub(1).map(|before| self.uuid(before)),
            "isSidechain": false,
            "userType": "external",
            "cwd": "/home/ada/parser",
            "sessionId": "5f1c9a52-0d0e-4a6b-9f52-7d3a3f1b2c4d",
            "version": "2.1.325",
            "gitBranch": "main",
        });
        let any = rng.u8(..100);
        let (kind, said) = match kind.unwrap_or(any) {
            0..PROMPT => ("assistant", assistant(&mut rng, room)),
            PROMPT..70 => ("user", json!({ "message": { "role": "user", "content": text(&mut rng, room) } })),
            70..97 => ("user", tool_result(&mut rng, room)),
            97 | 98 => {
                ("system", json!({ "subtype": "informational", "content": text(&mut rng, room.min(300)) }))
            }
            _ => (
                "file-history-snapshot",
                json!({ "snapshot": { "trackedFileBackups": {}, "isUpdate": false } }),
            ),
        };
        if let (Some(entry), Value::Object(said)) = (entry.as_object_mut(), said) {
            entry.insert("type".into(), kind.into());
            entry.extend(said);
            entry.insert("uuid".into(), self.uuid(index).into());
            let (minute, second) = (index / 60 % 60, index % 60);
            entry.insert("timestamp".into(), format!("2026-02-09T10:{minute:02}:{second:02}.123Z").into());
        }
        entry.to_string().into()
    }

    /// Returns the id of an index's entry.
    pub(crate) fn uuid(self, index: usize) -> String {
        let mut rng = Rng::with_seed(!self.seed ^ (index as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93));
        let (high, low) = (rng.u32(..), rng.u64(..) >> 16);
        format!(
            "{high:08x}-{:04x}-4{:03x}-a{:03x}-{low:012x}",
            rng.u16(..),
            rng.u16(..0xFFF),
            rng.u16(..0xFFF)
        )
    }
}

/// Returns lines as entries of the store.
pub(crate) fn entries(lines: &[Bytes]) -> Outcome<Vec<Entry>> {
    Ok(lines.iter().cloned().map(Entry::parse).collect::<Result<_, _>>()?)
}

fn size(rng: &mut Rng) -> usize {
    // Box and Muller's way to a normal distribution; 1 - x, so that the logarithm has something to work on.
    let (radius, angle) = ((-2.0 * (1.0 - rng.f64()).ln()).sqrt(), std::f64::consts::TAU * rng.f64());
    (MU + SIGMA * radius * angle.cos()).exp().min(LONGEST) as usize
}

fn assistant(rng: &mut Rng, room: usize) -> Value {
    let room = room.saturating_sub(220);
    let tool = json!({
        "type": "tool_use", "id": "toolu_01", "name": "Edit",
        "input": { "file_path": "/home/ada/parser/src/lib.rs", "new_string": text(rng, room / 3) },
    });
    let content = match rng.u8(..3) {
        0 => json!([{ "type": "thinking", "thinking": text(rng, room), "signature": "c2lnbmF0dXJl" }]),
        1 => json!([{ "type": "text", "text": text(rng, room) }]),
        _ => json!([{ "type": "text", "text": text(rng, room * 2 / 3) }, tool]),
    };
    let usage = json!({ "input_tokens": rng.u16(..), "cache_read_input_tokens": rng.u16(..), "output_tokens": rng.u16(..) });
    json!({ "message": {
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-opus-4-5",
        "content": content, "stop_reason": null, "usage": usage,
    } })
}

/// What a tool said stands twice, as Claude Code has it: for the model and for the person.
fn tool_result(rng: &mut Rng, room: usize) -> Value {
    let output = text(rng, room / 2);
    let content =
        json!([{ "type": "tool_result", "tool_use_id": "toolu_01", "content": output, "is_error": false }]);
    json!({ "message": { "role": "user", "content": content }, "toolUseResult": { "stdout": output, "stderr": "" } })
}

fn text(rng: &mut Rng, length: usize) -> String {
    let mut text = String::with_capacity(length + 16);
    while text.len() < length {
        // The square prefers the first words, as a language does.
        let place = rng.f64();
        text.push_str(WORDS[(place * place * WORDS.len() as f64) as usize]);
        text.push(' ');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_the_same_whenever_it_is_made() {
        assert_eq!(Corpus::new(7).line(3), Corpus::new(7).lines(0..9)[3]);
        assert_ne!(Corpus::new(7).line(3), Corpus::new(8).line(3));
    }

    #[test]
    fn sizes_are_as_in_real_sessions() {
        let lines = Corpus::new(1).lines(0..4000);
        let mean = lines.iter().map(Bytes::len).sum::<usize>() / lines.len();
        assert!((2200..2800).contains(&mean), "{mean}");
        assert!(lines.iter().all(|line| line.len() < 260_000));
        assert_eq!(entries(&lines).unwrap()[5].id().as_str(), Corpus::new(1).uuid(5));
    }
}
