//! Values as people write them: `64GiB`, `0.7us`, `800MB/s`.

const BYTE_UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];
const TIME_UNITS: &[(&str, f64)] = &[("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// What a number with a unit measures; the suffix of a parameter's name says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Time,
    Bytes,
    Rate,
}

impl Dimension {
    /// What a parameter of this name measures and its name without the unit, or `None` where it has no unit.
    pub(crate) fn of(name: &str) -> Option<(Dimension, &str)> {
        // The longest suffix first: a rate's name ends in a time too.
        [("_bytes_per_s", Dimension::Rate), ("_bytes", Dimension::Bytes), ("_ns", Dimension::Time)]
            .into_iter()
            .find_map(|(suffix, dimension)| Some((dimension, name.strip_suffix(suffix)?)))
    }

    /// Units that a value may carry, for messages.
    pub(crate) fn examples(self) -> &'static str {
        match self {
            Dimension::Time => "ns, us, ms or s, as in 0.7us",
            Dimension::Bytes => "B, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as in 64GiB",
            Dimension::Rate => "kB/s, MB/s, GB/s, KiB/s, MiB/s or GiB/s, as in 800MB/s",
        }
    }

    fn factor(self, unit: &str) -> Option<f64> {
        let (units, unit) = match self {
            Dimension::Time => (TIME_UNITS, unit),
            Dimension::Bytes => (BYTE_UNITS, unit),
            Dimension::Rate => (BYTE_UNITS, unit.strip_suffix("/s")?),
        };
        units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
    }

    /// The value in ns, bytes or bytes per second, rounded to the nearest; a number without a unit is `None`, and so is
    /// anything else that is no quantity of this dimension.
    pub(crate) fn parse(self, text: &str) -> Option<i64> {
        let text = text.trim();
        let unit_at = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let number: f64 = text[..unit_at].parse().ok()?;
        let value = (number * self.factor(text[unit_at..].trim_start())?).round();
        // Integers of this size are exact in a float, so that what is read is what was written.
        (value <= 2_f64.powi(53)).then_some(value as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_units_are_read_exactly() {
        assert_eq!(Dimension::Time.parse("0.7us"), Some(700));
        assert_eq!(Dimension::Time.parse("2 ms"), Some(2_000_000));
        assert_eq!(Dimension::Bytes.parse("64GiB"), Some(64 << 30));
        assert_eq!(Dimension::Bytes.parse("1TB"), Some(1_000_000_000_000));
        assert_eq!(Dimension::Rate.parse("800MB/s"), Some(800_000_000));
    }

    #[test]
    fn other_text_is_no_quantity() {
        for text in ["", "7", "us", "-1us", "1e3us", "7.5.1us", "7 parsec", "7GiB", "99999999s"] {
            assert_eq!(Dimension::Time.parse(text), None, "{text}");
        }
        assert_eq!(Dimension::Bytes.parse("64G"), None);
        assert_eq!(Dimension::Rate.parse("800MB"), None);
    }

    #[test]
    fn the_name_says_the_dimension() {
        assert_eq!(Dimension::of("host_link_bytes_per_s"), Some((Dimension::Rate, "host_link")));
        assert_eq!(Dimension::of("capacity_bytes"), Some((Dimension::Bytes, "capacity")));
        assert_eq!(Dimension::of("trim_per_page_ns"), Some((Dimension::Time, "trim_per_page")));
        assert_eq!(Dimension::of("seed"), None);
    }
}
