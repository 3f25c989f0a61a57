//! Text of others made fit for a terminal: what was said in a session must not command it.

use unicode_width::UnicodeWidthChar;

/// Returns text without anything that a terminal would obey; lines stay lines.
pub(crate) fn harmless(text: &str) -> String {
    text.chars()
        .filter(|&char| char != '\r')
        .map(|char| if commands(char) { '\u{fffd}' } else { char })
        .collect()
}

/// Returns text as one line of at most so many columns, cut off with an ellipsis.
pub(crate) fn one_line(text: &str, width: usize) -> String {
    let words = text.split_whitespace().enumerate();
    let chars = words.flat_map(|(index, word)| (index > 0).then_some(' ').into_iter().chain(word.chars()));
    let (mut line, mut columns) = (String::new(), 0);
    for char in chars.map(|char| if commands(char) { '\u{fffd}' } else { char }) {
        columns += char.width().unwrap_or(0);
        if columns > width {
            while !line.is_empty() && columns_of(&line) >= width {
                line.pop();
            }
            return if width == 0 { line } else { line + "…" };
        }
        line.push(char);
    }
    line
}

/// Returns text with everything in it that nobody sees written out: whoever decides about it has to see all of it.
pub(crate) fn seen(text: &str) -> String {
    let seen = text.chars().map(|letter| match rethread_keeper::is_hidden(letter) {
        true => format!("\\u{{{:04x}}}", u32::from(letter)),
        false => letter.to_string(),
    });
    seen.collect()
}

/// Returns how many columns text takes.
pub(crate) fn columns_of(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Returns a number of things in words: `1 entry`, `2 entries`.
pub(crate) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match (number, what.strip_suffix('y')) {
        (1, _) => format!("1 {what}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {what}s"),
    }
}

/// Control characters, and those that turn the direction of what follows.
fn commands(char: char) -> bool {
    let turns = matches!(char,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    turns || (char.is_control() && char != '\n' && char != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_to_its_columns_not_its_bytes() {
        assert_eq!(one_line("fix  the\n parser", 80), "fix the parser");
        assert_eq!(one_line("fix the parser", 8), "fix the…");
        assert_eq!(one_line("日本語", 6), "日本語");
        assert_eq!(one_line("日本語", 5), "日本…");
        assert_eq!(one_line("日本語", 4), "日…");
        assert_eq!(one_line("abc", 0), "");
    }

    #[test]
    fn what_was_said_cannot_command_the_terminal() {
        assert_eq!(harmless("a\x1b[2Jb\r\nc\u{202e}\u{200f}\t"), "a\u{fffd}[2Jb\nc\u{fffd}\u{fffd}\t");
        assert_eq!(one_line("\x1b]0;x\x07", 80), "\u{fffd}]0;x\u{fffd}");
    }
    #[test]
    fn what_nobody_sees_is_written_out() {
        assert_eq!(seen("rm\u{200b} -rf\u{202e} x\n\tü"), "rm\\u{200b} -rf\\u{202e} x\n\tü");
    }
}
