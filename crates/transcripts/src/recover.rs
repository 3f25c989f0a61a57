//! What can still be read of a line that is no entry.

use std::ops::Range;

use memchr::{memchr, memmem};
use serde::de::IgnoredAny;

use crate::envelope::Envelope;
use crate::fault::FaultKind;

/// How entries begin, as far as Claude Code and its SDKs write them.
const BEGINNINGS: [&[u8]; 4] =
    [b"{\"parentUuid\":", b"{\"type\":\"", b"{\"uuid\":\"", b"{\"logicalParentUuid\":"];

/// What is left of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remains {
    /// The entries that are whole.
    pub(crate) entries: Vec<Range<usize>>,
    pub(crate) kind: FaultKind,
}

/// Looks for whole entries in a line that is none itself. Blank lines have no remains.
pub(crate) fn remains(line: &[u8], is_last: bool) -> Option<Remains> {
    if line.trim_ascii().is_empty() {
        return None;
    }
    let mut entries = Vec::new();
    let mut at = 0;
    while at < line.len() {
        match object_at(line, at) {
            Some(end) => {
                entries.push(at..end);
                at = end;
            }
            None => at = next_beginning(line, at + 1).unwrap_or(line.len()),
        }
    }
    let kind = if memchr(0, line).is_some() {
        FaultKind::NulRun
    } else if !entries.is_empty() {
        FaultKind::Glued { recovered: entries.len() }
    } else if is_last && line.starts_with(b"{") {
        FaultKind::TornTail
    } else {
        FaultKind::Garbage
    };
    Some(Remains { entries, kind })
}

/// Returns where the entry ends that begins here. A block within a broken entry is an object too, but no entry.
fn object_at(line: &[u8], at: usize) -> Option<usize> {
    let rest = &line[at..];
    if !rest.starts_with(b"{") {
        return None;
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<IgnoredAny>();
    values.next()?.ok()?;
    let length = values.byte_offset();
    let envelope = Envelope::of(&rest[..length])?;
    let names_itself =
        envelope.uuid.is_some() || envelope.session_id.is_some() || envelope.leaf_uuid.is_some();
    (envelope.kind.is_some() && names_itself).then_some(at + length)
}

fn next_beginning(line: &[u8], from: usize) -> Option<usize> {
    let rest = line.get(from..)?;
    // All of them at once: to look for each by itself is to look through the whole line for those that are not there.
    let begins = |at: &usize| BEGINNINGS.iter().any(|beginning| rest[*at..].starts_with(beginning));
    memmem::find_iter(rest, b"{\"").find(begins).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str =
        r#"{"parentUuid":null,"uuid":"a","type":"user","message":{"content":[{"type":"text","text":"x"}]}}"#;

    fn found(line: &str) -> (Vec<&str>, FaultKind) {
        let remains = remains(line.as_bytes(), false).unwrap();
        (remains.entries.into_iter().map(|range| &line[range]).collect(), remains.kind)
    }

    #[test]
    fn entries_on_one_line_are_all_read() {
        let two = format!("{ONE}{ONE}");
        assert_eq!(found(&two), (vec![ONE, ONE], FaultKind::Glued { recovered: 2 }));
    }

    #[test]
    fn an_entry_behind_a_torn_one_is_read_and_the_torn_ones_blocks_are_not() {
        for cut in 1..ONE.len() {
            let line = format!("{}{ONE}", &ONE[..cut]);
            assert_eq!(found(&line), (vec![ONE], FaultKind::Glued { recovered: 1 }), "cut at {cut}");
        }
    }

    #[test]
    fn an_entry_among_zeroes_is_read() {
        let line = format!("\0\0\0{ONE}\0");
        assert_eq!(found(&line), (vec![ONE], FaultKind::NulRun));
        assert_eq!(found("\0\0"), (vec![], FaultKind::NulRun));
        assert_eq!(found("nonsense"), (vec![], FaultKind::Garbage));
        assert!(remains(b" \r", true).is_none());
        assert_eq!(remains(&ONE.as_bytes()[..50], true).unwrap().kind, FaultKind::TornTail);
    }
}
