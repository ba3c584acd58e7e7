//! What reading a file in a format would mean, for people who have to say which it is.

use testdrive_core::{IoRecord, NS_PER_S};

/// The first I/O of a file's first lines, and over which time these go.
pub(crate) fn reading_of(rows: &[IoRecord]) -> Option<String> {
    let first = rows.first()?;
    let earliest_ns = rows.iter().map(|row| row.intended_ns).min()?;
    let latest_ns = rows.iter().map(|row| row.intended_ns).max()?;
    Some(format!(
        "the first is a {} of {} bytes at byte {} at {}, the first {} take {}",
        first.opcode.name(),
        first.length_bytes,
        first.offset_bytes,
        time(first.intended_ns),
        rows.len(),
        time(latest_ns - earliest_ns)
    ))
}

/// A time in the unit that suits it.
fn time(time_ns: i64) -> String {
    let seconds = time_ns as f64 / NS_PER_S as f64;
    match time_ns {
        0..1_000 => format!("{time_ns} ns"),
        1_000..1_000_000 => format!("{:.3} us", seconds * 1e6),
        1_000_000..1_000_000_000 => format!("{:.3} ms", seconds * 1e3),
        1_000_000_000..600_000_000_000 => format!("{seconds:.3} s"),
        600_000_000_000..172_800_000_000_000 => format!("{:.2} h", seconds / 3600.0),
        _ => format!("{:.1} days", seconds / 86_400.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::plain;
    use testdrive_core::Opcode;

    #[test]
    fn a_reading_says_what_would_be_and_over_which_time() {
        let rows =
            [plain(5_265_313_000, Opcode::Write, 512, 4096), plain(6_000_000_000, Opcode::Read, 0, 512)];
        let said = reading_of(&rows).unwrap();
        assert_eq!(
            said,
            "the first is a write of 4096 bytes at byte 512 at 5.265 s, the first 2 take 734.687 ms"
        );
        assert_eq!(reading_of(&[]), None);
        assert_eq!(
            (time(12), time(12_345), time(86_400_000_000_000 * 3)),
            ("12 ns".into(), "12.345 us".into(), "3.0 days".into())
        );
    }
}
