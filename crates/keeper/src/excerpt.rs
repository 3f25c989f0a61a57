//! A damaged place in a file as a person can look at it: its line, with what is wrong made visible.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::{memchr_iter, memrchr};
use rethread_transcripts::{Fault, FaultKind};
use serde::Serialize;
use serde::de::IgnoredAny;
use utoipa::ToSchema;

/// How much of a line is looked at.
const LINE: u64 = 1 << 20;
/// How much of what can be read is shown on each side of what cannot, in characters.
const SIDE: usize = 180;
/// How much of what stands after the end of an entry is marked, in characters.
const MARKED: usize = 24;
/// How many places of one file are shown; the others only have their offsets.
pub(crate) const PLACES: usize = 100;

/// A damaged line, with what is wrong made visible.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Excerpt {
    /// Which line of the file it is, the first being 1.
    line: u64,
    /// How many bytes of what was looked at are zero.
    zeros: u64,
    /// What stands there, in order. Bytes that are no text are written as their codes.
    pieces: Vec<Piece>,
}

/// Some of a damaged line.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Piece {
    text: String,
    /// This is what cannot be read.
    damaged: bool,
}

impl Piece {
    fn good(text: impl Into<String>) -> Self {
        Self { text: text.into(), damaged: false }
    }

    fn bad(text: impl Into<String>) -> Self {
        Self { text: text.into(), damaged: true }
    }
}

/// Returns how many lines a file has, and an excerpt for each fault that is about bytes; faults are in order.
pub(crate) fn excerpts(
    file: &File,
    length: u64,
    faults: &[Fault],
) -> io::Result<(u64, Vec<Option<Excerpt>>)> {
    let about_bytes = |fault: &&Fault| shows_bytes(&fault.kind);
    let places: Vec<u64> = faults.iter().filter(about_bytes).take(PLACES).map(|it| it.offset).collect();
    let (lines, numbers) = line_numbers(file, length, &places)?;
    let mut numbers = numbers.into_iter();
    let mut all = Vec::with_capacity(faults.len());
    for fault in faults {
        let line = if shows_bytes(&fault.kind) { numbers.next() } else { None };
        all.push(line.map(|line| excerpt(file, fault, line)).transpose()?);
    }
    Ok((lines, all))
}

/// Returns whether looking at the bytes tells something: an id that is there twice is as good as any other.
fn shows_bytes(kind: &FaultKind) -> bool {
    use FaultKind::{Garbage, Glued, LoneSurrogate, NotUtf8, NulRun, TornTail};
    matches!(kind, TornTail | NulRun | Glued { .. } | Garbage | NotUtf8 | LoneSurrogate)
}

/// Counts lines, and says on which of them places are, which are in order.
fn line_numbers(file: &File, length: u64, places: &[u64]) -> io::Result<(u64, Vec<u64>)> {
    let mut piece = vec![0; 256 << 10];
    let (mut at, mut ended, mut last) = (0, 0, b'\n');
    let mut numbers = Vec::with_capacity(places.len());
    while at < length {
        let wanted = usize::try_from(length - at).unwrap_or(usize::MAX).min(piece.len());
        let read = file.read_at(&mut piece[..wanted], at)?;
        if read == 0 {
            break;
        }
        for end in memchr_iter(b'\n', &piece[..read]) {
            while places.get(numbers.len()).is_some_and(|place| *place <= at + end as u64) {
                numbers.push(ended + 1);
            }
            ended += 1;
        }
        last = piece[read - 1];
        at += read as u64;
    }
    numbers.resize(places.len(), ended + 1);
    Ok((ended + u64::from(last != b'\n'), numbers))
}

fn excerpt(file: &File, fault: &Fault, line: u64) -> io::Result<Excerpt> {
    // A flaw in a text stands somewhere within its line; everything else is a line.
    let within = matches!(fault.kind, FaultKind::NotUtf8 | FaultKind::LoneSurrogate);
    let from = match fault.kind {
        _ if within => fault.offset.saturating_sub(SIDE as u64),
        // What is missing is missing at its end.
        FaultKind::TornTail => fault.offset + fault.length.saturating_sub(LINE),
        _ => fault.offset,
    };
    let offset = fault.offset.max(from);
    let wanted = LINE.min(offset - from + fault.length + SIDE as u64 * 4);
    let mut bytes = vec![0; usize::try_from(wanted).unwrap_or(0)];
    let mut read = 0;
    while read < bytes.len() {
        match file.read_at(&mut bytes[read..], from + read as u64)? {
            0 => break,
            some => read += some,
        }
    }
    bytes.truncate(read);
    let mut at = usize::try_from(offset - from).unwrap_or(0).min(bytes.len());
    let begins = memrchr(b'\n', &bytes[..at]).map_or(0, |end| end + 1);
    let ends = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end);
    let bytes = &bytes[begins..ends];
    at -= begins;
    let wrong = match fault.kind {
        FaultKind::LoneSurrogate => Wrong::Text(at, fault.length as usize),
        FaultKind::TornTail => Wrong::End("end of file"),
        FaultKind::Garbage | FaultKind::Glued { .. } => Wrong::of_json(bytes),
        _ => Wrong::Bytes,
    };
    Ok(Excerpt { line, zeros: memchr_iter(0, bytes).count() as u64, pieces: shortened(pieces(bytes, wrong)) })
}

/// What is wrong with a line beside bytes that are no text.
#[derive(Clone, Copy)]
enum Wrong {
    Bytes,
    /// So many bytes at a place.
    Text(usize, usize),
    /// That it ends.
    End(&'static str),
}

impl Wrong {
    /// Finds where a line stops being one entry.
    fn of_json(line: &[u8]) -> Self {
        let mut values = serde_json::Deserializer::from_slice(line).into_iter::<IgnoredAny>();
        let at = match values.next() {
            Some(Err(error)) if error.is_eof() => return Self::End("end of line"),
            Some(Err(error)) => error.column().saturating_sub(1),
            Some(Ok(_)) if values.byte_offset() < line.len() => values.byte_offset(),
            _ => 0,
        };
        Self::Text(at, MARKED)
    }
}

/// Takes a line apart into what is text and what is not.
fn pieces(bytes: &[u8], wrong: Wrong) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let (mark, marked) = match wrong {
        Wrong::Text(at, length) => (at.min(bytes.len()), length),
        _ => (bytes.len(), 0),
    };
    let (before, rest) = bytes.split_at(mark);
    let (within, after) = rest.split_at(marked.min(rest.len()));
    for (part, is_wrong) in [(before, false), (within, true), (after, false)] {
        for chunk in part.utf8_chunks() {
            for run in chunk.valid().split_inclusive('\0') {
                let text = run.trim_end_matches('\0');
                if !text.is_empty() {
                    pieces.push(if is_wrong { Piece::bad(text) } else { Piece::good(text) });
                }
                if text.len() < run.len() {
                    add_code(&mut pieces, 0);
                }
            }
            for byte in chunk.invalid() {
                add_code(&mut pieces, *byte);
            }
        }
    }
    if let Wrong::End(words) = wrong {
        pieces.push(Piece::bad(words));
    }
    counted(pieces)
}

/// A byte that is no text, as its code. They are told from text by a mark that no text has: U+0000.
fn add_code(pieces: &mut Vec<Piece>, byte: u8) {
    let code = format!("\0{byte:02x}");
    match pieces.last_mut() {
        Some(last) if last.damaged && last.text.starts_with('\0') => last.text += &code,
        _ => pieces.push(Piece::bad(code)),
    }
}

/// Writes codes as people read them: `00 × 412`, or `ff fe 80`.
fn counted(mut pieces: Vec<Piece>) -> Vec<Piece> {
    for piece in &mut pieces {
        let Some(codes) = piece.text.strip_prefix('\0') else { continue };
        let codes: Vec<&str> = codes.split('\0').collect();
        let same = codes.iter().all(|code| code == &codes[0]);
        piece.text = match codes.len() {
            length if length > 3 && same => format!("{} × {length}", codes[0]),
            length if length > 32 => format!("{} … {} in all", codes[..32].join(" "), length),
            _ => codes.join(" "),
        };
    }
    pieces
}

/// Leaves out what is far from anything damaged.
fn shortened(mut pieces: Vec<Piece>) -> Vec<Piece> {
    let bad: Vec<usize> = (0..pieces.len()).filter(|at| pieces[*at].damaged).collect();
    // One line may have thousands of bad bytes between good ones.
    if let Some(last) = bad.get(7) {
        pieces.truncate(last + 1);
        pieces.push(Piece::good("…"));
    }
    let length = pieces.len();
    for (at, piece) in pieces.iter_mut().enumerate() {
        let characters = piece.text.chars().count();
        let (head, tail) = match (piece.damaged, at, at + 1 == length) {
            (true, ..) => (2 * SIDE, 0),
            // What an entry begins with says what it was.
            (false, _, true) => (SIDE, 0),
            (false, ..) => (SIDE / 2, SIDE),
        };
        if characters > head + tail + 1 {
            let first: String = piece.text.chars().take(head).collect();
            let last: String = piece.text.chars().skip(characters - tail).collect();
            piece.text = format!("{first} … {last}").trim_end().to_owned();
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &[u8], wrong: Wrong) -> Vec<(String, bool)> {
        shortened(pieces(line, wrong)).into_iter().map(|it| (it.text, it.damaged)).collect()
    }

    fn good(text: &str) -> (String, bool) {
        (text.to_owned(), false)
    }

    fn bad(text: &str) -> (String, bool) {
        (text.to_owned(), true)
    }

    #[test]
    fn bytes_that_are_no_text_are_codes_and_runs_are_counted() {
        let line = [b"{\"a\":\"b".as_slice(), &[0; 412], b"c\xff\xfed\0\0e"].concat();
        let expected = [
            good("{\"a\":\"b"),
            bad("00 × 412"),
            good("c"),
            bad("ff fe"),
            good("d"),
            bad("00 00"),
            good("e"),
        ];
        assert_eq!(shown(&line, Wrong::Bytes), expected);
    }

    #[test]
    fn a_line_that_is_cut_says_where_it_ends_and_one_that_goes_on_where_that_begins() {
        let cut = br#"{"type":"user","text":"sh"#;
        let marked = |line: &[u8]| shown(line, Wrong::of_json(line));
        assert_eq!(marked(cut), [good(r#"{"type":"user","text":"sh"#), bad("end of line")]);
        assert_eq!(marked(br#"{"a":1}{"b":2}"#), [good(r#"{"a":1}"#), bad(r#"{"b":2}"#)]);
        assert_eq!(marked(b"nonsense"), [good("n"), bad("onsense")]);
    }

    #[test]
    fn only_what_is_near_the_damage_is_shown() {
        let line = [&[b'x'; 1000], [0; 4].as_slice(), &[b'y'; 1000]].concat();
        let shown = shown(&line, Wrong::Bytes);
        assert_eq!(shown[0].0, format!("{} … {}", "x".repeat(90), "x".repeat(180)));
        assert_eq!(shown[1], bad("00 × 4"));
        assert_eq!(shown[2].0, format!("{} …", "y".repeat(180)));
    }

    #[test]
    fn lines_are_numbered_from_one_and_a_last_one_without_an_end_counts() {
        let mut file = tempfile::tempfile().unwrap();
        io::Write::write_all(&mut file, b"one\ntwo\n\nfour").unwrap();
        assert_eq!(line_numbers(&file, 13, &[0, 5, 9]).unwrap(), (4, vec![1, 2, 4]));
        assert_eq!(line_numbers(&file, 8, &[3]).unwrap(), (2, vec![1]));
    }
}
