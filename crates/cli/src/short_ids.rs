//! Ids short enough to read and to type, long enough to mean one thing.

/// Nothing shorter is shown, so that an id stays unique for a while.
const SHORTEST: usize = 8;
/// An id up to this length was chosen by a person and is shown whole.
const WHOLE: usize = 16;

/// All ids of one kind, each of which can be shortened.
#[derive(Debug, Default)]
pub(crate) struct ShortIds(Vec<String>);

impl ShortIds {
    pub(crate) fn among<T: ToString>(ids: impl IntoIterator<Item = T>) -> Self {
        let mut ids: Vec<String> = ids.into_iter().map(|id| id.to_string()).collect();
        ids.sort_unstable();
        ids.dedup();
        Self(ids)
    }

    /// Returns the shortest beginning of an id that no other id shares.
    pub(crate) fn of<'a>(&self, id: &'a str) -> &'a str {
        if id.len() <= WHOLE {
            return id;
        }
        let (before, at_or_after) = self.0.split_at(self.0.partition_point(|other| other.as_str() < id));
        let after = at_or_after.iter().find(|other| *other != id);
        let shared = before.last().into_iter().chain(after).map(|other| common(id, other)).max();
        let mut length = SHORTEST.max(shared.map_or(0, |shared| shared + 1)).min(id.len());
        // A beginning that ends in a dash looks cut off.
        while length < id.len() && id[..length].ends_with('-') {
            length += 1;
        }
        &id[..length]
    }
}

fn common(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_id_is_the_shortest_beginning_that_no_other_has() {
        let ids = ["0198f2c4-1a2b-7000-8000-000000000001", "0198f2c4-1a2b-7000-9000-000000000001"];
        let short = ShortIds::among(ids);
        assert_eq!(short.of(ids[0]), "0198f2c4-1a2b-7000-8");
        assert_eq!(ShortIds::among(&ids[..1]).of(ids[0]), "0198f2c4");
        assert_eq!(ShortIds::among(ids).of("chosen"), "chosen");
    }

    #[test]
    fn a_short_id_does_not_end_in_a_dash() {
        let ids = ["0198f2c4-1a2b-7000-8000-000000000001", "0198f2c41111-7000-9000-000000000001"];
        assert_eq!(ShortIds::among(ids).of(ids[0]), "0198f2c4-1");
    }
}
