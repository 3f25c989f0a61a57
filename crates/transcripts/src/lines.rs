//! Every entry of a transcript, of every kind, as it stands.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use memchr::memchr_iter;

use crate::envelope::Envelope;
use crate::node::Span;
use crate::recover::remains;

const CHUNK: usize = 1 << 20;

/// Hands out the entries up to a place in a file, in order, those that had to be recovered too.
pub(crate) fn each_entry(file: &File, length: u64, mut take: impl FnMut(Span, &[u8])) -> io::Result<()> {
    each_line(file, 0, length, |offset, line, is_ended| {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut give = |offset: u64, raw: &[u8]| {
            if let Ok(length) = u32::try_from(raw.len()) {
                take(Span { offset, length }, raw);
            }
        };
        if Envelope::of(line).is_some() {
            return give(offset, line);
        }
        for range in remains(line, !is_ended).into_iter().flat_map(|remains| remains.entries) {
            give(offset + range.start as u64, &line[range]);
        }
    })
}

/// Hands out the lines between two places, without their newlines, and whether each has one. The first must begin there.
pub(crate) fn each_line(
    file: &File,
    from: u64,
    to: u64,
    mut take: impl FnMut(u64, &[u8], bool),
) -> io::Result<()> {
    let mut buffer = vec![0; CHUNK.min(to.saturating_sub(from) as usize).max(1)];
    // What the buffer holds begins here, and this much of it is filled.
    let (mut begins, mut filled) = (from, 0);
    loop {
        let wanted = (to - begins - filled as u64).min((buffer.len() - filled) as u64) as usize;
        let read = file.read_at(&mut buffer[filled..filled + wanted], begins + filled as u64)?;
        filled += read;
        let mut line = 0;
        for newline in memchr_iter(b'\n', &buffer[..filled]) {
            take(begins + line as u64, &buffer[line..newline], true);
            line = newline + 1;
        }
        if read == 0 || begins + filled as u64 >= to {
            if line < filled {
                take(begins + line as u64, &buffer[line..filled], false);
            }
            return Ok(());
        }
        buffer.copy_within(line..filled, 0);
        (begins, filled) = (begins + line as u64, filled - line);
        if filled == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
    }
}
