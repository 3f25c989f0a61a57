//! How far somebody has read a session, such that any keeper can tell whether that is still true.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// How much before the place must still be the same.
const FINGERPRINT: u64 = 256;

/// A place in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// In a transcript: the file, how far, and a hash of what stands before that.
    File { inode: u64, offset: u64, hash: u64 },
    /// In a log: the position after the last record.
    Log(u64),
}

impl Position {
    /// Returns the place after the last whole line before `end`.
    pub(crate) fn of(file: &File, end: u64) -> io::Result<Self> {
        let offset = last_line_end(file, end)?;
        Ok(Position::File { inode: file.metadata()?.ino(), offset, hash: hash(file, offset)? })
    }

    /// Returns how far it goes, if it is still true of a file.
    pub(crate) fn holds(self, file: &File) -> Option<u64> {
        let Position::File { inode, offset, hash: known } = self else { return None };
        let metadata = file.metadata().ok()?;
        let same = metadata.ino() == inode && metadata.len() >= offset && hash(file, offset).ok()? == known;
        same.then_some(offset)
    }
}

fn hash(file: &File, offset: u64) -> io::Result<u64> {
    let length = offset.min(FINGERPRINT);
    let mut bytes = vec![0; length as usize];
    file.read_exact_at(&mut bytes, offset - length)?;
    let hash = Sha256::digest(&bytes);
    let mut half = [0; 8];
    half.copy_from_slice(&hash[..8]);
    Ok(u64::from_le_bytes(half))
}

fn last_line_end(file: &File, size: u64) -> io::Result<u64> {
    let mut buffer = vec![0; 1 << 14];
    let mut end = size;
    while end > 0 {
        let begin = end.saturating_sub(buffer.len() as u64);
        let part = &mut buffer[..(end - begin) as usize];
        file.read_exact_at(part, begin)?;
        if let Some(newline) = memchr::memrchr(b'\n', part) {
            return Ok(begin + newline as u64 + 1);
        }
        end = begin;
    }
    Ok(0)
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::File { inode, offset, hash } => write!(f, "f.{inode:x}.{offset:x}.{hash:x}"),
            Position::Log(next) => write!(f, "l.{next:x}"),
        }
    }
}

impl FromStr for Position {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut parts = text.split('.');
        let kind = parts.next().ok_or(())?;
        let numbers: Vec<u64> =
            parts.map(|part| u64::from_str_radix(part, 16)).collect::<Result<_, _>>().map_err(drop)?;
        match (kind, &numbers[..]) {
            ("f", [inode, offset, hash]) => {
                Ok(Position::File { inode: *inode, offset: *offset, hash: *hash })
            }
            ("l", [next]) => Ok(Position::Log(*next)),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_position_holds_as_long_as_what_stands_before_it_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        fs::write(&path, "one\ntwo\nhal").unwrap();
        let open = || File::open(&path).unwrap();
        let position = Position::of(&open(), 11).unwrap();
        assert_eq!(position.to_string().parse(), Ok(position));
        assert_eq!(position.holds(&open()), Some(8));
        fs::OpenOptions::new().append(true).open(&path).unwrap();
        fs::write(&path, "one\ntwo\nhalf\n").unwrap();
        assert_eq!(position.holds(&open()), Some(8));
        fs::write(&path, "one\nTWO\nhalf\n").unwrap();
        assert_eq!(position.holds(&open()), None);
        assert_eq!("f.1".parse::<Position>(), Err(()));
    }
}
