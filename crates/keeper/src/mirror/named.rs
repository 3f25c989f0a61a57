//! Their entries under names by which a repeated append is recognised.

use std::borrow::Cow;

use rethread_store::{Entry, EntryId, Error, Result};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::credentials::hash;

/// Names of ours begin with this, and no uuid of theirs is taken for one.
const OURS: char = '~';

/// An entry, and what else of it is of use.
pub(crate) struct Named {
    pub(crate) entry: Entry,
    pub(crate) cwd: Option<String>,
}

#[derive(Default, Deserialize)]
struct Peek<'a> {
    #[serde(borrow, default)]
    uuid: Option<&'a RawValue>,
    #[serde(borrow, default)]
    cwd: Option<&'a RawValue>,
}

/// Takes an entry byte for byte. It goes by its uuid; one without goes by its place in the batch it came with, so that
/// the same batch again is the same entry, and an equal entry of another batch is another one.
pub(crate) fn named(batch: &str, place: u64, json: &RawValue) -> Result<Named> {
    let text = |raw: &RawValue| serde_json::from_str::<String>(raw.get()).ok();
    // Members that come twice, or are no texts, name nothing.
    let peek = serde_json::from_str::<Peek<'_>>(json.get()).unwrap_or_default();
    let (uuid, cwd) = (peek.uuid.and_then(text).filter(|uuid| !uuid.is_empty()), peek.cwd.and_then(text));
    let id = match uuid {
        Some(uuid) => match uuid.parse::<EntryId>() {
            Ok(id) if !uuid.starts_with(OURS) => id,
            _ => name(format!("{OURS}u.{}", hash(&uuid)))?,
        },
        None => name(format!("{OURS}b.{batch}.{place}"))?,
    };
    Ok(Named { entry: Entry::parse(on_one_line(json.get()).into_owned())?.with_id(id), cwd })
}

/// Returns whether a text can be a batch's id: 1 to 64 of `[A-Za-z0-9_-]`.
pub(crate) fn is_batch(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&text.len()) && text.bytes().all(is_plain)
}

fn name(text: String) -> Result<EntryId, Error> {
    text.parse()
}

/// Line breaks of JSON are white space: within texts they are escaped.
fn on_one_line(json: &str) -> Cow<'_, str> {
    match json.contains(['\n', '\r']) {
        true => json.replace(['\n', '\r'], " ").into(),
        false => json.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(batch: &str, place: u64, json: &str) -> Entry {
        named(batch, place, &RawValue::from_string(json.into()).unwrap()).unwrap().entry
    }

    #[test]
    fn entries_go_by_their_uuid_and_those_without_by_their_place() {
        assert_eq!(of("b", 0, r#"{"uuid":"u-1"}"#).id(), of("c", 7, r#"{"x":1,"uuid":"u-1"}"#).id());
        let nameless = r#"{"type":"mode","id":"same"}"#;
        assert_eq!(of("b", 0, nameless).id(), of("b", 0, nameless).id());
        assert_ne!(of("b", 0, nameless).id(), of("b", 1, nameless).id());
        assert_ne!(of("b", 0, nameless).id(), of("c", 0, nameless).id());
    }

    #[test]
    fn no_uuid_is_refused_and_none_is_taken_for_a_name_of_ours() {
        let odd =
            [r#""~b.b.0""#, r#""has space""#, r#""\u0000""#, r#""ü""#, &format!("{:?}", "x".repeat(1000))];
        let mut ids: Vec<EntryId> =
            odd.iter().map(|uuid| of("b", 9, &format!(r#"{{"uuid":{uuid}}}"#)).id().clone()).collect();
        ids.push(of("b", 0, "{}").id().clone());
        ids.push(of("b", 1, r#"{"uuid":3}"#).id().clone());
        ids.push(of("b", 2, r#"{"uuid":""}"#).id().clone());
        ids.push(of("b", 3, r#"{"uuid":"a","uuid":"b"}"#).id().clone());
        let all = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), all);
    }

    #[test]
    fn an_entry_keeps_its_bytes_but_for_line_breaks_between_members() {
        let odd = "{ \"b\": 1.0e0, \"a\" : \"\\ud83d\\n\",\r\n\t\"z\":[ ] }";
        assert_eq!(of("b", 0, odd).as_str(), odd.replace("\r\n", "  "));
    }
}
