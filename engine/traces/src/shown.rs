//! What stands in a file as messages show it.

/// Up to `bytes_max` bytes as text: what is no text or cannot be printed is replaced.
pub(crate) fn shown(bytes: &[u8], bytes_max: usize) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(bytes_max)]);
    let printable = |char: char| if char.is_control() { char::REPLACEMENT_CHARACTER } else { char };
    let mut shown: String = text.chars().map(printable).collect();
    if bytes.len() > bytes_max {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_or_cannot_be_printed_is_shown_in_part() {
        assert_eq!(shown(b"abc", 3), "abc");
        assert_eq!(shown(b"abcd", 3), "abc...");
        assert_eq!(shown(b"a\0\x1b[31m\xff", 40), "a\u{fffd}\u{fffd}[31m\u{fffd}");
    }
}
