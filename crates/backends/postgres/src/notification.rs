//! Hints as the server carries them: names of sessions with spaces between, or a star for everything.

use rethread_store::backend::Hint;

/// The channel of this schema. Each database has channels of its own.
pub(crate) const CHANNEL: &str = "rethread_appended";

/// What a notification can carry: one byte less than the server's own limit, which it has to be below.
const ROOM: usize = 7999;

const EVERYTHING: &str = "*";

/// Returns hints as notifications, of which as few as there can be.
pub(crate) fn write(hints: &[Hint]) -> Vec<String> {
    let mut payloads: Vec<String> = Vec::new();
    for hint in hints {
        let word = match hint {
            Hint::Session(session) => session.as_str(),
            Hint::Everything => EVERYTHING,
        };
        match payloads.last_mut() {
            Some(payload) if payload.len() + 1 + word.len() <= ROOM => {
                payload.push(' ');
                payload.push_str(word);
            }
            _ => payloads.push(word.to_owned()),
        }
    }
    payloads
}

/// Returns the hints of a notification. Anybody may send one, so what makes no sense is none.
pub(crate) fn read(payload: &str) -> impl Iterator<Item = Hint> {
    payload.split(' ').filter_map(|word| match word {
        EVERYTHING => Some(Hint::Everything),
        name => name.parse().ok().map(Hint::Session),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_in_as_many_payloads_as_it_takes_is_read_again() {
        // The longest names there are.
        let name = |number: usize| format!("{number:0>128}").parse().unwrap();
        let hints: Vec<_> = (0..200).map(|number| Hint::Session(name(number))).collect();
        let payloads = write(&hints);
        assert_eq!(payloads.iter().map(String::len).collect::<Vec<_>>(), [7997, 7997, 7997, 1805]);
        assert_eq!(payloads.iter().flat_map(|payload| read(payload)).collect::<Vec<_>>(), hints);
        assert_eq!(write(&[Hint::Everything]), ["*"]);
        assert_eq!(read("*").collect::<Vec<_>>(), [Hint::Everything]);
    }

    #[test]
    fn what_is_no_name_is_dropped() {
        let read: Vec<_> = read("  a ../b .c d\u{e9} e;f ** -g").collect();
        assert_eq!(read, ["a", "-g"].map(|name| Hint::Session(name.parse().unwrap())));
        assert!(super::read("").next().is_none());
    }
}
