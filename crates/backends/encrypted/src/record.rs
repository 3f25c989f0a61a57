//! A record, sealed: what stands in a line in the place of the caller's object.
//!
//! `{"sealed":"` and a quote stand around a nonce, the ciphertext and its tag, as bytes and not as text: in base 64 they
//! would be a third larger, and take half again as long to load. Two bytes may not be among them: a newline ends a line,
//! and NULs are what a power cut leaves. Each of those is replaced, and a list behind them says where they were.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use rethread_store::{Entry, Line, Note, Result, Unseal, Unsealed};

use crate::seal::{OVERHEAD, Secret};

const OPENING: &[u8] = b"{\"sealed\":\"";
const CLOSING: &[u8] = b"\"}";
/// Stands where a byte was that may not be there.
const INSTEAD: u8 = b'.';
/// How long the number is that says how many were replaced.
const COUNT: usize = 4;
/// How long a place in the list is: how far it is from the one before, and whether a newline was there.
const PLACE: usize = 2;
/// As far as a place can be from the one before. There, nothing was replaced.
const FAR: usize = (1 << 13) - 1;

/// How large a record may be, if sealed it may be this large.
pub(crate) fn room_within(size: usize) -> usize {
    // One in 128 is replaced; one in 32 never is, in anything of that size.
    (size - OPENING.len() - CLOSING.len() - COUNT) / 17 * 16 - OVERHEAD
}

/// Seals a record for its place.
pub(crate) fn seal(key: &Secret, line: &Line) -> Result<Line> {
    let body = line.body();
    let mut sealed = Vec::with_capacity(OPENING.len() + OVERHEAD + body.len() + body.len() / 32 + 64);
    sealed.extend_from_slice(OPENING);
    key.seal_onto(&mut sealed, &body, line.stamp_text())?;
    replace(&mut sealed, OPENING.len());
    sealed.extend_from_slice(CLOSING);
    Ok(Line::restored(sealed.into(), line.stamp().clone()))
}

/// Opens records. Returns the position of one that cannot be opened.
pub(crate) fn open(key: &Secret, lines: &[Line]) -> std::result::Result<Vec<Line>, u64> {
    let bodies: Vec<Bytes> = lines.iter().map(Line::body).collect();
    // In one piece of memory: to get one for each would take longer than to open them.
    let mut room: Vec<u8> = Vec::with_capacity(bodies.iter().map(Bytes::len).sum());
    let mut places = Vec::with_capacity(lines.len());
    for (line, body) in lines.iter().zip(&bodies) {
        let begin = room.len();
        room.extend_from_slice(&body[..body.len() - 1]);
        places.push(match unseal(key, &mut room[begin..], line.stamp_text()) {
            Unsealed::Opened(part) => Some(begin + part.start..begin + part.end),
            Unsealed::AsItWas => None,
            Unsealed::Not => return Err(line.stamp().position),
        });
    }
    let room = Bytes::from(room);
    let opened = |(line, place): (&Line, Option<Range<usize>>)| match place {
        Some(place) => Line::restored(room.slice(place), line.stamp().clone()),
        None => line.clone(),
    };
    Ok(lines.iter().zip(places).map(opened).collect())
}

/// Opens the records of a log where they lie.
pub(crate) struct Opener<'a> {
    key: &'a Secret,
    is_proof: bool,
    failed: AtomicBool,
}

impl<'a> Opener<'a> {
    pub(crate) fn new(key: &'a Secret, is_proof: bool) -> Self {
        Self { key, is_proof, failed: AtomicBool::new(false) }
    }

    /// Returns whether it could not open one of them.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }
}

impl Unseal for Opener<'_> {
    fn unseal(&self, body: &mut [u8], stamp: &[u8]) -> Unsealed {
        let unsealed = unseal(self.key, body, stamp);
        if unsealed == Unsealed::Not {
            self.failed.store(true, Ordering::Relaxed);
        }
        unsealed
    }

    fn is_proof(&self) -> bool {
        self.is_proof
    }
}

fn unseal(key: &Secret, body: &mut [u8], stamp: &[u8]) -> Unsealed {
    if !body.starts_with(OPENING) {
        return if is_lost(body, stamp) { Unsealed::AsItWas } else { Unsealed::Not };
    }
    let opened = restore(&mut body[OPENING.len()..]).and_then(|sealed| {
        let opened = key.open_in_place(sealed, stamp)?;
        Some(OPENING.len() + opened.start..OPENING.len() + opened.end)
    });
    opened.map_or(Unsealed::Not, Unsealed::Opened)
}

/// Returns whether this is a note that a repair left: whoever repairs a log does so without its key.
fn is_lost(body: &[u8], stamp: &[u8]) -> bool {
    let is_note = stamp.split(|byte| *byte == b' ').nth(4) == Some(b"n");
    let note = || Entry::parse([body, b"}"].concat()).ok()?.read().ok();
    is_note && matches!(note(), Some(Note::Lost { .. }))
}

/// Replaces what may not be there, from a place on, and adds the list of what was.
fn replace(sealed: &mut Vec<u8>, mut from: usize) {
    let mut list = Vec::with_capacity(sealed.len() / 32 + COUNT);
    while let Some(mut far) = memchr::memchr2(0, b'\n', &sealed[from..]) {
        from += far + 1;
        while far >= FAR {
            list.extend(seven_bits::<PLACE>(FAR << 1));
            far -= FAR;
        }
        let was = std::mem::replace(&mut sealed[from - 1], INSTEAD);
        list.extend(seven_bits::<PLACE>(far << 1 | usize::from(was == b'\n')));
    }
    list.extend(seven_bits::<COUNT>(list.len() / PLACE));
    sealed.extend_from_slice(&list);
}

/// Puts back what was replaced, and returns what was sealed; `None` if the list is none.
fn restore(replaced: &mut [u8]) -> Option<&mut [u8]> {
    let end = replaced.len().checked_sub(CLOSING.len() - 1)?;
    let list_end = end.checked_sub(COUNT)?;
    let size = number(&replaced[list_end..end]) * PLACE;
    let (sealed, list) = replaced[..list_end].split_at_mut(list_end.checked_sub(size)?);
    let mut at = 0;
    for place in list.chunks_exact(PLACE).map(number) {
        let far = place >> 1;
        at += far;
        if far < FAR {
            *sealed.get_mut(at)? = if place & 1 == 1 { b'\n' } else { 0 };
            at += 1;
        }
    }
    Some(sealed)
}

/// Writes a number with seven bits in each byte, so that none of them is one that may not be there.
fn seven_bits<const LENGTH: usize>(number: usize) -> [u8; LENGTH] {
    std::array::from_fn(|at| 0x80 | (number >> (7 * (LENGTH - 1 - at))) as u8)
}

fn number(bytes: &[u8]) -> usize {
    bytes.iter().fold(0, |number, byte| number << 7 | usize::from(byte & 0x7f))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(bytes: &[u8]) -> Vec<u8> {
        let mut replaced = bytes.to_vec();
        replace(&mut replaced, 0);
        assert_eq!(memchr::memchr2(0, b'\n', &replaced), None);
        replaced.extend_from_slice(&CLOSING[..1]);
        restore(&mut replaced).unwrap().to_vec()
    }

    #[test]
    fn every_byte_comes_back_wherever_it_stands() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&[][..], b"\n", b"\0", b"\n\0\n", b"nothing", &all, &all.repeat(300)] {
            assert_eq!(round(bytes), bytes);
        }
        for far in [FAR - 2, FAR - 1, FAR, FAR + 1, 2 * FAR - 1, 2 * FAR, 5 * FAR + 3] {
            let bytes = [&vec![b'x'; far][..], b"\n", &vec![b'x'; far], b"\0"].concat();
            assert_eq!(round(&bytes), bytes, "{far}");
        }
    }

    #[test]
    fn a_list_that_makes_no_sense_is_refused() {
        for list in [&b""[..], b"\"", b"abc\"", b"\xff\xff\xff\xff\"", b"ab\x81\x80\x80\x80\x80\x81\""] {
            assert_eq!(restore(&mut list.to_vec()), None, "{list:?}");
        }
    }
}
