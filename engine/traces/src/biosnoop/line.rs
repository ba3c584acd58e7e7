//! One line, from the right.

use crate::decimal::{scaled, whole, NotANumber};
use crate::rows::{Bad, Gather};
use crate::rwbs::{self, Rwbs};
use testdrive_core::{Flags, Opcode, SECTOR_BYTES};

/// Beyond 36 years a time is none: so sums of times never overflow.
const TIME_NS_MAX: i64 = 1 << 60;
/// Bytes have at least so many columns, which the next cell may follow without a space where they are full.
const BYTES_COLUMNS: usize = 7;

/// The cells of a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Line<'l> {
    /// When the I/O completed, which may be before the first line's.
    pub end_ns: i64,
    /// `None` where biosnoop did not see the I/O begin, so that it knows neither disk nor place.
    pub disk: Option<&'l [u8]>,
    pub letters: &'l [u8],
    /// `None` where it is printed as -1.
    pub sector: Option<i64>,
    pub length_bytes: i64,
    /// How long it waited before it was issued; `None` where that is not printed or not known.
    pub queue_ns: Option<i64>,
    /// From issue to completion.
    pub latency_ns: i64,
}

impl<'l> Line<'l> {
    pub fn read(line: &'l [u8]) -> Result<Line<'l>, Bad> {
        let mut words = Words { rest: line.trim_ascii() };
        let mut latency = words.last("LAT(ms)")?;
        let mut next = words.last("BYTES")?;
        let mut queue = None;
        if next.contains(&b'.') {
            queue = Some(next);
            next = words.last("BYTES")?;
        }
        // With -P: S, R or ?, which may stand at the end of the bytes.
        if matches!(next, [b'S' | b'R' | b'?']) {
            next = words.last("BYTES")?;
        }
        let mut bytes =
            next.strip_suffix(b"S").or(next.strip_suffix(b"R")).or(next.strip_suffix(b"?")).unwrap_or(next);
        let mut sector = words.last("SECTOR")?;
        let letters;
        if is_letters(sector) {
            // Bytes and the time after them stand together, so that everything is one cell further to the right.
            letters = sector;
            sector = bytes;
            let joined = queue.as_mut().unwrap_or(&mut latency);
            (bytes, *joined) = split_joined(joined)?;
        } else {
            letters = words.last("T")?;
        }
        let disk = words.last("DISK")?;
        let pid = words.last("PID")?;
        // Of what began unseen, the disk is empty in older versions: what stands in its place is the process.
        let is_empty_disk = is_number(disk) && !is_number(pid);
        let (command, time) = if is_empty_disk { (pid, words.rest) } else { words.command_and_time()? };
        if !is_letters(letters) {
            return Err(Bad::cell("T", letters, "does not say what the I/O does"));
        }
        let unseen = command == b"?" && (is_empty_disk || disk.starts_with(b"<unknown>") || sector == b"-1");
        Ok(Line {
            end_ns: seconds(time)?,
            disk: (!is_empty_disk && !unseen).then_some(disk),
            letters,
            sector: if sector == b"-1" { None } else { Some(number("SECTOR", sector)?) },
            length_bytes: number("BYTES", bytes)?,
            queue_ns: match queue {
                Some(queue) if !queue.starts_with(b"-") => Some(milliseconds("QUE(ms)", queue)?),
                _ => None,
            },
            latency_ns: milliseconds("LAT(ms)", latency)?,
        })
    }

    /// What the I/O does; `None` where it is none, which is counted.
    pub fn opcode_and_flags(&self, gather: &mut Gather) -> Result<Option<(Opcode, Flags)>, Bad> {
        let sectors = self.length_bytes.unsigned_abs().div_ceil(SECTOR_BYTES);
        match rwbs::parse(self.letters, sectors) {
            Some(Rwbs::Io(opcode, flags)) => return Ok(Some((opcode, flags))),
            Some(Rwbs::Passthrough) => gather.drop("commands passed through to the driver"),
            Some(Rwbs::Zone) => gather.drop("zone commands"),
            None => return Err(Bad::cell("T", self.letters, "does not say what the I/O does")),
        }
        Ok(None)
    }
}

/// Sectors in bytes.
pub(super) fn bytes(sectors: i64) -> Result<i64, Bad> {
    let bytes = sectors.checked_mul(SECTOR_BYTES as i64);
    bytes.ok_or_else(|| Bad::cell("SECTOR", sectors.to_string().as_bytes(), "is too large"))
}

/// The words of a line that are not taken yet.
struct Words<'l> {
    rest: &'l [u8],
}

impl<'l> Words<'l> {
    /// Takes the last word, which is this column.
    fn last(&mut self, column: &str) -> Result<&'l [u8], Bad> {
        let start =
            self.rest.iter().rposition(|&byte| byte == b' ' || byte == b'\t').map_or(0, |space| space + 1);
        let word = &self.rest[start..];
        // The time comes first, so that nothing else stands there.
        if start == 0 {
            return Err(Bad::new(format!(
                "there is no {column}: the line is cut off, or no line of biosnoop"
            )));
        }
        self.rest = self.rest[..start].trim_ascii_end();
        Ok(word)
    }

    /// The time, which comes first, and the command, which is the rest and may be empty.
    fn command_and_time(&self) -> Result<(&'l [u8], &'l [u8]), Bad> {
        let end = self.rest.iter().position(|&byte| byte == b' ' || byte == b'\t').unwrap_or(self.rest.len());
        let (time, command) = self.rest.split_at(end);
        if time.is_empty() {
            return Err(Bad::new("there is no TIME(s): the line is no line of biosnoop"));
        }
        Ok((command.trim_ascii(), time))
    }
}

fn is_letters(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_uppercase)
}

fn is_number(word: &[u8]) -> bool {
    !word.is_empty() && word.iter().all(u8::is_ascii_digit)
}

fn number(name: &str, cell: &[u8]) -> Result<i64, Bad> {
    whole(cell).map_err(|error| Bad::cell(name, cell, error.reason()))
}

fn milliseconds(name: &str, cell: &[u8]) -> Result<i64, Bad> {
    let time_ns = scaled(cell, 6).map_err(|error| Bad::cell(name, cell, error.reason()))?;
    within(name, cell, time_ns)
}

fn within(name: &str, cell: &[u8], time_ns: i64) -> Result<i64, Bad> {
    if (-TIME_NS_MAX..=TIME_NS_MAX).contains(&time_ns) {
        return Ok(time_ns);
    }
    Err(Bad::cell(name, cell, "is too large"))
}

/// A time in seconds from the first line's. Of what completed before that and is printed later, it is negative, or so much below
/// the end of 64 bits of nanoseconds.
fn seconds(cell: &[u8]) -> Result<i64, Bad> {
    const WRAPPED_S: i64 = 1 << 34;
    if cell.contains(&b':') {
        let what = "is a time of day, when the line was printed: record without -t, so that times count from the start";
        return Err(Bad::cell("TIME(s)", cell, what));
    }
    let bad = |error: NotANumber| Bad::cell("TIME(s)", cell, error.reason());
    if let Some(before) = cell.strip_prefix(b"-") {
        return within("TIME(s)", cell, -scaled(before, 9).map_err(bad)?);
    }
    let point = cell.iter().position(|&byte| byte == b'.').unwrap_or(cell.len());
    let whole_s = whole(&cell[..point]).map_err(bad)?;
    if whole_s < WRAPPED_S {
        return within("TIME(s)", cell, scaled(cell, 9).map_err(bad)?);
    }
    let fraction = [b"0", &cell[point..]].concat();
    let time_ns =
        i128::from(whole_s) * 1_000_000_000 + i128::from(scaled(&fraction, 9).map_err(bad)?) - (1 << 64);
    within("TIME(s)", cell, i64::try_from(time_ns).unwrap_or(i64::MAX))
}

/// Takes bytes apart that run into the time after them, which they do when both fill their columns: `10485761000.00`. Bytes are a
/// multiple of 512, and the time is of four digits at least and starts with none of 0, so that there is one way only.
fn split_joined(joined: &[u8]) -> Result<(&[u8], &[u8]), Bad> {
    let digits = joined.iter().take_while(|byte| byte.is_ascii_digit()).count();
    for at in BYTES_COLUMNS..=digits.saturating_sub(4) {
        let (bytes, time) = joined.split_at(at);
        if time[0] != b'0' && whole(bytes).is_ok_and(|bytes| bytes % SECTOR_BYTES as i64 == 0) {
            return Ok((bytes, time));
        }
    }
    Err(Bad::cell("BYTES", joined, "cannot be told from the time after it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Line<'_> {
        Line::read(line.as_bytes()).unwrap_or_else(|bad| panic!("{line}: {}", bad.reason()))
    }

    fn reason(line: &str) -> String {
        Line::read(line.as_bytes()).err().unwrap().reason()
    }

    fn expected(letters: &str, queue_ns: Option<i64>, latency_ns: i64) -> Line<'_> {
        Line {
            end_ns: 19_925_329_000,
            disk: Some(b"sdb"),
            letters: letters.as_bytes(),
            sector: Some(249_631),
            length_bytes: 16_384,
            queue_ns,
            latency_ns,
        }
    }

    #[test]
    fn each_kind_with_each_option_is_the_same_line() {
        for (line, letters, queue_ns, latency_ns) in [
            ("19.925329   cksum          20405  sdb     R 249631     16384       1.63", "R", None, 1_630_000),
            (
                "19.925329   cksum          20405   sdb       R 249631     16384    17.17    1.63",
                "R",
                Some(17_170_000),
                1_630_000,
            ),
            (
                "19.925329   cksum          20405   sdb       W 249631     16384  S   17.17    1.63 ",
                "W",
                Some(17_170_000),
                1_630_000,
            ),
            (
                "19.925329   cksum          20405   sdb       W 249631     16384  ?    1.63",
                "W",
                None,
                1_630_000,
            ),
            (
                "19.925329   cksum          20405   sdb     FWFS 249631     16384     1.634",
                "FWFS",
                None,
                1_634_000,
            ),
            (
                "19.925329   cksum          20405   sdb     RA   249631     16384    -1.000   1.634",
                "RA",
                None,
                1_634_000,
            ),
            ("19.925329000    cksum      20405  sdb     R  249631    16384      1.63", "R", None, 1_630_000),
        ] {
            assert_eq!(read(line), expected(letters, queue_ns, latency_ns), "{line}");
        }
    }

    #[test]
    fn commands_hold_anything_or_nothing() {
        for command in ["my prog 7 W", "a  b", "0.5", "R 1 2 3.4", "?", ""] {
            let line = format!("19.925329   {command:14.14} 20405  sdb     R 249631     16384       1.63");
            assert_eq!(read(&line), expected("R", None, 1_630_000), "{line}");
        }
    }

    #[test]
    fn what_began_unseen_has_neither_disk_nor_place() {
        for line in [
            "2.338149    ?              0              W 0          8192      0.00    2.72",
            "2.338149    ?              0              W -1         8192       2.72",
            "2.338149    ?              0       <unknown> W 0          8192       2.72",
        ] {
            assert_eq!(read(line).disk, None, "{line}");
        }
        assert_eq!(read("2.3  fio  12  <unknown> W 8  8192  2.72").disk, Some(&b"<unknown>"[..]));
    }

    #[test]
    fn cells_that_run_into_each_other_are_taken_apart() {
        for (tail, length_bytes, queue_ns, latency_ns) in [
            ("10485761000.00", 1_048_576, None, 1_000_000_000),
            ("1048576S    0.50", 1_048_576, None, 500_000),
            ("104857612345.67    0.50", 1_048_576, Some(12_345_670_000), 500_000),
            ("13421772851200.25", 134_217_728, None, 51_200_250_000),
        ] {
            let line = format!("0.5  fio  12  sda       R 8          {tail}");
            let found = read(&line);
            assert_eq!(
                (found.length_bytes, found.queue_ns, found.latency_ns),
                (length_bytes, queue_ns, latency_ns),
                "{line}"
            );
        }
    }

    #[test]
    fn times_before_the_first_line_are_negative_or_wrapped() {
        assert_eq!(read("-0.000012  fio  12  sda R 8 4096 0.50").end_ns, -12_000);
        let wrapped = read("18446744073.709540  fio  12  sda R 8 4096 0.50").end_ns;
        // A float has no more digits.
        assert_eq!(wrapped, -11_616);
    }

    #[test]
    fn other_lines_are_refused_by_the_cell_that_does_not_fit() {
        for (line, said) in [
            ("0.5", "there is no LAT(ms)"),
            ("0.5 fio 12 sda R 8", "there is no DISK"),
            ("14:23:45.123 fio 12 sda R 8 4096 0.50", "record without -t"),
            ("0.5 fio 12 sda R 8 4096 x", "LAT(ms) is 'x'"),
            ("0.5 fio 12 sda R x 4096 0.50", "SECTOR is 'x'"),
            ("0.5 fio 12 sda r 8 4096 0.50", "T is 'r'"),
            ("x fio 12 sda R 8 4096 0.50", "TIME(s) is 'x'"),
            ("99999999999999 fio 12 sda R 8 4096 0.50", "too large"),
            ("5e9 fio 12 sda R 8 4096 0.50", "too large"),
            ("0.5 fio 12 sda R 8 4096 99999999999999.00", "too large"),
            ("0.5 fio 12 sda R 8 123456789012.50", "cannot be told"),
        ] {
            assert!(reason(line).contains(said), "{line}: {}", reason(line));
        }
    }
}
