//! From bytes to records: which lines are whole, in place and complete, and what lies between them.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;

use bytes::Bytes;

use super::disk::{DiskFile, read_onto, read_range};
use super::segment::Segment;
use crate::backend::{Damage, Position};
use crate::defect::Defect;
use crate::stamp::{Flaw, Line, Opened, Sum, Unseal};

/// How much of a file is read at once. Larger gains nothing: the page cache is the slower side.
const STRIDE: u64 = 256 << 10;
/// From how much on it pays to read on several threads.
const WIDE: u64 = 4 << 20;
/// For how many lines room is made at most before they are seen: the first ones may be shorter than all others.
const EXPECTED: usize = 64 << 10;
/// How much is read around a probe or from the end: a few lines of usual length.
const GLIMPSE: u64 = 16 << 10;
/// How much is read to find the next line: most are shorter.
const PROBE: u64 = 8 << 10;

/// Puts lines in order, holds back the records of an unfinished group, and names every damaged region.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    file: String,
    /// The position to come; unknown before the first line of a scan that began somewhere in the middle.
    next: Option<Position>,
    /// The scan began before the position that is wanted: what comes before it is no damage.
    searching: bool,
    /// The scan began with the file itself.
    thorough: bool,
    /// The last record before the one that is wanted.
    passed: Option<Position>,
    group: Vec<Line>,
    group_at: u64,
    bad: Option<Bad>,
    doubt: Option<Doubt>,
    /// Whole records, in order.
    pub(crate) lines: Vec<Line>,
    /// Damage that has whole records after it.
    pub(crate) damage: Vec<Damage>,
    /// The end of the last whole record, or of the last whole group.
    pub(crate) good_end: u64,
    /// How many bytes `lines` take in the file.
    pub(crate) size: usize,
    /// Whole lines stand behind the end that [`conclude`](Self::conclude) found: nothing may follow them.
    pub(crate) unfinished: bool,
}

/// A region that holds no record.
#[derive(Clone, Copy, Debug)]
struct Bad {
    start: u64,
    end: u64,
    flaw: Flaw,
    /// There are NUL bytes in it: a crash of the machine may have kept its blocks from the disk.
    hollow: bool,
}

/// Where things stood before a hole whose other side may be the rest of a write that was never finished.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// The first position that is missing.
    next: Option<Position>,
    good_end: u64,
    lines: usize,
    damage: usize,
    size: usize,
    flaw: Flaw,
}

impl Assembler {
    pub(crate) fn new(file: String, next: Option<Position>, start: u64) -> Self {
        Self { file, next, good_end: start, ..Self::default() }
    }

    /// Starts somewhere before a position, for instance in the middle of its group.
    pub(crate) fn searching(file: String, position: Position, start: u64) -> Self {
        Self { searching: true, ..Self::new(file, Some(position), start) }
    }

    /// Starts with the first line of a file, however far before the position that is.
    pub(crate) fn searching_thoroughly(file: String, position: Position, start: u64) -> Self {
        Self { thorough: true, ..Self::searching(file, position, start) }
    }

    /// Returns whether it holds so much, and nothing that is not finished.
    fn is_full(&self, max_bytes: usize) -> bool {
        self.size >= max_bytes && self.group.is_empty() && self.doubt.is_none()
    }

    /// Returns the position to come.
    pub(crate) fn next(&self) -> Option<Position> {
        self.next
    }

    /// Takes one line, without its newline, that starts at `offset`.
    fn take(&mut self, bytes: Bytes, opened: Result<Opened, Flaw>, offset: u64) {
        let end = offset + bytes.len() as u64 + 1;
        if bytes.is_empty() {
            // Closing a torn line off can leave an empty one; it says nothing.
            if self.bad.is_none() && self.group.is_empty() {
                self.good_end = end;
            }
            return;
        }
        let hollow = opened.is_err() && memchr::memchr(0, &bytes).is_some();
        match opened {
            Ok(opened) => self.take_line(Line::of_opened(bytes, opened), offset, end),
            Err(flaw) => {
                self.void_group(offset);
                self.mark_bad(offset, end, if hollow { Flaw::Nul } else { flaw });
                if let Some(bad) = &mut self.bad {
                    bad.hollow |= hollow;
                }
            }
        }
    }

    /// Takes what stands after the last newline: a record that lacks nothing else is whole.
    ///
    /// Otherwise closing it off would make it one, at a position that was given out again.
    fn take_unterminated(&mut self, bytes: Bytes, opened: Result<Opened, Flaw>, offset: u64) {
        let end = offset + bytes.len() as u64;
        if let Ok(opened) = opened {
            self.take_line(Line::of_opened(bytes, opened), offset, end);
        }
    }

    fn take_line(&mut self, line: Line, offset: u64, end: u64) {
        let (position, left) = (line.stamp().position, line.stamp().left);
        if let Some(last) = self.group.last() {
            if position == last.stamp().position + 1 && left + 1 == last.stamp().left {
                self.group.push(line);
                if left == 0 {
                    self.finish_group(end);
                }
                return;
            }
            self.void_group(offset);
        }
        let expected = self.next.unwrap_or(position);
        if position < expected && self.searching && (self.bad.is_none() || self.is_on_the_way(position)) {
            // What was damaged before this one is of no interest to whoever wants a later one.
            self.bad = None;
            self.passed = Some(position);
            self.good_end = end;
            return;
        }
        if position < expected && !Defect::TakeDoubledLines.is_on() {
            self.mark_bad(offset, end, Flaw::Misplaced);
            return;
        }
        self.group_at = offset;
        self.group.push(line);
        if left == 0 || Defect::ShowHalfAGroup.is_on() {
            self.finish_group(end);
        }
    }

    /// Returns whether a record before the one that is wanted stands where it should.
    fn is_on_the_way(&self, position: Position) -> bool {
        self.thorough && self.passed.is_none_or(|passed| passed < position)
    }

    /// A record behind a hole counts if the log was durable beyond the hole when it, or a later one, was written.
    /// Otherwise both may be what a crash left of one write.
    fn weigh(&mut self, position: Position, settled: Position, expected: Position) {
        let hole = self.doubt.map_or(expected, |doubt| doubt.next.unwrap_or(0));
        if self.doubt.is_some() {
            self.doubt = self.doubt.filter(|_| settled <= hole);
        } else if let Some(Bad { flaw, hollow: true, .. }) = self.bad
            && position > expected
            && settled <= hole
            && !Defect::TrustWhatIsBehindAHole.is_on()
        {
            let (good_end, lines, damage) = (self.good_end, self.lines.len(), self.damage.len());
            self.doubt = Some(Doubt { next: self.next, good_end, lines, damage, size: self.size, flaw });
        }
    }

    /// The log ends here. If the doubt remains, everything from the hole on was never promised to anybody.
    pub(crate) fn conclude(&mut self, end: u64) {
        let Some(Doubt { next, good_end, lines, damage, size, flaw }) = self.doubt.take() else {
            return;
        };
        self.group.clear();
        self.lines.truncate(lines);
        self.damage.truncate(damage);
        (self.next, self.good_end, self.size) = (next, good_end, size);
        self.bad = Some(Bad { start: good_end, end, flaw, hollow: true });
        self.unfinished = true;
    }

    fn finish_group(&mut self, end: u64) {
        self.searching = false;
        // Not before: a group that is never finished says nothing about the positions before it.
        if let Some(first) = self.group.first().map(Line::stamp) {
            let (position, settled) = (first.position, first.settled());
            let expected = self.next.unwrap_or(position);
            self.weigh(position, settled, expected);
            self.report(self.group_at, expected..position);
        }
        if let Some(last) = self.group.last() {
            self.next = Some(last.stamp().position + 1);
        }
        // As they lie in the file: what was opened is in another core's cache, and there are many.
        self.size += (end - self.group_at) as usize;
        self.lines.append(&mut self.group);
        self.good_end = end;
    }

    /// A group whose last record never came counts for nothing: its positions are given out again.
    fn void_group(&mut self, end: u64) {
        if !self.group.is_empty() {
            self.group.clear();
            let at = self.group_at;
            self.mark_bad(at, end, Flaw::Cut);
        }
    }

    fn mark_bad(&mut self, start: u64, end: u64, flaw: Flaw) {
        let region = self.bad.get_or_insert(Bad { start, end, flaw, hollow: false });
        region.end = end;
    }

    /// A good record follows: what lay before it is damage for certain.
    fn report(&mut self, offset: u64, lost: std::ops::Range<Position>) {
        let region = self.bad.take();
        if region.is_none() && lost.is_empty() {
            return;
        }
        let missing = Bad { start: offset, end: offset, flaw: Flaw::Missing, hollow: false };
        let Bad { start, end, flaw, .. } = region.unwrap_or(missing);
        let file = self.file.clone();
        self.damage.push(Damage { file, offset: start, length: end - start, flaw, lost });
    }

    /// Returns whether a record that was wanted is not among those found.
    pub(crate) fn misses(&self, wanted: Position) -> bool {
        self.lines.first().map_or(self.bad.is_some(), |line| line.stamp().position > wanted)
    }

    /// Returns what lies after the last whole record, if the file ends at `end`.
    pub(crate) fn tail(&self, end: u64) -> Option<Damage> {
        if end <= self.good_end {
            return None;
        }
        let flaw = self.bad.map_or(Flaw::Cut, |bad| bad.flaw);
        let (file, offset) = (self.file.clone(), self.good_end);
        Some(Damage { file, offset, length: end - offset, flaw, lost: 0..0 })
    }
}

/// Feeds whole lines of `file` from `from` up to `end` to an assembler, until it holds `max_bytes`.
///
/// Returns where it stopped: the start of the first line that was not taken.
pub(crate) fn scan(
    file: &dyn DiskFile,
    from: u64,
    end: u64,
    max_bytes: usize,
    into: &mut Assembler,
) -> std::io::Result<u64> {
    scan_unsealing(file, from..end, max_bytes, None, into)
}

/// Does the same, and opens what was sealed.
pub(crate) fn scan_unsealing(
    file: &dyn DiskFile,
    Range { start: from, end }: Range<u64>,
    max_bytes: usize,
    by: Option<&dyn Unseal>,
    into: &mut Assembler,
) -> std::io::Result<u64> {
    let wide = end.min(from.saturating_add(max_bytes as u64));
    let mut at =
        if wide - from.min(wide) < WIDE { from } else { scan_wide(file, from..wide, end, by, into)? };
    if at > from && into.is_full(max_bytes) {
        return Ok(at);
    }
    let mut stride = STRIDE.min((max_bytes as u64).saturating_add(GLIMPSE));
    // The beginning of a line that is longer than what was read of it.
    let mut begun: Vec<u8> = Vec::new();
    while at < end {
        let known = begun.len() as u64;
        let read = read_onto(&begun, file, at + known, end.min(at + known + stride))?;
        let fell_short = (read.len() as u64) < known + stride;
        let (buffer, lines) = open_lines(read, 0, by);
        if buffer.is_empty() {
            break;
        }
        let mut start = 0;
        let mut rest = None;
        for (range, opened) in lines {
            if range.end == buffer.len() {
                rest = Some(opened);
                break;
            }
            start = range.end + 1;
            let offset = at + range.start as u64;
            into.take(buffer.slice(range), opened, offset);
            if into.is_full(max_bytes) {
                return Ok(at + start as u64);
            }
        }
        let at_end = at + buffer.len() as u64 >= end || fell_short;
        if let Some(opened) = rest.take_if(|_| at_end) {
            into.take_unterminated(buffer.slice(start..), opened, at + start as u64);
            return Ok(into.good_end.max(at + start as u64));
        }
        begun.clear();
        // What was unsealed is not as it was any more, so it is read again.
        if by.is_none() {
            begun.extend_from_slice(&buffer[start..]);
        }
        if let Some(Ok(opened)) = &rest {
            opened.close(&mut begun);
        }
        at += start as u64;
        // One line longer than the buffer: take a larger one.
        stride = if start > 0 { STRIDE } else { stride * 4 };
    }
    Ok(at)
}

type OpenedLine = (Range<usize>, Result<Opened, Flaw>);

/// What was read of a range of whole lines.
type Part = std::io::Result<(Bytes, Vec<OpenedLine>)>;

/// Reads most of a long range on all cores: finding lines and checking their sums is nearly all of the work, and no line
/// needs another for it. Returns how far it got; always to the end of a line.
fn scan_wide(
    file: &dyn DiskFile,
    range: Range<u64>,
    end: u64,
    by: Option<&dyn Unseal>,
    into: &mut Assembler,
) -> std::io::Result<u64> {
    let mut cuts = vec![range.start];
    let mut near = range.start;
    while near + WIDE / 4 <= range.end {
        near += WIDE / 4;
        match end_of_line(file, near, end)? {
            Some(cut) => {
                cuts.push(cut);
                near = cut;
            }
            None => break,
        }
    }
    let parts: Vec<Range<u64>> = cuts.windows(2).map(|cut| cut[0]..cut[1]).collect();
    let next = AtomicUsize::new(0);
    let open = || -> Option<(usize, Part)> {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let part = parts.get(number)?;
        let read = read_range(file, part.start, part.end);
        Some((number, read.map(|buffer| open_lines(buffer, 0, by))))
    };
    let cores = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len());
    let (opened, others_opened) = channel();
    std::thread::scope(|scope| {
        for _ in 1..cores {
            let opened = opened.clone();
            scope.spawn(move || while open().is_some_and(|part| opened.send(part).is_ok()) {});
        }
        drop(opened);
        // It ends with this, and so nobody goes on with what nobody waits for.
        let others_opened = others_opened;
        let (mut ready, mut at) = (BTreeMap::new(), range.start);
        for (number, part) in parts.iter().enumerate() {
            // Whoever puts the parts in order opens some too, unless the one to come is there.
            while !ready.contains_key(&number) {
                ready.extend(others_opened.try_iter());
                if ready.contains_key(&number) {
                    break;
                }
                // Without an answer the other thread has panicked, and so will the scope.
                let Some((number, part)) = open().or_else(|| others_opened.recv().ok()) else {
                    return Ok(at);
                };
                ready.insert(number, part);
            }
            let Some((buffer, lines)) = ready.remove(&number).transpose()? else { return Ok(at) };
            if !buffer.ends_with(b"\n") {
                break;
            }
            if number == 0 {
                // Memory is given out slowly: what grows step by step needs twice as much of it.
                into.lines.reserve((lines.len() * parts.len() * 9 / 8).min(EXPECTED));
            }
            for (range, opened) in lines {
                let offset = part.start + range.start as u64;
                into.take(buffer.slice(range), opened, offset);
            }
            at = part.start + buffer.len() as u64;
            if at < part.end {
                break;
            }
        }
        Ok(at)
    })
}

/// Returns where the line ends that holds this byte, newline included.
fn end_of_line(file: &dyn DiskFile, from: u64, end: u64) -> std::io::Result<Option<u64>> {
    let mut at = from;
    while at < end {
        let bytes = read_range(file, at, end.min(at + PROBE))?;
        match memchr::memchr(b'\n', &bytes) {
            Some(newline) => return Ok(Some(at + newline as u64 + 1)),
            None if bytes.is_empty() => return Ok(None),
            None => at += bytes.len() as u64,
        }
    }
    Ok(None)
}

/// Opens every line of a buffer from `start` on, the last one too if it has no newline.
///
/// All at once, because they are opened where they lie, and the buffer is shared afterwards.
fn open_lines(mut buffer: Vec<u8>, start: usize, by: Option<&dyn Unseal>) -> (Bytes, Vec<OpenedLine>) {
    let (mut lines, mut start) = (Vec::<OpenedLine>::new(), start);
    let last = by.map_or(0, |_| last_line(&buffer));
    while start < buffer.len() {
        let end = memchr::memchr(b'\n', &buffer[start..]).map_or(buffer.len(), |newline| start + newline);
        let in_group = || matches!(lines.last(), Some((_, Ok(before))) if before.is_followed());
        let line = &mut buffer[start..end];
        let opened = match by {
            Some(by) if by.is_proof() && start < last && !in_group() => {
                Line::open_sealed(line, by, Sum::Passed)
            }
            Some(by) => Line::open_sealed(line, by, Sum::Checked),
            None => Line::open(line),
        };
        lines.push((start..end, opened));
        start = end + 1;
    }
    (buffer.into(), lines)
}

/// Returns where the last line begins that has a newline.
fn last_line(buffer: &[u8]) -> usize {
    let end = memchr::memrchr(b'\n', buffer).unwrap_or(0);
    memchr::memrchr(b'\n', &buffer[..end]).map_or(0, |newline| newline + 1)
}

/// Finds where the line with this position would begin: right after the last line with a smaller one.
///
/// Positions ascend with offsets, so no index is needed: each probe reads the end of one line.
pub(crate) fn locate(file: &dyn DiskFile, start: u64, end: u64, position: Position) -> std::io::Result<u64> {
    let near = bisect(file, start..end, position, first_end_from)?;
    let (low, next) = walk(file, near, end, position)?;
    // If the next line is not too far on either, none before it is.
    let is_right = near == start || next.is_some_and(|next| next <= position);
    if is_right || ends_before(file, start, near, position)? {
        return Ok(low);
    }
    // A line whose stamp is not what was written led here.
    let near = bisect(file, start..end, position, first_line_from)?;
    walk(file, near, end, position).map(|(low, _)| low)
}

/// Reads around a place of a file, up to an end: where a line ends there, and its position.
type Probe = fn(&dyn DiskFile, u64, u64) -> std::io::Result<Option<(u64, Position)>>;

/// Returns where some line ends that comes before a position, and not long before it; the beginning if there is none.
fn bisect(
    file: &dyn DiskFile,
    Range { start, end }: Range<u64>,
    position: Position,
    probe: Probe,
) -> std::io::Result<u64> {
    let (mut low, mut high, mut reach) = (start, end, 4 * GLIMPSE);
    let (mut before, mut after) = (None, None);
    // Most of what is looked for is near the end.
    while low == start && reach < end.saturating_sub(start) {
        match probe(file, end - reach, high)? {
            Some((line_end, found)) if found < position => (low, before) = (line_end, Some(found)),
            found => {
                after = found.map(|(_, found)| found).or(after);
                (high, reach) = (end - reach, reach * 8);
            }
        }
    }
    while high.saturating_sub(low) > GLIMPSE {
        let middle = match (before, after) {
            (Some(before), Some(after)) => between(low..high, before..after, position),
            _ => low + (high - low) / 2,
        };
        match probe(file, middle, high)? {
            Some((line_end, found)) if found < position => (low, before) = (line_end, Some(found)),
            found => {
                after = found.map(|(_, found)| found).or(after);
                high = middle;
            }
        }
    }
    Ok(low)
}

/// Goes on from the end of a line to the last one before a position. Returns where that ends, and the position of the first
/// whole line on the way. What is left is read once.
fn walk(
    file: &dyn DiskFile,
    mut low: u64,
    end: u64,
    position: Position,
) -> std::io::Result<(u64, Option<Position>)> {
    let (mut at, mut buffer, mut size, mut next) = (low, Vec::new(), GLIMPSE, None);
    while at < end {
        buffer = read_onto(&buffer, file, at + buffer.len() as u64, end.min(at + size))?;
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer) {
            if let Ok(line) = Line::parse(Bytes::copy_from_slice(&buffer[start..newline])) {
                next = next.or(Some(line.stamp().position));
                if line.stamp().position >= position {
                    return Ok((low, next));
                }
                low = at + newline as u64 + 1;
            }
            start = newline + 1;
        }
        if at + size >= end {
            break;
        }
        at += start as u64;
        size = if start > 0 { GLIMPSE } else { size * 4 };
        buffer.drain(..start);
    }
    Ok((low, next))
}

/// Guesses where a position is, as if all lines were equally long, and a little before that; but never so near to an
/// end that nothing is gained.
fn between(offsets: Range<u64>, positions: Range<Position>, position: Position) -> u64 {
    let (size, count) = (offsets.end - offsets.start, positions.end.saturating_sub(positions.start).max(1));
    let share = position.saturating_sub(positions.start).min(count) as f64 / count as f64;
    let guess = (size as f64 * share) as u64;
    offsets.start + guess.saturating_sub(GLIMPSE / 2).clamp(size / 8, size - size / 8)
}

/// Returns the end and the position of the first line that ends after `from`. Its stamp stands at its end, so only that is
/// read, and its checksum, which is about the whole line, is not looked at.
fn first_end_from(file: &dyn DiskFile, from: u64, end: u64) -> std::io::Result<Option<(u64, Position)>> {
    let first = from.saturating_sub(Line::STAMP);
    let (mut buffer, mut size) = (Vec::new(), PROBE / 2);
    loop {
        buffer = read_onto(&buffer, file, first + buffer.len() as u64, end.min(from + size))?;
        let mut start = 0;
        for newline in memchr::memchr_iter(b'\n', &buffer) {
            if first + newline as u64 >= from
                && let Some(position) = Line::position_at_end(&buffer[start..newline])
            {
                return Ok(Some((first + newline as u64 + 1, position)));
            }
            start = newline + 1;
        }
        if from + size >= end {
            return Ok(None);
        }
        size *= 2;
    }
}

/// Returns whether the line that ends at a place is whole, and comes before a position.
fn ends_before(file: &dyn DiskFile, start: u64, end: u64, position: Position) -> std::io::Result<bool> {
    let mut size = PROBE / 2;
    loop {
        let first = start.max(end.saturating_sub(size));
        let buffer = Bytes::from(read_range(file, first, end)?);
        let line = last_line(&buffer);
        if line > 0 || first == start {
            let line = Line::parse(buffer.slice(line..buffer.len().saturating_sub(1)));
            return Ok(line.is_ok_and(|line| line.stamp().position < position));
        }
        size *= 2;
    }
}

/// Returns the end and the position of the first whole line that begins after `from`.
fn first_line_from(file: &dyn DiskFile, from: u64, end: u64) -> std::io::Result<Option<(u64, Position)>> {
    let (mut buffer, mut size) = (Vec::new(), PROBE);
    loop {
        buffer = read_onto(&buffer, file, from + buffer.len() as u64, end.min(from + size))?;
        let mut start = None;
        for newline in memchr::memchr_iter(b'\n', &buffer) {
            if let Some(start) = start
                && let Ok(line) = Line::parse(Bytes::copy_from_slice(&buffer[start..newline]))
            {
                return Ok(Some((from + newline as u64 + 1, line.stamp().position)));
            }
            start = Some(newline + 1);
        }
        if from + size >= end {
            return Ok(None);
        }
        // Only what comes next is read: a long line costs what it is long, and not a multiple of that.
        size *= 2;
    }
}

/// Reads a segment from its beginning, and keeps its last record: slow, and not led astray by lines that are out of place.
pub(crate) fn whole(segment: &Segment, name: &str, end: u64) -> std::io::Result<Assembler> {
    let mut found = Assembler::new(name.to_owned(), Some(segment.first), segment.start);
    let mut at = segment.start;
    loop {
        let stopped = scan(&*segment.file, at, end, STRIDE as usize, &mut found)?;
        if stopped == at || stopped >= end {
            break;
        }
        at = stopped;
        found.lines.drain(..found.lines.len().saturating_sub(1));
        found.size = 0;
    }
    if segment.end.is_none() {
        found.conclude(end);
    }
    Ok(found)
}

/// Reads a segment from its end: the last whole record or group, and what lies after it.
pub(crate) fn last(segment: &Segment, name: &str, end: u64) -> std::io::Result<Assembler> {
    let (file, start) = (&*segment.file, segment.start);
    let mut size = GLIMPSE;
    loop {
        let from = start.max(end.saturating_sub(size));
        let buffer = read_range(file, from, end)?;
        let mut skip = 0;
        if from > start {
            skip = memchr::memchr(b'\n', &buffer).map_or(buffer.len(), |newline| newline + 1);
        }
        // Read from its beginning, it is known which position comes first, and so whether that is lost.
        let first = (from == start).then_some(segment.first);
        let mut found = Assembler::new(name.to_owned(), first, from + skip as u64);
        let (buffer, lines) = open_lines(buffer, skip, None);
        for (range, opened) in lines {
            let (offset, whole) = (from + range.start as u64, range.end < buffer.len());
            match whole {
                true => found.take(buffer.slice(range), opened, offset),
                false => found.take_unterminated(buffer.slice(range), opened, offset),
            }
        }
        // A crash can have kept any part of the last write from the disk, so all of it is looked at.
        let (first, last) = (found.lines.first(), found.lines.last());
        let covered =
            first.zip(last).is_some_and(|(first, last)| first.stamp().position <= last.stamp().settled());
        if segment.end.is_none() {
            found.conclude(end);
        }
        // One line alone could be an old one, doubled: its neighbour shows whether it belongs there.
        if (covered && found.lines.len() > 1) || from == start {
            return Ok(found);
        }
        size *= 4;
    }
}
