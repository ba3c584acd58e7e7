//! Decimal numbers read exactly, without a detour through floating point.

/// Why a cell is no number that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotANumber {
    Malformed,
    Negative,
    TooLarge,
    /// Not a whole number of the unit that is kept.
    Fraction,
}

impl NotANumber {
    /// What to say of the value, after it.
    pub fn reason(self) -> &'static str {
        match self {
            NotANumber::Malformed => "is no number",
            NotANumber::Negative => "is negative",
            NotANumber::TooLarge => "is too large",
            NotANumber::Fraction => "is no whole number",
        }
    }
}

/// A number times ten to the `scale`, to the nearest whole: `1.5` with scale 3 is 1500.
pub(crate) fn scaled(cell: &[u8], scale: i32) -> Result<i64, NotANumber> {
    read(cell, scale).map(|(value, _)| value)
}

/// A whole number; `4096.0` is one.
pub(crate) fn whole(cell: &[u8]) -> Result<i64, NotANumber> {
    match read(cell, 0)? {
        (value, true) => Ok(value),
        (_, false) => Err(NotANumber::Fraction),
    }
}

/// The value, and whether nothing was rounded away.
fn read(cell: &[u8], scale: i32) -> Result<(i64, bool), NotANumber> {
    let negative = cell.starts_with(b"-");
    let number = cell.strip_prefix(b"-").or(cell.strip_prefix(b"+")).unwrap_or(cell);
    let (mantissa, exponent) = split_exponent(number)?;
    let (digits, decimals) = digits(mantissa)?;
    if negative && digits > 0 {
        return Err(NotANumber::Negative);
    }
    if digits == 0 {
        return Ok((0, true));
    }
    let shift = i64::from(exponent) + i64::from(scale) - decimals;
    let (value, exact) = shifted(digits, shift).ok_or(NotANumber::TooLarge)?;
    Ok((i64::try_from(value).map_err(|_| NotANumber::TooLarge)?, exact))
}

fn split_exponent(number: &[u8]) -> Result<(&[u8], i32), NotANumber> {
    let Some(at) = number.iter().position(|byte| matches!(byte, b'e' | b'E')) else {
        return Ok((number, 0));
    };
    let text = std::str::from_utf8(&number[at + 1..]).map_err(|_| NotANumber::Malformed)?;
    let exponent: i32 = text.parse().map_err(|_| NotANumber::Malformed)?;
    Ok((&number[..at], exponent))
}

/// All digits as one number, and how many of them stand after the point.
fn digits(mantissa: &[u8]) -> Result<(u128, i64), NotANumber> {
    let (mut value, mut decimals, mut after_point, mut any) = (0_u128, 0_i64, false, false);
    for &byte in mantissa {
        match byte {
            b'0'..=b'9' => {
                any = true;
                // Digits after the point beyond what 128 bits hold are far below a nanosecond.
                match value.checked_mul(10).and_then(|value| value.checked_add(u128::from(byte - b'0'))) {
                    Some(next) => value = next,
                    None if after_point => continue,
                    None => return Err(NotANumber::TooLarge),
                }
                decimals += i64::from(after_point);
            }
            b'.' if !after_point => after_point = true,
            _ => return Err(NotANumber::Malformed),
        }
    }
    if any {
        Ok((value, decimals))
    } else {
        Err(NotANumber::Malformed)
    }
}

/// `value` times ten to the `shift`, rounded half up; `None` where 128 bits do not hold it.
fn shifted(value: u128, shift: i64) -> Option<(u128, bool)> {
    let power = u32::try_from(shift.unsigned_abs()).unwrap_or(u32::MAX);
    let factor = 10_u128.checked_pow(power);
    if shift >= 0 {
        return Some((value.checked_mul(factor?)?, true));
    }
    match factor {
        Some(factor) => {
            let (quotient, rest) = (value / factor, value % factor);
            Some((quotient + u128::from(rest >= factor - rest), rest == 0))
        }
        None => Some((0, false)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn fractions_are_kept_to_the_nanosecond() {
        assert_eq!(scaled(b"0.000000001", 9), Ok(1));
        assert_eq!(scaled(b"1.1", 9), Ok(1_100_000_000));
        assert_eq!(scaled(b"12816637200306162.9e1", 0), Ok(128_166_372_003_061_629));
        assert_eq!(scaled(b"9007199254740993.5", 3), Ok(9_007_199_254_740_993_500));
        assert_eq!(scaled(b"1e-06", 9), Ok(1000));
        assert_eq!(scaled(b"+.5", 3), Ok(500));
        assert_eq!(scaled(b"5.", 0), Ok(5));
    }

    #[test]
    fn what_is_finer_than_a_nanosecond_is_rounded() {
        assert_eq!(scaled(b"0.4999", 0), Ok(0));
        assert_eq!(scaled(b"0.5", 0), Ok(1));
        assert_eq!(scaled(b"1e-60", 9), Ok(0));
        assert_eq!(scaled(b"0.3333333333333333333333333333333333333333333333333", 9), Ok(333_333_333));
    }

    #[test]
    fn what_is_no_usable_number_says_why() {
        for text in ["", "-", ".", "1.2.3", "abc", "0x10", "1e", "1e1.5", "nan", "inf", "1 2", "1,5"] {
            assert_eq!(scaled(text.as_bytes(), 0), Err(NotANumber::Malformed), "{text}");
        }
        assert_eq!(scaled(b"-1", 3), Err(NotANumber::Negative));
        assert_eq!(scaled(b"-0.0", 3), Ok(0));
        assert_eq!(scaled(b"9223372036854775808", 0), Err(NotANumber::TooLarge));
        assert_eq!(scaled(b"1e300", 0), Err(NotANumber::TooLarge));
        assert_eq!(whole(b"4096.0"), Ok(4096));
        assert_eq!(whole(b"4096.5"), Err(NotANumber::Fraction));
    }

    proptest! {
        #[test]
        fn every_time_is_read_back_exactly(time_ns in 0..i64::MAX, digits in 0_u32..=9) {
            let unit = 10_i64.pow(digits);
            let width = digits as usize;
            let text = if digits == 0 {
                time_ns.to_string()
            } else {
                format!("{}.{:0width$}", time_ns / unit, time_ns % unit)
            };
            prop_assert_eq!(scaled(text.as_bytes(), digits as i32), Ok(time_ns));
        }

        #[test]
        fn no_cell_panics(cell in proptest::collection::vec(any::<u8>(), 0..60), scale in 0..=9) {
            let _ = scaled(&cell, scale);
        }
    }
}
