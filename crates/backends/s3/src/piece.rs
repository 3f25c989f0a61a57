//! A run of lines in one object, taken apart when somebody asks for them.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use rethread_store::backend::{Chunk, Damage, Position};
use rethread_store::{Flaw, Line};

/// A run of lines in one object.
#[derive(Debug)]
pub(crate) struct Piece {
    /// The object's name.
    key: String,
    first: Position,
    next: Position,
    bytes: Bytes,
    lines: OnceLock<Lines>,
}

#[derive(Debug, Default)]
struct Lines {
    sound: Vec<Line>,
    damage: Vec<Damage>,
}

impl Piece {
    /// Takes the bytes of an object that holds these positions.
    pub(crate) fn new(key: String, first: Position, next: Position, bytes: Bytes) -> Self {
        Self { key, first, next, bytes, lines: OnceLock::new() }
    }

    pub(crate) fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the lines that can be read, in order.
    pub(crate) fn lines(&self) -> &[Line] {
        &self.taken_apart().sound
    }

    fn taken_apart(&self) -> &Lines {
        self.lines.get_or_init(|| {
            let (mut lines, mut bad) = (Lines::default(), Vec::new());
            let (mut begin, mut next) = (0, self.first);
            while begin < self.bytes.len() {
                let rest = &self.bytes[begin..];
                let length = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
                let flaw = match Line::parse(self.bytes.slice(begin..begin + length)) {
                    Ok(line) if (next..self.next).contains(&line.stamp().position) => {
                        let position = line.stamp().position;
                        lines.damage.extend(self.lost(&mut bad, next..position));
                        next = position + 1;
                        lines.sound.push(line);
                        None
                    }
                    Ok(_) => Some(Flaw::Misplaced),
                    Err(flaw) => Some(flaw),
                };
                bad.extend(flaw.map(|flaw| self.damage(begin, length, flaw)));
                begin += length + 1;
            }
            lines.damage.extend(self.lost(&mut bad, next..self.next));
            lines
        })
    }

    /// Gives what is bad between two sound lines the positions that are missing there: one each, and the last the rest.
    fn lost(&self, bad: &mut Vec<Damage>, mut missing: Range<Position>) -> Vec<Damage> {
        if bad.is_empty() && !missing.is_empty() {
            bad.push(self.damage(self.bytes.len(), 0, Flaw::Missing));
        }
        let last = bad.len().saturating_sub(1);
        let take = |(number, damage): (usize, Damage)| {
            let end = if number == last { missing.end } else { (missing.start + 1).min(missing.end) };
            let lost = missing.start..end;
            missing.start = end;
            Damage { lost, ..damage }
        };
        bad.drain(..).enumerate().map(take).collect()
    }

    fn damage(&self, offset: usize, length: usize, flaw: Flaw) -> Damage {
        Damage { file: self.key.clone(), offset: offset as u64, length: length as u64, flaw, lost: 0..0 }
    }

    /// Adds lines to a chunk from where it has got to, and whatever cannot be read. Returns whether it is full.
    pub(crate) fn add_to(&self, chunk: &mut Chunk, size: &mut usize, max_bytes: usize) -> bool {
        let all = self.taken_apart();
        let begin = all.sound.partition_point(|line| line.stamp().position < chunk.next);
        for line in &all.sound[begin..] {
            let is_whole = chunk.lines.last().is_none_or(|last| {
                last.stamp().left == 0 || last.stamp().position + 1 != line.stamp().position
            });
            if is_whole && !chunk.lines.is_empty() && *size >= max_bytes {
                return true;
            }
            self.lose(chunk, line.stamp().position);
            *size += line.as_bytes().len();
            chunk.next = line.stamp().position + 1;
            chunk.lines.push(line.clone());
        }
        self.lose(chunk, self.next);
        *size >= max_bytes && !chunk.lines.is_empty()
    }

    /// Notes what cannot be read from where the chunk has got to, up to a position.
    fn lose(&self, chunk: &mut Chunk, until: Position) {
        let from = chunk.next;
        if until <= from {
            return;
        }
        let damage = &self.taken_apart().damage;
        let touching = damage.iter().filter(|damage| damage.lost.start < until && from < damage.lost.end);
        chunk.damage.extend(touching.cloned().map(|damage| {
            let lost = damage.lost.start.max(from)..damage.lost.end.min(until);
            Damage { lost, ..damage }
        }));
        chunk.next = until;
    }
}

/// A piece whose object is gone.
pub(crate) fn vanished(key: String, lost: Range<Position>, size: u64) -> Damage {
    Damage { file: key, offset: 0, length: size, flaw: Flaw::Missing, lost }
}
