//! What the last listing learnt of every session, as one document: a cache that may always be deleted.
//!
//! A row counts only while its session's log is still as it was, so that listing ten thousand sessions costs a look at
//! each and one read.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::backend::Listed;
use crate::metadata::Metadata;

/// Changes whenever rows are made or read differently.
const VERSION: u32 = 1;
/// `{"check":"1a2b3c4d",`: the checksum is that of everything after it.
const CHECKED_FROM: usize = 20;
/// How many sessions may have changed before the document is worth writing again; more of them in large stores.
const STALE: usize = 32;

/// A catalog, read or about to be written.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Catalog<'a> {
    version: u32,
    /// In the order of their names, as backends list them.
    #[serde(borrow)]
    rows: Vec<Row<'a>>,
}

/// A session as it was last listed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
    /// What the listing called the log then.
    #[serde(borrow)]
    change: Cow<'a, str>,
    /// What is needed to sort and to leave out most sessions without reading the rest.
    pub(crate) updated_at: Timestamp,
    pub(crate) archived: bool,
    pub(crate) trashed: bool,
    pub(crate) child: bool,
    #[serde(borrow)]
    pub(crate) cwd: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) project: Option<Cow<'a, str>>,
    /// All of it; `null`: there is nothing that could be listed.
    #[serde(borrow, deserialize_with = "borrowed")]
    metadata: Cow<'a, RawValue>,
}

impl<'a> Catalog<'a> {
    /// Reads a catalog; one that cannot be read is empty.
    pub(crate) fn read(document: &'a [u8]) -> Self {
        let checked =
            document.get(CHECKED_FROM..).is_some_and(|rest| document.starts_with(opening(rest).as_bytes()));
        let read =
            || serde_json::from_slice::<Self>(document).ok().filter(|catalog| catalog.version == VERSION);
        if checked { read().unwrap_or_default() } else { Self::default() }
    }

    /// Returns the document.
    pub(crate) fn to_document(rows: Vec<Row<'a>>) -> Option<Vec<u8>> {
        let rest = serde_json::to_vec(&Catalog { version: VERSION, rows }).ok()?;
        Some([opening(&rest[1..]).as_bytes(), &rest[1..]].concat())
    }

    /// Returns the row of a session that is still as it was. Sessions must be asked for in the order of their names.
    pub(crate) fn find(&self, listed: &Listed, from: &mut usize) -> Option<&Row<'a>> {
        while self.rows.get(*from).is_some_and(|row| *row.name < *listed.name) {
            *from += 1;
        }
        self.rows
            .get(*from)
            .filter(|row| row.name == listed.name && row.change == listed.change && !row.change.is_empty())
    }

    /// Returns whether so many rows were not found, or are new, that the next listing gains from a new catalog.
    pub(crate) fn is_stale(&self, found: usize, rows: usize) -> bool {
        (self.rows.len() - found) + (rows - found) > STALE + self.rows.len() / 64
    }
}

impl Row<'_> {
    /// Makes a row.
    pub(crate) fn new(listed: &Listed, metadata: Option<&Metadata>) -> Option<Row<'static>> {
        let raw = serde_json::value::to_raw_value(&metadata).ok()?;
        let is = |what: fn(&Metadata) -> bool| metadata.is_some_and(what);
        let text =
            |what: fn(&Metadata) -> &Option<String>| metadata.and_then(|metadata| what(metadata).clone());
        Some(Row {
            name: listed.name.clone().into(),
            change: listed.change.clone().into(),
            updated_at: metadata.map_or(Timestamp::UNIX_EPOCH, |metadata| metadata.updated_at),
            archived: is(|metadata| metadata.archived),
            trashed: is(|metadata| metadata.trashed_at.is_some()),
            child: is(|metadata| metadata.child || metadata.is_checkpoint),
            cwd: text(|metadata| &metadata.cwd).map(Cow::Owned),
            project: text(|metadata| &metadata.project).map(Cow::Owned),
            metadata: Cow::Owned(raw),
        })
    }

    /// Returns whether there is something to list.
    pub(crate) fn is_session(&self) -> bool {
        self.metadata.get() != "null"
    }

    /// Returns the session's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Reads all of it.
    pub(crate) fn metadata(&self) -> Option<Metadata> {
        serde_json::from_str(self.metadata.get()).ok()
    }
}

/// Leaves a value where it stands; serde would copy it.
fn borrowed<'a, 'de: 'a, D: serde::Deserializer<'de>>(from: D) -> Result<Cow<'a, RawValue>, D::Error> {
    <&'de RawValue>::deserialize(from).map(Cow::Borrowed)
}

fn opening(rest: &[u8]) -> String {
    format!("{{\"check\":\"{:08x}\",", crc32c::crc32c(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(name: &str, change: &str) -> Listed {
        Listed { name: name.into(), change: change.into(), modified: Timestamp::UNIX_EPOCH }
    }

    fn document() -> Vec<u8> {
        let metadata = Metadata::new("b".parse().unwrap(), Timestamp::UNIX_EPOCH);
        let rows = [("a", None), ("b", Some(&metadata))];
        let rows = rows.map(|(name, metadata)| Row::new(&listed(name, "1"), metadata).unwrap());
        Catalog::to_document(rows.to_vec()).unwrap()
    }

    #[test]
    fn a_row_is_found_only_while_its_log_is_as_it_was() {
        let document = document();
        let catalog = Catalog::read(&document);
        let mut from = 0;
        assert!(!catalog.find(&listed("a", "1"), &mut from).unwrap().is_session());
        assert!(catalog.find(&listed("aa", "1"), &mut from).is_none());
        assert!(catalog.find(&listed("b", "2"), &mut from).is_none());
        assert_eq!(
            catalog.find(&listed("b", "1"), &mut from).unwrap().metadata().unwrap().session_id.as_str(),
            "b"
        );
    }

    #[test]
    fn a_catalog_with_any_bit_flipped_is_empty() {
        let document = document();
        for at in 0..document.len() * 8 {
            let mut flipped = document.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            assert!(Catalog::read(&flipped).rows.is_empty(), "bit {at}");
        }
        assert_eq!(Catalog::read(&document).rows.len(), 2);
    }
}
