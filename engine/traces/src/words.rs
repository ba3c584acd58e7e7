//! Words and numbers at the start of a line, as the tools that print block events separate them.

use crate::event::Device;

/// Digits at the start as a number, and what follows.
pub(crate) fn leading_number(text: &[u8]) -> Option<(u64, &[u8])> {
    let mut value: u64 = 0;
    let mut length = 0;
    for &byte in text {
        if !byte.is_ascii_digit() {
            break;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(byte - b'0'))?;
        length += 1;
    }
    (length > 0).then(|| (value, &text[length..]))
}

/// The next word and what follows it; `None` where there is none.
pub(crate) fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let length = text.iter().position(|&byte| byte == b' ').unwrap_or(text.len());
    (length > 0).then(|| text.split_at(length))
}

pub(crate) fn skip_spaces(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|&&byte| byte == b' ' || byte == b'\t').count();
    &text[spaces..]
}

/// `maj,min`
pub(crate) fn device(text: &[u8]) -> Option<(Device, &[u8])> {
    let (major, rest) = leading_number(text)?;
    let (minor, rest) = leading_number(rest.strip_prefix(b",")?)?;
    let device = Device { major: u32::try_from(major).ok()?, minor: u32::try_from(minor).ok()? };
    Some((device, rest))
}

/// `<- (maj,min) sector`
pub(crate) fn origin(rest: &[u8]) -> Option<(Device, u64)> {
    let rest = skip_spaces(rest.strip_prefix(b"<-")?).strip_prefix(b"(")?;
    let (from, rest) = device(rest)?;
    let (sector, _) = leading_number(skip_spaces(rest.strip_prefix(b")")?))?;
    Some((from, sector))
}
