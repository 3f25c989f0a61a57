//! Characters that nobody sees: in what a person is asked to allow they must not hide.

/// Returns whether a character is seen by nobody, or turns text around; the page marks the same ones. The ends of lines
/// and tabs are none of them.
pub fn is_hidden(letter: char) -> bool {
    let is_layout = matches!(letter, '\n' | '\t' | '\r');
    let is_invisible = matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    is_invisible || (letter.is_control() && !is_layout)
}
