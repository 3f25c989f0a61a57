//! JSON that is almost JSON: bytes that are no UTF-8, and halves of characters.
//!
//! A program that cuts a text at a UTF-16 unit leaves half a character behind, and writes it as an escape that stands for
//! nothing (`\ud83d`). Claude Code does.

/// What stands for what cannot be told any more, as an escape.
const REPLACEMENT: &[u8] = br"\ufffd";

/// Returns the text with everything replaced that no reader of JSON would take; `None` if there is nothing of the kind.
pub(crate) fn mend(json: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(json);
    let mended = whole_characters(text.as_bytes());
    match mended {
        // Only ASCII was put in the place of ASCII.
        Some(mended) => Some(String::from_utf8_lossy(&mended).into_owned()),
        None if text.as_bytes() == json => None,
        None => Some(text.into_owned()),
    }
}

/// Replaces halves of characters; `None` if there is none.
fn whole_characters(text: &[u8]) -> Option<Vec<u8>> {
    let mut mended: Option<Vec<u8>> = None;
    let (mut at, mut copied) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &text[at..]) {
        at += found;
        match unit(&text[at..]) {
            Some(0xd800..=0xdbff) if matches!(unit(&text[at + 6..]), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                let mended = mended.get_or_insert_default();
                mended.extend_from_slice(&text[copied..at]);
                mended.extend_from_slice(REPLACEMENT);
                at += 6;
                copied = at;
            }
            // The character after a backslash never begins an escape of its own.
            _ => at = (at + 2).min(text.len()),
        }
    }
    mended.map(|mut mended| {
        mended.extend_from_slice(&text[copied..]);
        mended
    })
}

/// Returns the UTF-16 unit of an escape that a text begins with.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(br"\u")?.get(..4)?;
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_of_characters_are_replaced_and_whole_ones_are_kept() {
        for (broken, whole) in [
            (r#""a\ud83d""#, r#""a\ufffd""#),
            (r#""\ud83d\ud83d\ude00\ude00b""#, r#""\ufffd\ud83d\ude00\ufffdb""#),
            (r#""\\ud83d\ud83dx""#, r#""\\ud83d\ufffdx""#),
            (r#""\ud83d\n\u00e9""#, r#""\ufffd\n\u00e9""#),
        ] {
            assert_eq!(mend(broken.as_bytes()).as_deref(), Some(whole), "{broken}");
        }
        for fine in [r#""\ud83d\ude00""#, r#""\\ud83d""#, r#""\u+12f""#, r#""\"#, r#""\u12"#, "\"é\""] {
            assert_eq!(mend(fine.as_bytes()), None, "{fine}");
        }
        assert_eq!(mend(b"\"a\xff\\udc00\"").as_deref(), Some("\"a\u{fffd}\\ufffd\""));
    }
}
