//! Pages of lists that are made whole, each by the keys of its items: what comes or goes meanwhile moves nothing.

use jiff::Timestamp;

/// Returns a key by which what is newer comes first.
pub(crate) fn newest_first(at: Timestamp, id: &str) -> String {
    let left = i128::from(i64::MAX) - at.as_nanosecond();
    format!("{:019}.{id}", left.max(0))
}

/// Returns the items behind a cursor, as many as are wanted, and where the next page begins; all of them if nobody says
/// how many. Items lie in the order of their keys.
pub(crate) fn page<T>(
    mut items: Vec<T>,
    key: impl Fn(&T) -> String,
    limit: Option<u32>,
    cursor: Option<&str>,
) -> (Vec<T>, Option<String>) {
    if let Some(cursor) = cursor {
        items.drain(..items.partition_point(|item| key(item).as_str() <= cursor));
    }
    let limit = limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let is_more = items.len() > limit;
    items.truncate(limit);
    let next = items.last().filter(|_| is_more).map(key);
    (items, next)
}
