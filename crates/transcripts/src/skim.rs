//! What the beginning and the end of a transcript say about the session.
//!
//! Claude Code writes a session's name, tag and last prompt again whenever 64 KiB were added, so that they always are
//! within the last 64 KiB; where it worked and what it was asked first stand at the beginning. Mostly the last prompt was
//! written again but a moment ago, when the session was left: then a shorter look at the end finds the same.

use std::fs::File;
use std::io;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt as _;

use memchr::memrchr;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use crate::ending::Ending;
use crate::opening::{Opening, OpeningReader};
use crate::scan::BYTE_ORDER_MARK;

/// How much of the end is read: what the official SDKs read too.
const TAIL: u64 = 64 << 10;
/// Within how many bytes of the end the last prompt must have been written again for a shorter look.
const LAST: u64 = 2 << 10;
/// How much of the end is read if it was. Whatever Claude Code does not find in the 32 KiB before the last prompt it writes
/// again with that; the line that they begin in is not looked at.
const SHORT_TAIL: u64 = LAST + (32 << 10) + (1 << 10);
/// How much of the beginning is read with that.
const SHORT_HEAD: u64 = 8 << 10;
/// How much of the beginning is read first, if that was not enough.
const HEAD: u64 = 16 << 10;
/// How much of the beginning is read at most: what the official SDKs read.
const LONG_HEAD: u64 = 64 << 10;

/// How much is read if a prompt is longer than that: where it was asked stands behind it.
const LONGEST_LINE: u64 = 16 << 20;

/// Up to which size all of a file is read.
pub(crate) const SHORT: u64 = LONG_HEAD + TAIL;

/// What is known of a session without reading all of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Skim<T = String> {
    pub(crate) opening: Opening<T>,
    pub(crate) ending: Ending<T>,
}

/// Room for what is read, used again for the next file.
#[derive(Debug)]
pub(crate) struct Buffer(Vec<u8>);

impl Default for Buffer {
    fn default() -> Self {
        // Enough for nearly all files.
        Self(vec![0; SHORT as usize])
    }
}

/// What to do about parts of a file that are not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Missing {
    /// Wait until the disk has brought them.
    Await,
    /// Read nothing: the error is one of [`is_missing`].
    Leave,
}

/// Returns whether a file was not read for not being in memory, or because nobody can tell.
pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Unsupported)
}

impl Buffer {
    /// Reads a part of a file, of which the first `known` bytes are here already.
    fn read(
        &mut self,
        file: &File,
        offset: u64,
        known: usize,
        length: u64,
        missing: Missing,
    ) -> io::Result<&[u8]> {
        self.0.resize(self.0.len().max(length as usize), 0);
        let mut filled = known;
        while filled < length as usize {
            let (room, offset) = (&mut self.0[filled..length as usize], offset + filled as u64);
            let read = match missing {
                Missing::Await => file.read_at(room, offset),
                Missing::Leave => read_in_memory(file, room, offset),
            };
            match read {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(&self.0[..filled])
    }
}

#[cfg(target_os = "linux")]
fn read_in_memory(file: &File, room: &mut [u8], offset: u64) -> io::Result<usize> {
    let room = &mut [io::IoSliceMut::new(room)];
    Ok(rustix::io::preadv2(file, room, offset, rustix::io::ReadWriteFlags::NOWAIT)?)
}

#[cfg(not(target_os = "linux"))]
fn read_in_memory(_: &File, _: &mut [u8], _: u64) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

impl Skim {
    /// Returns the same, with texts that are only lent.
    pub(crate) fn lent(&self) -> Skim<&str> {
        Skim { opening: self.opening.with(String::as_str), ending: self.ending.with(String::as_str) }
    }

    /// Has the system fetch what a look at a file will read, and does not wait for it.
    pub(crate) fn announce(file: &File, size: u64, known: Option<&Opening>) {
        // If it does not, that only costs time.
        let fetch = |offset: u64, length: u64| {
            let _ = fadvise(file, offset, NonZeroU64::new(length), Advice::WillNeed);
        };
        if size <= SHORT_HEAD + SHORT_TAIL {
            return fetch(0, size);
        }
        // The system would guess that what follows is wanted too, and fetch twice as much.
        let _ = fadvise(file, 0, None, Advice::Random);
        fetch(size - SHORT_TAIL - 1, SHORT_TAIL + 1);
        if known.is_none() {
            fetch(0, SHORT_HEAD);
        }
    }

    /// Looks at both ends of a file. What is known of its beginning from an earlier time still holds.
    pub(crate) fn of(
        file: &File,
        size: u64,
        known: Option<&Opening>,
        buffer: &mut Buffer,
        missing: Missing,
    ) -> io::Result<Self> {
        if size > SHORT_HEAD + SHORT_TAIL
            && let Some(skim) = Self::of_what_was_written_again(file, size, known, buffer, missing)?
        {
            return Ok(skim);
        }
        if size <= SHORT {
            let bytes = buffer.read(file, 0, 0, size, missing)?;
            let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
            let (older, tail) = bytes.split_at(last_lines(bytes, TAIL));
            let (mut ending, mut opening) = (Ending::of(tail), opening_of(bytes));
            if !older.is_empty() {
                // Too short for everything to have been written again.
                let older = Ending::of(older);
                opening = opening.named_in(&older);
                ending.add_older(older);
            }
            return Ok(Self { opening, ending });
        }
        let end = buffer.read(file, size - TAIL - 1, 0, TAIL + 1, missing)?;
        let ending = Ending::of(&end[last_lines(end, TAIL)..]);
        // Whoever writes the last prompt again writes names again. Where nobody does they stand where they were given.
        let is_written_again = ending.custom_title.is_some() || ending.last_prompt.is_some();
        // What is known may be known from a shorter look, which suffices only if names do not count.
        if let Some(opening) = known.filter(|_| is_written_again) {
            return Ok(Self { opening: opening.clone(), ending });
        }
        let least = if is_written_again { HEAD } else { LONG_HEAD };
        let opening = opening_at(file, size, HEAD, least, buffer, missing)?;
        Ok(Self { opening, ending })
    }
}

impl Skim {
    /// The same from less of the file, where more would tell nothing else.
    fn of_what_was_written_again(
        file: &File,
        size: u64,
        known: Option<&Opening>,
        buffer: &mut Buffer,
        missing: Missing,
    ) -> io::Result<Option<Self>> {
        let end = buffer.read(file, size - SHORT_TAIL - 1, 0, SHORT_TAIL + 1, missing)?;
        let Some(ending) = Ending::of_left(&end[last_lines(end, SHORT_TAIL)..], LAST) else {
            return Ok(None);
        };
        let opening = match known {
            Some(opening) => opening.clone(),
            None => opening_at(file, size, SHORT_HEAD, SHORT_HEAD, buffer, missing)?,
        };
        // A name that was taken away is not written again, and must not come back from the beginning.
        let is_gone = |began: &Option<String>, ends: &Option<String>| began.is_some() && ends.is_none();
        let may_be_nameless = is_gone(&opening.custom_title, &ending.custom_title)
            || is_gone(&opening.ai_title, &ending.ai_title);
        Ok((!may_be_nameless).then_some(Self { opening, ending }))
    }
}

/// Reads the beginning of a file: some bytes first, and more while they do not tell enough.
fn opening_at(
    file: &File,
    size: u64,
    first: u64,
    least: u64,
    buffer: &mut Buffer,
    missing: Missing,
) -> io::Result<Opening> {
    let mut opening = OpeningReader::default();
    let (mut length, mut read) = (first, 0);
    loop {
        let bytes = buffer.read(file, 0, read, length.min(size), missing)?;
        read = bytes.len();
        let head = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let is_enough = (opening.read(head) && length >= least) || length >= size.min(LONGEST_LINE);
        if is_enough || (length >= LONG_HEAD && !opening.is_within_a_prompt(head)) {
            let named = Ending::of(&head[..head.len().min(LONG_HEAD as usize)]);
            return Ok(opening.end(head).named_in(&named));
        }
        length *= if length < LONG_HEAD { 2 } else { 4 };
    }
}

/// The same for all the bytes of a file.
fn opening_of(bytes: &[u8]) -> Opening {
    let mut opening = OpeningReader::default();
    let head = &bytes[..bytes.len().min(LONG_HEAD as usize)];
    let is_enough = opening.read(head) || !opening.is_within_a_prompt(head);
    opening.end(if is_enough { head } else { bytes })
}

/// Returns where the first line begins that is as a whole within the last bytes, of some number.
fn last_lines(bytes: &[u8], last: u64) -> usize {
    let Some(from) = bytes.len().checked_sub(last as usize + 1) else { return 0 };
    memchr::memchr(b'\n', &bytes[from..]).map_or(bytes.len(), |newline| from + newline + 1)
}

/// Returns lines from the last to the first, and whether each has its newline.
pub(crate) fn lines_from_the_end(bytes: &[u8]) -> impl Iterator<Item = (&[u8], bool)> {
    let mut rest = Some(bytes);
    let mut is_ended = false;
    std::iter::from_fn(move || {
        let bytes = rest?;
        let (line, ended) = match memrchr(b'\n', bytes) {
            Some(newline) => {
                rest = Some(&bytes[..newline]);
                (&bytes[newline + 1..], is_ended)
            }
            None => {
                rest = None;
                (bytes, is_ended)
            }
        };
        is_ended = true;
        Some((line, ended))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a file system cannot tell what is in memory, nothing is.
    #[test]
    fn a_file_that_is_in_memory_is_read_the_same_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let line = |number: usize| {
            let filler = "x".repeat(number % 7 * 900);
            format!(
                "{{\"type\":\"user\",\"uuid\":\"{number}\",\"cwd\":\"/a\",\"message\":{{\"content\":\"hi {filler}\"}}}}\n"
            )
        };
        for lines in [0, 3, 30, 300] {
            std::fs::write(&path, (0..lines).map(line).collect::<String>()).unwrap();
            let (file, mut buffer) = (File::open(&path).unwrap(), Buffer::default());
            let size = file.metadata().unwrap().len();
            file.sync_all().unwrap();
            let mut look = |missing| Skim::of(&file, size, None, &mut buffer, missing);
            let awaited = look(Missing::Await).unwrap();
            assert!(look(Missing::Leave).map_or_else(|error| is_missing(&error), |left| left == awaited));
            let _ = fadvise(&file, 0, None, Advice::DontNeed);
            let left = look(Missing::Leave);
            assert!(left.map_or_else(|error| is_missing(&error), |left| left == awaited));
            Skim::announce(&file, size, None);
            assert_eq!(look(Missing::Await).unwrap(), awaited);
        }
    }

    /// What stands further back is found exactly where it may count.
    #[test]
    fn a_short_look_is_enough_only_where_everything_was_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let said = |version: &str, model: &str| {
            let filler = "x".repeat(2000);
            format!(
                "{{\"parentUuid\":\"a\",\"message\":{{\"model\":\"{model}\",\"content\":\"{filler}\"}},\"type\":\"assistant\",\"version\":\"{version}\",\"gitBranch\":\"main\"}}\n"
            )
        };
        let asked = "{\"type\":\"user\",\"uuid\":\"a\",\"cwd\":\"/a\",\"message\":{\"content\":\"hi\"}}\n";
        let named = "{\"type\":\"custom-title\",\"customTitle\":\"mine\"}\n";
        let again = "{\"type\":\"last-prompt\",\"lastPrompt\":\"hi\"}\n";
        let explicit = "{\"type\":\"last-prompt\",\"lastPrompt\":\"hi\",\"explicit\":true}\n";
        let nothing = "{\"type\":\"last-prompt\",\"leafUuid\":\"a\"}\n";
        let torn = [again, "{\"type\":\"custom-ti"].concat();
        let write_and_look = |parts: &[&str]| {
            std::fs::write(&path, parts.concat()).unwrap();
            let (file, mut buffer) = (File::open(&path).unwrap(), Buffer::default());
            let size = file.metadata().unwrap().len();
            Skim::of(&file, size, None, &mut buffer, Missing::Await).unwrap().ending
        };
        let look = |head: &str, version: &str, model: &str, lines: usize, last: &str| {
            let (filler, tail) = (said(version, model).repeat(lines), said(version, model).repeat(20));
            write_and_look(&[head, &filler, named, &tail, last])
        };
        for lines in [10, 100] {
            let short = look(asked, "2.1.325", "claude", lines, again);
            assert_eq!((short.custom_title, short.model.as_deref()), (None, Some("claude")), "{lines} lines");
            let (new, old) = (said("2.1.325", "claude"), said("2.1.120", "claude"));
            // Claude Code does not write it again with the last prompt if it stands so shortly before.
            for between in 0..=15 {
                let near = write_and_look(&[asked, &new.repeat(lines), named, &new.repeat(between), again]);
                assert_eq!(near.custom_title.as_deref(), Some("mine"), "{between} of {lines} lines");
            }
            // An older version wrote the last prompt, and a newer one began to go on.
            let gone_on = write_and_look(&[asked, &old.repeat(lines), named, &old.repeat(20), again, &new]);
            assert_eq!(gone_on.custom_title.as_deref(), Some("mine"), "{lines} lines");
            // A model stands further back than names can.
            let large = |model: &str| said("2.1.325", model).replace("xx", "xxxxxxx");
            let apart = [large("claude").repeat(lines), large("<synthetic>").repeat(6)];
            let answered = write_and_look(&[asked, &apart[0], &apart[1], again]);
            assert_eq!(answered.model.as_deref(), Some("claude"), "{lines} lines");
            let cases = [
                ("a version that writes less again", asked, "2.1.120", "claude", again),
                ("no version", asked, "", "claude", again),
                ("only a branch was chosen", asked, "2.1.325", "claude", explicit),
                ("no prompt", asked, "2.1.325", "claude", nothing),
                ("nothing at all", asked, "2.1.325", "claude", ""),
                ("the rest was torn off", asked, "2.1.325", "claude", &torn),
                ("another name at the beginning", &[asked, named].concat(), "2.1.325", "claude", again),
            ];
            for (why, head, version, model, last) in cases {
                let long = look(head, version, model, lines, last);
                assert_eq!(long.custom_title.as_deref(), Some("mine"), "{why}, {lines} lines");
            }
        }
    }

    #[test]
    fn the_model_is_found_behind_any_number_of_lines_about_something_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        let said = "{\"parentUuid\":\"a\",\"type\":\"assistant\",\"version\":2,\"gitBranch\":\"side\",\"message\":{\"model\":\"claude\"}}\n";
        for others in [0, 7, 8, 100] {
            let blobs = "{\"type\":\"api-request-blob\",\"hash\":\"x\"}\n".repeat(others);
            std::fs::write(&path, [said, &blobs].concat()).unwrap();
            let (file, mut buffer) = (File::open(&path).unwrap(), Buffer::default());
            let size = file.metadata().unwrap().len();
            let ending = Skim::of(&file, size, None, &mut buffer, Missing::Await).unwrap().ending;
            let found = (ending.model.as_deref(), ending.branch.as_deref(), ending.is_unreadable);
            assert_eq!(found, (Some("claude"), Some("side"), false), "{others} others");
        }
    }
}
