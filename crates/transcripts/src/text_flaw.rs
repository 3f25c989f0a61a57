//! Text that some programs refuse: half a surrogate pair, and bytes that are no UTF-8.

use std::fs::File;
use std::io;

use memchr::memmem;

use crate::fault::{Fault, FaultKind};
use crate::lines::each_line;

/// Looks through a file for such text. One word for each line and kind is enough.
pub(crate) fn text_flaws(file: &File, length: u64) -> io::Result<Vec<Fault>> {
    let mut flaws = Vec::new();
    each_line(file, 0, length, |offset, line, _| {
        let mut found = |place: usize, length: usize, kind| {
            flaws.push(Fault { offset: offset + place as u64, length: length as u64, kind });
        };
        if simdutf8::basic::from_utf8(line).is_err()
            && let Err(error) = std::str::from_utf8(line)
        {
            found(error.valid_up_to(), error.error_len().unwrap_or(1), FaultKind::NotUtf8);
        }
        if let Some(place) = lone_surrogates(line).next() {
            found(place, ESCAPE, FaultKind::LoneSurrogate);
        }
    })?;
    Ok(flaws)
}

/// Returns a line of JSON in which each half of a surrogate pair is the character that stands for what is unknown.
pub(crate) fn without_lone_surrogates(line: &[u8]) -> Vec<u8> {
    let mut mended = line.to_vec();
    for place in lone_surrogates(line) {
        mended[place..place + ESCAPE].copy_from_slice(b"\\ufffd");
    }
    mended
}

/// How long an escape is: `\ud83d`.
const ESCAPE: usize = 6;

/// Returns the places of escapes that are half a surrogate pair.
fn lone_surrogates(line: &[u8]) -> impl Iterator<Item = usize> {
    let mut paired = usize::MAX;
    memmem::find_iter(line, b"\\u").filter(move |&place| {
        if place == paired || !begins_escape(line, place) {
            return false;
        }
        match unit(line, place) {
            Some(0xD800..0xDC00) => match unit(line, place + ESCAPE) {
                Some(0xDC00..0xE000) => {
                    paired = place + ESCAPE;
                    false
                }
                _ => true,
            },
            Some(0xDC00..0xE000) => true,
            _ => false,
        }
    })
}

/// A backslash that is itself escaped begins nothing.
fn begins_escape(line: &[u8], place: usize) -> bool {
    line[..place].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 0
}

fn unit(line: &[u8], place: usize) -> Option<u16> {
    let digits = line.get(place..place + ESCAPE)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_pairs_are_found_and_pairs_are_not() {
        for (text, expected) in [
            (r#""\ud83e\udd80 \u00e9 \uFFFD""#, vec![]),
            (r#""\ud83e x""#, vec![1]),
            (r#""\udd80\ud83e""#, vec![1, 7]),
            (r#""\ud83e\ud83e\udd80""#, vec![1]),
            (r#""\uD83E\uDD80 \uD83E""#, vec![14]),
            (r#""\\ud83e is text""#, vec![]),
            (r#""\\\ud83e is not""#, vec![3]),
            (r#""\ud8""#, vec![]),
        ] {
            assert_eq!(lone_surrogates(text.as_bytes()).collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_mended_is_text_for_everybody() {
        let mended = without_lone_surrogates(br#"{"a":"\ud83e\udd80 \ud83e"}"#);
        let value: serde_json::Value = serde_json::from_slice(&mended).unwrap();
        assert_eq!(value["a"], "\u{1F980} \u{FFFD}");
    }
}
