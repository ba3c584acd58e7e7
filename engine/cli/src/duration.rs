//! Durations as people write them: `60s`, `10m`, `500ms`, `1h30m`.

use std::time::Duration;

/// Each unit with its nanoseconds.
const UNITS: [(&str, u128); 9] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("min", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];

/// The time that a text means: numbers with units, added up. A fraction of a nanosecond is cut off.
///
/// # Errors
/// When it is none, has no unit, is zero, or is beyond 584 years: a sentence.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a duration: write it like 60s, 10m, 500ms or 1h30m");
    let (mut total_ns, mut rest) = (0_u128, text.trim());
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let unit_ns = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(wrong)?.1;
        total_ns = total_ns.saturating_add(part_ns(number, unit_ns).ok_or_else(wrong)?);
        rest = after;
    }
    match u64::try_from(total_ns) {
        Ok(0) => Err(format!("'{text}' is no time at all: give one above zero")),
        Ok(total_ns) => Ok(Duration::from_nanos(total_ns)),
        Err(_) => Err(format!("'{text}' is more than 584 years")),
    }
}

/// A decimal number of a unit, in integers, so that nothing is rounded on the way.
fn part_ns(number: &str, unit_ns: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') || fraction.len() > 18 || whole.len() > 18
    {
        return None;
    }
    let scaled: u128 = format!("{whole}{fraction}").parse().ok()?;
    // What overflows is beyond 584 years, also when it was divided.
    Some(scaled.saturating_mul(unit_ns) / 10_u128.pow(fraction.len() as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_added_and_fractions_are_exact() {
        let ns = |text: &str| parse_duration(text).map(|duration| duration.as_nanos());
        assert_eq!(ns("60s"), Ok(60_000_000_000));
        assert_eq!(ns("1h30m"), Ok(5_400_000_000_000));
        assert_eq!(ns(" 1.5 s "), Ok(1_500_000_000));
        assert_eq!(ns("500ms"), Ok(500_000_000));
        assert_eq!(ns(".25us"), Ok(250));
        assert_eq!(ns("250µs"), Ok(250_000));
        assert_eq!(ns("60000000000ns"), Ok(60_000_000_000));
    }

    #[test]
    fn what_is_no_duration_is_named() {
        for text in ["", "60", "s", "1x", "-1s", "1.2.3s", "1s2", "999999999999999999999s"] {
            assert!(parse_duration(text).unwrap_err().contains("not a duration"), "{text}");
        }
        assert!(parse_duration("0s").unwrap_err().contains("above zero"));
        for text in ["300000d", "999999999999999999.999999999999999999d"] {
            assert!(parse_duration(text).unwrap_err().contains("584 years"), "{text}");
        }
    }
}
