//! What a private key looks like, in a file, in JSON, in JSON within JSON, and in the output of a tool.

/// What it is called, as people see it.
pub(crate) const KIND: &str = "private-key";

/// `RSA PRIVATE KEY` and the like.
macro_rules! name {
    () => {
        r"(?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?"
    };
}

/// A letter of base64, which JSON may escape, once for every level.
macro_rules! letter {
    () => {
        r"(?:[A-Za-z0-9+/=]|\\+(?:/|u002[bBfF]|u003[dD]))"
    };
}

/// The end of a line, also an escaped one, and blanks before it.
macro_rules! line_end {
    () => {
        concat!(
            r"(?:[ \t]|\\+t)*(?:(?:\r|\\+r|\\+u000[dD])?(?:\\*\n|\\+n|\\+u000[aA])",
            r"|\r|\\+r|\\+u000[dD])",
        )
    };
}

/// What tools put before a line: blanks, and its number.
macro_rules! number {
    () => {
        r"(?:[ \t]|\\+t)*(?:[0-9]{1,7}(?:(?u:→)|\\+u2192|\t|\\+t| ?(?:[:|]|(?u:│)) ?| {1,4}))?"
    };
}

/// The same, and the marks of quotes, comments and differences.
macro_rules! margin {
    () => {
        concat!(number!(), r"[ >#|*+-]{0,8}")
    };
}

/// What may stand before the key itself, such as `Version: GnuPG v1.4_2`.
macro_rules! header {
    () => {
        concat!(
            r"(?:Version|Comment|Hash|Charset|MessageID|Subject|Proc-Type|DEK-Info|X-[A-Za-z-]+)",
            r":(?:(?u:[^\x22\\\r\n])|\\+/)*",
        )
    };
}

/// A line that is too long for a word.
macro_rules! long_line {
    () => {
        concat!(letter!(), "{16,}")
    };
}

/// The last line may be a short one, and the sum of a PGP block is. A word of other text may be taken for it.
macro_rules! last_line {
    () => {
        concat!(
            concat!("(?:", line_end!(), number!(), r"|[ \t]+)", letter!(), "+"),
            concat!("(?:", line_end!(), number!(), "=", letter!(), "{0,4})?"),
        )
    };
}

/// From the first line to the last, whatever is between them; where there is no last one, as far as a key may go.
///
/// What is between never has the first line of something else, so that no text is searched twice for an end that is not
/// there. A backslash takes the next letter along: then no escape is torn, and a quote is only passed if it is escaped.
pub(crate) const PATTERN: &str = concat!(
    r"(?<secret>-----BEGIN ",
    name!(),
    r"-----(?:",
    r"(?:-{0,4}(?:(?u:[^\x22\\-])|\\(?us:.))|-{5,}(?:(?u:[^\x22\\B-])|\\(?us:.)))*?-----END ",
    name!(),
    r"-----|",
    // Headers end with an empty line.
    concat!("(?:(?:", line_end!(), margin!(), header!(), ")+(?:", line_end!(), margin!(), ")?)?"),
    concat!("(?:(?:(?:", line_end!(), margin!(), r"|[ \t]+)", long_line!(), ")+", "(?:", last_line!(), ")?"),
    // Nearly every key begins with one of these, and then it may be cut off on the line that says what it is.
    concat!("|", line_end!(), number!(), letter!(), r"+|[ \t]+(?:MI|b3B)", letter!(), "*)?"),
    r"))",
);

/// The rest of a key whose lines are strings of their own, as in a JSON array: one of them, right behind the one before.
///
/// `last` is a short line, which counts only behind a long one; `end` is the last of all.
pub(crate) const NEXT_STRING: &str = concat!(
    r"^(?-u)(?:",
    line_end!(),
    r")?\x22\s*,\s*\x22(?<secret>",
    number!(),
    "(?:(?<end>-----END ",
    name!(),
    "-----)|(?<header>",
    header!(),
    ")|(?<long>",
    long_line!(),
    ")|(?<last>",
    letter!(),
    "*)))(?:",
    line_end!(),
    r")?\x22",
);
