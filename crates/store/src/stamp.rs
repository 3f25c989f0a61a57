//! The stamp: one member at the end of each stored line that says where the line belongs and that it is whole.
//!
//! `{"text":"hi"}` is stored as `{"text":"hi","_rt":"1 4 3 2 e 0198… 0 0 1a2b3c4d"}`: version, position, parent,
//! depth, kind, id, records left in the group, unsettled records before it, and the CRC-32C of every byte before its
//! own eight digits.
//! It is recognised by its place, so a caller's own `_rt` does no harm.

use std::ops::Range;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use jiff::Timestamp;

use crate::backend::Position;
use crate::defect::Defect;
use crate::entry::{Entry, timestamp_of};
use crate::id::EntryId;

const OPENING: &[u8] = b"\"_rt\":\"";
const VERSION: &str = "1";
const FIELDS: usize = 9;
/// Eight hex digits, the closing quote and the closing brace.
const CHECKSUM_TAIL: usize = 10;
/// The longest stamp there can be: six numbers of 20 digits, an id of 256 and what stands between them.
const LONGEST: usize = 512;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The largest number in a stamp: what every JSON reader takes for exact.
const LARGEST: u64 = (1 << 53) - 1;

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Part of the conversation.
    Entry,
    /// About the session itself.
    Note,
    /// An inherited entry that was copied here, so that the session no longer needs its parent.
    Copy,
}

impl Kind {
    fn letter(self) -> char {
        match self {
            Kind::Entry => 'e',
            Kind::Note => 'n',
            Kind::Copy => 'c',
        }
    }

    fn of_letter(letter: &str) -> Option<Self> {
        match letter {
            "e" => Some(Kind::Entry),
            "n" => Some(Kind::Note),
            "c" => Some(Kind::Copy),
            _ => None,
        }
    }
}

/// Where a record belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// The record's number in its log.
    pub position: Position,
    /// The record it follows. For a note: the active leaf after it. `None`: nothing in this log.
    pub parent: Option<Position>,
    /// How many entries the chain to here has, inherited ones included. For a note: the active leaf's depth.
    ///
    /// An entry without a parent follows the inherited entry of depth `depth - 1`; a root has depth 1.
    pub depth: u64,
    /// What the record is.
    pub kind: Kind,
    /// The entry's id, or the note's own.
    pub id: EntryId,
    /// How many records of the same atomic group come after this one.
    pub left: u64,
    /// How many records right before this one were not known to be durable when it was written.
    ///
    /// If a crash of the machine takes one of those, this one counts for nothing either: it would be the second half
    /// of a write that nobody was told of.
    pub unsettled: u64,
}

impl Stamp {
    /// Returns the position up to which the log was durable when this record was written.
    pub fn settled(&self) -> Position {
        self.position.saturating_sub(self.unsettled)
    }

    /// Returns how many bytes it adds to a body, but for a comma.
    fn size(&self) -> usize {
        let digits = |number: u64| number.checked_ilog10().unwrap_or(0) as usize + 1;
        let numbers = [self.position, self.parent.unwrap_or(0), self.depth, self.left, self.unsettled];
        let spaces = FIELDS - 1;
        let fields = numbers.map(digits).iter().sum::<usize>() + self.id.as_str().len() + 1;
        OPENING.len() + VERSION.len() + fields + spaces + CHECKSUM_TAIL - 1
    }
}

/// One record as it is stored: a JSON object on one line, stamped, without its newline.
#[derive(Clone, Debug)]
pub struct Line {
    form: Form,
    /// The line in one piece, once somebody asked for it that way.
    stored: OnceLock<Bytes>,
    stamp: Stamp,
    /// Where the stamp's member begins, comma included.
    body_end: usize,
    /// When the entry says it was made, if it was looked at before it was stamped.
    timestamp: Option<Option<Timestamp>>,
    /// That of its id, if it is known.
    short_hash: Option<[u8; 8]>,
}

/// How a line lies in memory. Records are large: each form saves a copy of them.
#[derive(Clone, Debug)]
enum Form {
    /// As it is stored.
    Whole(Bytes),
    /// As it is stored, but that the caller's object was [closed](Line::open) where it lay; and what stood there.
    Opened(Bytes, u8),
    /// The caller's own bytes, and what follows them up to the newline in place of their closing brace.
    Stamped(Bytes, Arc<[u8]>),
    /// The caller's own bytes; what would follow them is made once somebody asks for it.
    Bare(Bytes),
}

/// Opens records that were sealed before they were appended. For backends that wrap others.
pub trait Unseal: Sync {
    /// Opens a body where it lies. It lacks its closing brace; the stamp is as [`Line::stamp_text`] has it.
    fn unseal(&self, body: &mut [u8], stamp: &[u8]) -> Unsealed;

    /// Returns whether it is enough that a record could be opened to know that it is whole, and in its place. Then only
    /// those are summed up whose checksums decide where the log ends.
    fn is_proof(&self) -> bool;
}

/// What became of a body that was to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unsealed {
    /// This part of it is the caller's object now.
    Opened(Range<usize>),
    /// It was never sealed, and is as it was.
    AsItWas,
    /// It was not sealed for this stamp, or not like this, and may be anything by now.
    Not,
}

impl PartialEq for Line {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Line {}

impl Line {
    /// Stamps an entry.
    pub fn new(entry: &Entry, stamp: Stamp) -> Self {
        Prepared::of(entry).stamp(stamp)
    }

    /// Makes a record of a body that was taken out of one before, as it was. For backends that wrap others.
    pub fn restored(body: Bytes, stamp: Stamp) -> Self {
        let body_end = body.len().saturating_sub(1);
        Self::of(Form::Bare(body), stamp, body_end)
    }

    /// Makes it what is appended.
    fn stamped(body: &Bytes, stamp: &Stamp) -> Self {
        let prepared = Prepared { body: body.clone(), timestamp: None, sums: None };
        Self { timestamp: None, ..prepared.stamp(stamp.clone()) }
    }

    fn of(form: Form, stamp: Stamp, body_end: usize) -> Self {
        Self { form, stored: OnceLock::new(), stamp, body_end, timestamp: None, short_hash: None }
    }

    /// Reads a stored line back, or says what is wrong with it.
    pub fn parse(bytes: Bytes) -> Result<Self, Flaw> {
        let Found { stamp, body_end, .. } = parse_stamp(&bytes, Sum::Checked)?;
        Ok(Self::of(Form::Whole(bytes), stamp, body_end))
    }

    /// How much of a line's end holds all of its stamp.
    pub(crate) const STAMP: u64 = LONGEST as u64;

    /// Returns the position of a line of which perhaps only the end is here, so that its checksum says nothing.
    pub(crate) fn position_at_end(end: &[u8]) -> Option<Position> {
        parse_stamp(end, Sum::Passed).ok().map(|found| found.stamp.position)
    }

    /// Reads a stored line back where it lies, so that its body need not be copied later. For backends that own what
    /// they have read.
    pub fn take(mut bytes: BytesMut) -> Result<Self, Flaw> {
        let opened = Self::open(&mut bytes)?;
        Ok(Self::of_opened(bytes.freeze(), opened))
    }

    /// Reads a stored line where it lies and closes the caller's object there, so that its body need not be copied:
    /// the stamp's comma becomes the brace. [`of_opened`](Self::of_opened) makes a line of it.
    pub(crate) fn open(bytes: &mut [u8]) -> Result<Opened, Flaw> {
        let Found { stamp, body_end, .. } = parse_stamp(bytes, Sum::Checked)?;
        let was = std::mem::replace(&mut bytes[body_end], b'}');
        Ok(Opened { stamp, body_end, kept: Kept::Line { was } })
    }

    /// Does the same with a line whose body was sealed.
    pub(crate) fn open_sealed(bytes: &mut [u8], by: &dyn Unseal, sum: Sum) -> Result<Opened, Flaw> {
        let Found { stamp, body_end, text } = parse_stamp(bytes, sum)?;
        if stamp.left > 0 && sum == Sum::Passed {
            // Whether a group counts must be the same for everybody: if it does not, its positions are given out again.
            parse_stamp(bytes, Sum::Checked)?;
        }
        let (body, end) = bytes.split_at_mut(body_end);
        match by.unseal(body, &end[text.start - body_end..text.end - body_end]) {
            Unsealed::Opened(body) => Ok(Opened { stamp, body_end, kept: Kept::Body(body) }),
            Unsealed::AsItWas => Self::open(bytes),
            Unsealed::Not => Err(Flaw::Checksum),
        }
    }

    /// Makes a line of bytes that were [opened](Self::open).
    pub(crate) fn of_opened(bytes: Bytes, opened: Opened) -> Self {
        let Opened { stamp, body_end, kept } = opened;
        match kept {
            Kept::Line { was } => Self::of(Form::Opened(bytes, was), stamp, body_end),
            Kept::Body(body) => Self::restored(bytes.slice(body), stamp),
        }
    }

    /// Returns how many bytes the line takes where it is stored.
    pub(crate) fn size(&self) -> usize {
        match &self.form {
            Form::Whole(bytes) | Form::Opened(bytes, _) => bytes.len(),
            Form::Stamped(_, end) => self.body_end + end.len() - 1,
            Form::Bare(body) => body.len() + self.stamp.size() + usize::from(!is_empty_object(body)),
        }
    }

    /// Returns the line as it is stored, stamp included.
    pub fn as_bytes(&self) -> &[u8] {
        match &self.form {
            Form::Whole(bytes) => bytes,
            Form::Opened(bytes, was) => self.stored.get_or_init(|| {
                let mut bytes = bytes.to_vec();
                bytes[self.body_end] = *was;
                bytes.into()
            }),
            Form::Stamped(body, end) => {
                self.stored.get_or_init(|| [&body[..self.body_end], &end[..end.len() - 1]].concat().into())
            }
            Form::Bare(body) => self
                .stored
                .get_or_init(|| Bytes::copy_from_slice(Self::stamped(body, &self.stamp).as_bytes())),
        }
    }

    /// Returns what the line says of the record's place, as it is written: the stamp without its checksum.
    pub fn stamp_text(&self) -> &[u8] {
        let (line, skipped) = match &self.form {
            Form::Stamped(_, end) => (&end[..end.len() - 1], 0),
            _ => (self.as_bytes(), self.body_end),
        };
        let begin = skipped + usize::from(line[skipped] == b',') + OPENING.len();
        &line[begin..line.len() - CHECKSUM_TAIL]
    }

    /// Returns the line with its newline, in as many pieces as lie in memory.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let pieces: [&[u8]; 2] = match &self.form {
            Form::Stamped(body, end) => [&body[..self.body_end], end],
            _ => [self.as_bytes(), b"\n"],
        };
        pieces.into_iter()
    }

    /// Returns the same pieces, shared; without a second one a newline follows the first.
    pub(crate) fn shared_pieces(&self) -> (Bytes, Option<Arc<[u8]>>) {
        match &self.form {
            Form::Stamped(body, end) => (body.slice(..self.body_end), Some(end.clone())),
            Form::Whole(bytes) => (bytes.clone(), None),
            Form::Opened(..) | Form::Bare(_) => (Bytes::copy_from_slice(self.as_bytes()), None),
        }
    }

    /// Returns where the record belongs.
    pub fn stamp(&self) -> &Stamp {
        &self.stamp
    }

    /// Returns the caller's bytes, exactly.
    pub fn body(&self) -> Bytes {
        match &self.form {
            Form::Opened(bytes, _) => bytes.slice(..=self.body_end),
            Form::Stamped(body, _) | Form::Bare(body) => body.clone(),
            // All but the closing brace stands in one piece; a body is handed out whole, so it is put together again.
            Form::Whole(bytes) => [&bytes[..self.body_end], b"}"].concat().into(),
        }
    }

    /// Returns when the entry says it was made, if it says so.
    pub(crate) fn timestamp(&self) -> Option<Timestamp> {
        self.timestamp.unwrap_or_else(|| match &self.form {
            Form::Opened(bytes, _) | Form::Stamped(bytes, _) | Form::Bare(bytes) => {
                timestamp_of(&bytes[..=self.body_end])
            }
            // The stamp is one more member of the same object, so there is no need to take it off first.
            Form::Whole(bytes) => timestamp_of(bytes),
        })
    }

    /// Returns by what an index knows the record.
    pub(crate) fn short_hash(&self) -> [u8; 8] {
        self.short_hash.unwrap_or_else(|| self.stamp.id.short_hash())
    }

    /// Returns whether this is how a log begins, and another one than that which begins with some record.
    pub fn is_another_first(&self, first: &EntryId) -> bool {
        self.stamp.position == 0 && self.stamp.id != *first
    }

    /// Returns the record as an entry.
    pub fn entry(&self) -> Entry {
        Entry::trusted(self.body(), self.stamp.id.clone())
    }

    /// Makes an entry of the record, which keeps what the line had.
    pub(crate) fn into_entry(self) -> Entry {
        match self.form {
            Form::Opened(mut bytes, _) => {
                bytes.truncate(self.body_end + 1);
                Entry::trusted(bytes, self.stamp.id)
            }
            _ => self.entry(),
        }
    }
}

/// An entry that lacks nothing but its stamp.
#[derive(Debug)]
pub(crate) struct Prepared {
    body: Bytes,
    timestamp: Option<Timestamp>,
    /// What all its bytes, and those of its id, must be looked at for, if that was done already.
    sums: Option<Sums>,
}

#[derive(Clone, Copy, Debug)]
struct Sums {
    /// It has no member, so that no comma goes before the stamp.
    empty: bool,
    checksum: u32,
    short_hash: [u8; 8],
}

impl Sums {
    fn of(body: &[u8], id: &EntryId) -> Self {
        let checksum = crc32c::crc32c(&body[..body.len().saturating_sub(1)]);
        Self { empty: is_empty_object(body), checksum, short_hash: id.short_hash() }
    }
}

impl Prepared {
    /// Prepares an entry.
    pub(crate) fn of(entry: &Entry) -> Self {
        Self { body: entry.bytes().clone(), timestamp: entry.timestamp(), sums: None }
    }

    /// Looks at its bytes now, on its caller's thread: for the writer's they lie in another core's cache, or in none any
    /// more. Where the writer waits for its callers anyway it does that meanwhile.
    pub(crate) fn sum_up(&mut self, id: &EntryId) {
        self.sums = Some(Sums::of(&self.body, id));
    }

    /// Returns how many bytes the caller gave.
    pub(crate) fn size(&self) -> usize {
        self.body.len()
    }

    /// Stamps it.
    pub(crate) fn stamp(&self, stamp: Stamp) -> Line {
        let Stamp { position, parent, depth, kind, id, left, unsettled } = &stamp;
        let Sums { empty, checksum, short_hash } = self.sums.unwrap_or_else(|| Sums::of(&self.body, id));
        let mut end = Ending::default();
        if !empty {
            end.push(b",");
        }
        end.push(OPENING);
        end.push(VERSION.as_bytes());
        end.push(b" ");
        end.push_number(*position);
        match parent {
            Some(parent) => end.push_number(*parent),
            None => end.push(b"- "),
        }
        end.push_number(*depth);
        end.push(&[kind.letter() as u8, b' ']);
        end.push(id.as_str().as_bytes());
        end.push(b" ");
        end.push_number(*left);
        end.push_number(*unsettled);
        let checksum = crc32c::crc32c_append(checksum, end.as_bytes());
        end.push(&[28, 24, 20, 16, 12, 8, 4, 0].map(|shift| HEX[(checksum >> shift & 15) as usize]));
        end.push(b"\"}\n");
        let form = Form::Stamped(self.body.clone(), end.as_bytes().into());
        let (timestamp, short_hash) = (Some(self.timestamp), Some(short_hash));
        Line { timestamp, short_hash, ..Line::of(form, stamp, self.body.len() - 1) }
    }
}

/// The end of a line while it is put together, without a formatter: that would take longer than all else that is done
/// for a record.
struct Ending {
    bytes: [u8; LONGEST],
    length: usize,
}

impl Default for Ending {
    fn default() -> Self {
        Self { bytes: [0; LONGEST], length: 0 }
    }
}

impl Ending {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.length..self.length + bytes.len()].copy_from_slice(bytes);
        self.length += bytes.len();
    }

    fn push_number(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
        self.push(b" ");
    }

    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What was found in a line that was [opened](Line::open).
#[derive(Debug)]
pub(crate) struct Opened {
    stamp: Stamp,
    body_end: usize,
    kept: Kept,
}

/// What is left of a line that was opened.
#[derive(Debug)]
enum Kept {
    /// All of it, but that the caller's object was closed; and what stood there.
    Line { was: u8 },
    /// The caller's object, here.
    Body(Range<usize>),
}

impl Opened {
    /// Returns whether the record has company in its group.
    pub(crate) fn is_followed(&self) -> bool {
        self.stamp.left > 0
    }

    /// Makes the line as it is stored again, where it lies.
    pub(crate) fn close(&self, bytes: &mut [u8]) {
        if let (Kept::Line { was }, Some(byte)) = (&self.kept, bytes.get_mut(self.body_end)) {
            *byte = *was;
        }
    }
}

/// Why a line is not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// NUL bytes, as a power cut leaves them.
    #[error("NUL bytes")]
    Nul,
    /// The line has no stamp: it was cut, or another program wrote it.
    #[error("no stamp")]
    Unstamped,
    /// The stamp is of a version this program does not know.
    #[error("a stamp of a newer version")]
    Newer,
    /// The bytes are not those that were stamped.
    #[error("checksum mismatch")]
    Checksum,
    /// The record is whole and belongs elsewhere: doubled, moved, or from another log.
    #[error("out of place")]
    Misplaced,
    /// The file ends in the middle of a line, or of an atomic group.
    #[error("cut short")]
    Cut,
    /// Whole lines were taken out: their neighbours are intact.
    #[error("missing records")]
    Missing,
}

/// What is done about the checksum of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    /// It has to be right.
    Checked,
    /// Something else shows that the line is whole.
    Passed,
}

/// Where things are in a line.
struct Found {
    stamp: Stamp,
    /// Where the stamp's member begins, comma included.
    body_end: usize,
    /// The stamp without its checksum.
    text: Range<usize>,
}

fn parse_stamp(bytes: &[u8], sum: Sum) -> Result<Found, Flaw> {
    if bytes.iter().all(|&byte| byte == 0) {
        return Err(Flaw::Nul);
    }
    if !bytes.ends_with(b"\"}") || bytes.len() < OPENING.len() + CHECKSUM_TAIL {
        return Err(Flaw::Unstamped);
    }
    let member = find_member(bytes).ok_or(Flaw::Unstamped)?;
    // The quote that ends the line may be the one that the opening ends with: `…"_rt":"}`.
    let text = bytes.get(member + OPENING.len()..bytes.len() - 2).ok_or(Flaw::Unstamped)?;
    let text = std::str::from_utf8(text).map_err(|_| Flaw::Unstamped)?;
    let (mut fields, mut count, mut rest) = ([""; FIELDS], 0, text);
    loop {
        // They are so short that looking at each byte is quicker than a search.
        let space = rest.bytes().position(|byte| byte == b' ');
        if let Some(slot) = fields.get_mut(count) {
            *slot = &rest[..space.unwrap_or(rest.len())];
        }
        count += 1;
        match space {
            Some(space) => rest = &rest[space + 1..],
            None => break,
        }
    }
    if count != FIELDS {
        let newer = count > 1 && fields[0].parse::<u32>().is_ok_and(|version| version > 1);
        return Err(if newer { Flaw::Newer } else { Flaw::Unstamped });
    }
    // Lower case only: a flipped bit can turn `a` into `A`, and that too must be found.
    let plain =
        fields[8].len() == 8 && !fields[8].bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'+');
    let checksum = u32::from_str_radix(fields[8], 16).map_err(|_| Flaw::Unstamped)?;
    if sum == Sum::Passed || Defect::IgnoreTheChecksum.is_on() {
        // Everything else about the line is looked at all the same.
    } else if !plain || crc32c::crc32c(&bytes[..bytes.len() - CHECKSUM_TAIL]) != checksum {
        return Err(Flaw::Checksum);
    }
    if fields[0] != VERSION {
        return Err(Flaw::Newer);
    }
    let stamp = read_fields(&fields).ok_or(Flaw::Unstamped)?;
    let body_end = if member > 0 && bytes[member - 1] == b',' { member - 1 } else { member };
    Ok(Found { stamp, body_end, text: member + OPENING.len()..bytes.len() - CHECKSUM_TAIL })
}

/// Returns where the stamp's member begins. No stamp has a quote in it, so the last one before its end is nearly always
/// that of its opening; a stamp that is damaged may have one all the same.
fn find_member(bytes: &[u8]) -> Option<usize> {
    let window = bytes.len().saturating_sub(LONGEST);
    let quote = memchr::memrchr(b'"', &bytes[window..bytes.len() - 2]).map(|quote| window + quote + 1);
    match quote.filter(|end| bytes[window..*end].ends_with(OPENING)) {
        Some(end) => Some(end - OPENING.len()),
        None => memchr::memmem::rfind(&bytes[window..], OPENING).map(|found| window + found),
    }
}

fn read_fields(fields: &[&str; FIELDS]) -> Option<Stamp> {
    Some(Stamp {
        position: number(fields[1])?,
        parent: if fields[2] == "-" { None } else { Some(number(fields[2])?) },
        depth: number(fields[3])?,
        kind: Kind::of_letter(fields[4])?,
        id: EntryId::from_str(fields[5]).ok()?,
        left: number(fields[6])?,
        unsettled: number(fields[7])?,
    })
}

/// Reads a number of a stamp. One that no log can have reached is none of ours, and so no sum of two overflows.
fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number <= LARGEST)
}

fn is_empty_object(body: &[u8]) -> bool {
    body[..body.len() - 1].trim_ascii_end() == b"{"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamp() -> Stamp {
        Stamp {
            position: 7,
            parent: Some(5),
            depth: 3,
            kind: Kind::Entry,
            id: "u-1".parse().unwrap(),
            left: 0,
            unsettled: 2,
        }
    }

    fn stamped(body: &str) -> Line {
        Line::new(&Entry::parse(body.as_bytes().to_vec()).unwrap(), stamp())
    }

    #[test]
    fn exactly_one_stamp_is_added_and_exactly_one_taken_off() {
        for body in [
            r#"{}"#,
            r#"{ }"#,
            r#"{"a":1}"#,
            r#"{"a":1 }"#,
            r#"{"a":{}}"#,
            r#"{"a":"{"}"#,
            r#"{"_rt":"1 0 - 1 e x 0 00000000"}"#,
            r#"{"x":1,"_rt":"mine"}"#,
        ] {
            let line = stamped(body);
            let read = Line::parse(Bytes::copy_from_slice(line.as_bytes())).unwrap();
            assert_eq!(read.stamp(), &stamp(), "{body}");
            assert_eq!(read.body(), body.as_bytes());
            assert!(serde_json::from_slice::<serde_json::Value>(line.as_bytes()).unwrap().is_object());
            let mut bytes = line.as_bytes().to_vec();
            let opened = Line::open(&mut bytes).unwrap();
            let opened = Line::of_opened(bytes.into(), opened);
            assert_eq!((opened.body(), &opened), (Bytes::copy_from_slice(body.as_bytes()), &line));
            let restored = Line::restored(line.body(), stamp());
            assert_eq!((restored.size(), restored.stamp_text()), (line.size(), line.stamp_text()), "{body}");
            assert_eq!((&restored, line.size()), (&line, line.as_bytes().len()));
            // Stamped twice, it loses only the outer one.
            let twice = Line::new(&line.entry_of_whole(), stamp());
            assert_eq!(twice.body(), line.as_bytes());
        }
    }

    #[test]
    fn a_line_that_ends_where_a_stamp_would_begin_is_no_record() {
        // Once, this was a panic, and with one such line in a log nobody could read any of it.
        let line = Bytes::from_static(br#"{"text":"cut off here","_rt":"}"#);
        assert_eq!(Line::parse(line), Err(Flaw::Unstamped));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_found() {
        let line = stamped(r#"{"text":"hello"}"#);
        for at in 0..line.as_bytes().len() {
            for bit in 0..8 {
                let mut flipped = line.as_bytes().to_vec();
                flipped[at] ^= 1 << bit;
                assert!(Line::parse(flipped.into()).is_err(), "byte {at} bit {bit}");
            }
            assert!(Line::parse(Bytes::copy_from_slice(&line.as_bytes()[..at])).is_err(), "cut at {at}");
        }
    }

    impl Line {
        fn entry_of_whole(&self) -> Entry {
            Entry::parse(self.as_bytes().to_vec()).unwrap()
        }
    }
}
