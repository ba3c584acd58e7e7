//! Sizes as people write them: `4GiB`, `960 GB`, `1.5TiB`, `4096`.

/// Each unit in lower case, with its bytes. Decimal units are what drives are sold in, binary ones what memory is.
const UNITS: [(&str, u64); 12] = [
    ("", 1),
    ("b", 1),
    ("kib", 1 << 10),
    ("mib", 1 << 20),
    ("gib", 1 << 30),
    ("tib", 1 << 40),
    ("pib", 1 << 50),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
    ("tb", 1_000_000_000_000),
    ("pb", 1_000_000_000_000_000),
];

/// Why a text is not a size.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// No number, or a unit that is not one.
    #[error("'{0}' is not a size: write a number and a unit, such as 4GiB (binary) or 960GB (decimal)")]
    NotASize(String),
    /// `G` may mean either.
    #[error(
        "'{text}' may mean {number}{letter}iB (binary) or {number}{letter}B (decimal): write one of these"
    )]
    Ambiguous {
        /// As written.
        text: String,
        /// Its number.
        number: String,
        /// Its unit, in upper case.
        letter: String,
    },
    /// The fraction does not come to whole bytes.
    #[error("'{0}' is not a whole number of bytes")]
    Fraction(String),
    /// Beyond what an offset can be.
    #[error("'{0}' is more than 8 EiB, the most that an offset can reach")]
    TooLarge(String),
    /// Nothing to test.
    #[error("'{0}' is no bytes at all: give a size above zero")]
    Zero(String),
}

/// The number of bytes that a text means. Exact: a decimal fraction is allowed where it comes to whole bytes.
///
/// # Errors
/// When the text is not a size, is ambiguous (`4G`), zero, or beyond 2^63 - 1 bytes.
pub fn parse_size_bytes(text: &str) -> Result<u64, SizeError> {
    let trimmed = text.trim();
    let digits = trimmed.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    if ["k", "m", "g", "t", "p"].contains(&unit.as_str()) {
        let (number, letter) = (number.to_string(), unit.to_ascii_uppercase());
        return Err(SizeError::Ambiguous { text: text.into(), number, letter });
    }
    let not_a_size = || SizeError::NotASize(text.into());
    let unit_bytes = UNITS.iter().find(|(name, _)| *name == unit).ok_or_else(not_a_size)?.1;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || fraction.contains('.') || fraction.len() > 15 {
        return Err(not_a_size());
    }
    let too_large = || SizeError::TooLarge(text.into());
    // All digits are parsed as one integer and divided by a power of ten, so that nothing is rounded on the way.
    let scaled: u128 = format!("{whole}{fraction}").parse().map_err(|_| too_large())?;
    let divisor = 10_u128.pow(fraction.len() as u32);
    let product = scaled.checked_mul(u128::from(unit_bytes)).ok_or_else(too_large)?;
    if product % divisor != 0 {
        return Err(SizeError::Fraction(text.into()));
    }
    match u64::try_from(product / divisor) {
        Ok(0) => Err(SizeError::Zero(text.into())),
        Ok(bytes) if bytes <= i64::MAX as u64 => Ok(bytes),
        _ => Err(too_large()),
    }
}

/// A size for people: the largest decimal unit below it, to three digits, as drives are sold.
pub fn size_text(bytes: u64) -> String {
    let named = ["PB", "TB", "GB", "MB", "KB"].iter().zip([15_u32, 12, 9, 6, 3]);
    for (unit, power) in named {
        let unit_bytes = 10_u64.pow(power);
        if bytes >= unit_bytes {
            let value = bytes as f64 / unit_bytes as f64;
            let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
            return format!("{value:.decimals$} {unit}");
        }
    }
    format!("{bytes} bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binary_and_decimal_units_are_kept_apart() {
        assert_eq!(parse_size_bytes("4GiB"), Ok(4 << 30));
        assert_eq!(parse_size_bytes("4 gb"), Ok(4_000_000_000));
        assert_eq!(parse_size_bytes("1TiB"), Ok(1 << 40));
        assert_eq!(parse_size_bytes("512"), Ok(512));
        assert_eq!(parse_size_bytes("1.5KiB"), Ok(1536));
        assert_eq!(parse_size_bytes("0.001TB"), Ok(1_000_000_000));
        assert_eq!(parse_size_bytes("7PiB"), Ok(7 << 50));
    }

    #[test]
    fn what_is_not_a_size_is_named() {
        for text in ["", "GiB", "4GiX", "-4GiB", "1.2.3MB", ".5GiB", "4Gi", "0x10", "1e9"] {
            assert!(matches!(parse_size_bytes(text), Err(SizeError::NotASize(_))), "{text}");
        }
        assert!(matches!(parse_size_bytes("4G"), Err(SizeError::Ambiguous { .. })));
        assert_eq!(parse_size_bytes("0"), Err(SizeError::Zero("0".into())));
        assert_eq!(parse_size_bytes("1.0001KB"), Err(SizeError::Fraction("1.0001KB".into())));
        for text in ["8192PiB", "99999999999999999999999999999999999999999", "9999999999999999999PiB"] {
            assert_eq!(parse_size_bytes(text), Err(SizeError::TooLarge(text.into())));
        }
        assert!(parse_size_bytes("4g").unwrap_err().to_string().contains("4GiB (binary) or 4GB"));
    }

    #[test]
    fn sizes_read_as_drives_are_sold() {
        assert_eq!(size_text(960_197_124_096), "960 GB");
        assert_eq!(size_text(1_920_383_410_176), "1.92 TB");
        assert_eq!(size_text(16 << 20), "16.8 MB");
        assert_eq!(size_text(512), "512 bytes");
    }
}
