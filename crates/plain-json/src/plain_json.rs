//! JSON as programs nearly always write it, read by hand.
//!
//! Most of the time that serde takes for a line of a conversation goes into what it provides for and hardly any line has:
//! escaped names, members of any type, white space of any kind. This reader takes the others in half the time, and never
//! decides anything alone: what it takes is JSON that means the same to serde, and whatever it does not expect is `None`,
//! upon which its caller reads the line with serde from its beginning.

use std::borrow::Cow;

use memchr::memchr2;
use serde::Deserialize as _;
use serde_json::value::RawValue;

/// How deep a value may be that is skipped: nobody knows a line that comes near, and each level takes some stack.
const DEPTH: usize = 64;
/// How much room a text with an escape gets besides twice what stands before that: most are short.
const SHORT: usize = 64;

/// A JSON text without bytes that no JSON text may have, and without white space but for blanks behind commas and colons;
/// and what of it was not taken yet.
#[derive(Debug)]
pub struct PlainJson<'a> {
    text: &'a str,
    rest: &'a [u8],
}

impl<'a> PlainJson<'a> {
    /// Begins to read a line.
    pub fn of(line: &'a [u8]) -> Option<Self> {
        // Looking at all bytes is quicker than stopping at the first that matters.
        let has_controls = line.iter().fold(false, |has, byte| has | (*byte < b' '));
        let text = simdutf8::basic::from_utf8(line).ok()?;
        (!has_controls).then_some(Self { text, rest: line })
    }

    /// Takes an object; `take` takes the value that a name stands for.
    #[inline]
    pub fn object(&mut self, mut take: impl FnMut(&mut Self, &'a [u8]) -> Option<()>) -> Option<()> {
        self.byte(b'{')?;
        if self.byte(b'}').is_some() {
            return Some(());
        }
        loop {
            self.byte(b'"')?;
            // Names are so short that calling `memchr2` would take longer.
            let length = self.rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
            let name = self.take(length)?;
            self.byte(b'"')?;
            self.byte(b':')?;
            self.skip_blanks();
            take(self, name)?;
            if self.byte(b',').is_none() {
                return self.byte(b'}');
            }
            self.skip_blanks();
        }
    }

    /// Takes an array; `take` takes each of its elements.
    #[inline]
    pub fn array(&mut self, mut take: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.byte(b'[')?;
        if self.byte(b']').is_some() {
            return Some(());
        }
        loop {
            take(self)?;
            if self.byte(b',').is_none() {
                return self.byte(b']');
            }
            self.skip_blanks();
        }
    }

    /// Returns the first byte of what comes next: it tells of what type that is.
    pub fn first(&self) -> Option<u8> {
        self.rest.first().copied()
    }

    /// Takes a string without escapes.
    #[inline]
    pub fn string(&mut self) -> Option<&'a str> {
        self.byte(b'"')?;
        let text = self.plain()?;
        self.byte(b'"')?;
        Some(text)
    }

    /// Takes a string, whatever escapes it has but that of half a character.
    pub fn text(&mut self) -> Option<Cow<'a, str>> {
        self.byte(b'"')?;
        let plain = self.plain()?;
        if self.byte(b'"').is_some() {
            return Some(Cow::Borrowed(plain));
        }
        let mut text = String::with_capacity(2 * plain.len() + SHORT);
        text.push_str(plain);
        while self.byte(b'"').is_none() {
            let (means, length) = meaning(self.rest)?;
            text.push(means);
            self.take(length)?;
            text.push_str(self.plain()?);
        }
        Some(Cow::Owned(text))
    }

    /// Takes a `null`, if it is one.
    pub fn null(&mut self) -> Option<()> {
        self.word(b"null")
    }

    /// Takes a string without escapes, or a `null`.
    pub fn string_or_null(&mut self) -> Option<Option<&'a str>> {
        match self.word(b"null") {
            Some(()) => Some(None),
            None => self.string().map(Some),
        }
    }

    /// Takes a `true` or a `false`.
    pub fn flag(&mut self) -> Option<bool> {
        self.word(b"true").map(|()| true).or_else(|| self.word(b"false").map(|()| false))
    }

    /// Takes any value but `null`, as it stands.
    pub fn value(&mut self) -> Option<&'a str> {
        if self.first()? == b'n' {
            return None;
        }
        let begin = self.at();
        self.skip()?;
        self.text.get(begin..self.at())
    }

    /// The same in another form. Only serde can make one of these, so this is its work.
    pub fn raw(&mut self) -> Option<&'a RawValue> {
        if matches!(self.rest.first()?, b' ' | b'n') {
            return None;
        }
        let mut rest = serde_json::Deserializer::from_str(self.text.get(self.at()..)?);
        let raw = <&RawValue>::deserialize(&mut rest).ok()?;
        self.take(raw.get().len())?;
        Some(raw)
    }

    /// Takes any value.
    #[inline]
    pub fn skip(&mut self) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.skip_string(),
            _ => self.skip_within(DEPTH),
        }
    }

    /// Returns whether everything was taken.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    fn skip_within(&mut self, depth: usize) -> Option<()> {
        match self.rest.first()? {
            b'"' => self.skip_string(),
            b'{' => {
                let depth = depth.checked_sub(1)?;
                self.object(|json, _| json.skip_within(depth))
            }
            b'[' => {
                let depth = depth.checked_sub(1)?;
                self.array(|json| json.skip_within(depth))
            }
            b't' => self.word(b"true"),
            b'f' => self.word(b"false"),
            b'n' => self.word(b"null"),
            _ => self.skip_number(),
        }
    }

    /// Takes the characters up to the end of a string, or to the next escape.
    #[inline]
    fn plain(&mut self) -> Option<&'a str> {
        let begin = self.at();
        self.take(memchr2(b'"', b'\\', self.rest)?)?;
        self.text.get(begin..self.at())
    }

    #[inline]
    fn skip_string(&mut self) -> Option<()> {
        self.byte(b'"')?;
        loop {
            self.take(memchr2(b'"', b'\\', self.rest)?)?;
            let escape = match self.rest {
                [b'"', ..] => return self.byte(b'"'),
                [_, b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => 2,
                [_, b'u', digits @ ..] if digits.get(..4)?.iter().all(u8::is_ascii_hexdigit) => 6,
                _ => return None,
            };
            self.take(escape)?;
        }
    }

    /// Takes a number without an exponent.
    fn skip_number(&mut self) -> Option<()> {
        let _ = self.byte(b'-');
        if self.byte(b'0').is_none() {
            self.skip_digits()?;
        }
        match self.byte(b'.') {
            Some(()) => self.skip_digits(),
            None => Some(()),
        }
    }

    fn skip_digits(&mut self) -> Option<()> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.take(count).filter(|digits| !digits.is_empty()).map(drop)
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let [b' ', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.split_first().filter(|(first, _)| **first == byte)?.1;
        Some(())
    }

    fn word(&mut self, word: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(word)?;
        Some(())
    }

    #[inline]
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(taken)
    }

    /// Returns where the rest begins.
    #[inline]
    fn at(&self) -> usize {
        self.text.len() - self.rest.len()
    }
}

/// Returns what an escape means, and how long it is.
fn meaning(escape: &[u8]) -> Option<(char, usize)> {
    Some((
        match escape.get(1)? {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => return unicode(escape),
            itself @ (b'"' | b'\\' | b'/') => char::from(*itself),
            _ => return None,
        },
        2,
    ))
}

/// Returns the character that an escape by number means, which may take two of them, and how long it is.
fn unicode(escape: &[u8]) -> Option<(char, usize)> {
    let digit = |unit, digit: &u8| Some(unit << 4 | char::from(*digit).to_digit(16)?);
    let unit = |at: usize| escape.get(at..at + 4)?.iter().try_fold(0, digit);
    let first = unit(2)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first)?, 6));
    }
    let second =
        unit(8).filter(|second| escape.get(6..8) == Some(b"\\u") && (0xDC00..0xE000).contains(second))?;
    let both = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
    Some((char::from_u32(both)?, 12))
}

/// Fills in a member; `None` if it was there before: which one counts is not decided here.
pub fn once<T>(member: &mut Option<T>, value: T) -> Option<()> {
    member.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;

    use super::*;

    fn is_taken(json: &[u8]) -> bool {
        PlainJson::of(json).is_some_and(|mut json| json.skip().is_some() && json.is_over())
    }

    #[test]
    fn what_is_plain_is_taken() {
        for json in [
            "{}",
            "[]",
            "[[],{}]",
            "\"\"",
            "\"ü \u{7f}🧵\"",
            "0",
            "-0",
            "10.05",
            "-7",
            "true",
            "false",
            "null",
            r#"{"a":[1,"\"\\\/\b\f\n\r\t\u00fF",{"a":null,"a":2}],"":false}"#,
            r#"{"a": [1,  "x"], "b": {}}"#,
        ] {
            assert!(is_taken(json.as_bytes()), "{json}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left() {
        let deep = "[".repeat(DEPTH + 1) + &"]".repeat(DEPTH + 1);
        for json in [
            "",
            "{",
            "[",
            "[1",
            "[1,]",
            "[,1]",
            "[1 ]",
            "[ 1]",
            "{ }",
            "[1,]",
            "[1, ]",
            "{\"a\" :1}",
            " 1",
            "1 ",
            "{}}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "01",
            "-",
            "--1",
            "+1",
            ".5",
            "5.",
            "1e5",
            "1E+5",
            "nul",
            "nulll",
            "True",
            "\"",
            "\"\\\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\u12g4\"",
            "\"\n\"",
            "\"\0\"",
            r#"{"\u0061":1}"#,
            &deep,
        ] {
            assert!(!is_taken(json.as_bytes()), "{json}");
        }
        assert!(!is_taken(b"\"\xff\""));
        assert!(is_taken(&deep.as_bytes()[1..=2 * DEPTH]));
    }

    #[test]
    fn a_text_means_what_it_means_to_serde_unless_it_has_half_a_character() {
        let taken = |json: &str| PlainJson::of(json.as_bytes()).unwrap().text().map(Cow::into_owned);
        for json in [
            r#""""#,
            r#""plain ü""#,
            r#""\"\\\/\b\f\n\r\t\u00fC\u2028 ü\n""#,
            r#""\n""#,
            r#""a\u0000""#,
            r#""\ud83e\uddf5x""#,
        ] {
            assert_eq!(taken(json), Some(serde_json::from_str::<String>(json).unwrap()), "{json}");
        }
        for json in [
            r#""\ud83d""#,
            r#""\ud83e\u0041""#,
            r#""\ud83e\ud83e""#,
            r#""\ud83exxxxxx""#,
            r#""\uDDf5x""#,
            "7",
            "\"x",
        ] {
            assert_eq!(taken(json), None, "{json}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 40, 5, |inner| {
            let members = proptest::collection::vec((".{0,4}", inner.clone()), 0..5);
            prop_oneof![
                proptest::collection::vec(inner, 0..5).prop_map(Value::from),
                members.prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// One byte more, less or other than what serde writes is taken only if serde takes it too.
        #[test]
        fn whatever_is_taken_is_json(value in any_json(), at: prop::sample::Index, byte: u8, how in 0..4) {
            let mut json = value.to_string().into_bytes();
            let at = at.index(json.len());
            match how {
                0 => json[at] = byte,
                1 => json.insert(at, byte),
                2 => drop(json.remove(at)),
                _ => {}
            }
            if let Some(text) = PlainJson::of(&json).and_then(|mut json| json.text().filter(|_| json.is_over())) {
                prop_assert_eq!(serde_json::from_slice::<String>(&json).unwrap(), text.into_owned());
            }
            if is_taken(&json) {
                prop_assert!(serde_json::from_slice::<IgnoredAny>(&json).is_ok());
                prop_assert!(std::str::from_utf8(&json).is_ok());
            }
        }
    }
}
