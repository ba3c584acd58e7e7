//! The cells of a line, and numbers in them, read exactly and without allocating.

use crate::decimal::{scaled, whole, NotANumber};
use crate::shown::shown;
use memchr::memchr;
use testdrive_core::Opcode;

/// Why a line cannot be read. Small, since it is part of what every cell's reading returns.
#[derive(Debug)]
pub(crate) struct Bad(Box<str>);

impl Bad {
    #[cold]
    pub fn new(reason: impl Into<String>) -> Bad {
        Bad(reason.into().into())
    }

    /// A cell that holds what it must not: `offset is '12x', which is no number`.
    #[cold]
    pub fn cell(name: &str, cell: &[u8], what: &str) -> Bad {
        Bad::new(format!("{name} is '{}', which {what}", shown(cell, SHOWN_BYTES)))
    }

    pub fn reason(self) -> String {
        self.0.into()
    }
}

/// Bytes of a cell that messages show.
const SHOWN_BYTES: usize = 40;

/// The cells of a line, from left to right.
#[derive(Clone)]
pub(crate) struct Cells<'l> {
    rest: &'l [u8],
    /// Between cells; a space stands for any number of spaces and tabs.
    delimiter: u8,
    ended: bool,
}

impl<'l> Cells<'l> {
    /// Cells between which `delimiter` stands once, with or without spaces around them.
    pub fn separated(line: &'l [u8], delimiter: u8) -> Cells<'l> {
        Cells { rest: line, delimiter, ended: false }
    }

    /// Cells between which stand spaces or tabs.
    pub fn words(line: &'l [u8]) -> Cells<'l> {
        let rest = line.trim_ascii();
        Cells { rest, delimiter: b' ', ended: rest.is_empty() }
    }

    /// The next cell without spaces around it, or `None` after the last.
    pub fn next(&mut self) -> Option<&'l [u8]> {
        if self.ended {
            return None;
        }
        let end = if self.delimiter == b' ' {
            self.rest.iter().position(|byte| matches!(byte, b' ' | b'\t'))
        } else {
            memchr(self.delimiter, self.rest)
        };
        let Some(end) = end else {
            self.ended = true;
            return Some(std::mem::take(&mut self.rest).trim_ascii());
        };
        let cell = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        if self.delimiter == b' ' {
            self.rest = self.rest.trim_ascii_start();
            return Some(cell);
        }
        Some(cell.trim_ascii())
    }

    /// The next cell, which must be there.
    pub fn cell(&mut self, name: &str) -> Result<&'l [u8], Bad> {
        self.next().ok_or_else(|| missing(name))
    }

    /// The next cell as a whole number that is not negative.
    pub fn whole(&mut self, name: &str) -> Result<i64, Bad> {
        if let Some(value) = self.digits() {
            return Ok(value);
        }
        whole_number(name, self.cell(name)?)
    }

    /// The next cell as a number, not negative, times ten to the `digits`, to the nearest whole.
    pub fn scaled(&mut self, name: &str, digits: u32) -> Result<i64, Bad> {
        if let Some(value) = self.fraction(digits) {
            return Ok(value);
        }
        scaled_number(name, self.cell(name)?, digits)
    }

    /// The next cell, which must be digits, as text: the number of a volume.
    pub fn number_text(&mut self, name: &str) -> Result<&'l [u8], Bad> {
        let cell = self.cell(name)?;
        if cell.is_empty() || !cell.iter().all(u8::is_ascii_digit) {
            return Err(Bad::cell(name, cell, "is no whole number"));
        }
        Ok(cell)
    }

    /// The next cell as the letter of a read or a write.
    pub fn read_or_write(&mut self, name: &str) -> Result<Opcode, Bad> {
        match self.cell(name)? {
            b"R" | b"r" => Ok(Opcode::Read),
            b"W" | b"w" => Ok(Opcode::Write),
            cell => Err(Bad::cell(name, cell, "is neither R nor W")),
        }
    }

    /// The next cell as so many sectors of 512 bytes, in bytes.
    pub fn sectors(&mut self, name: &str) -> Result<i64, Bad> {
        sectors_in_bytes(name, self.whole(name)?)
    }

    /// Says that there must be no further cell.
    pub fn end(&mut self) -> Result<(), Bad> {
        match self.next() {
            None => Ok(()),
            Some(cell) => {
                Err(Bad::new(format!("there is more than belongs on a line: '{}'", shown(cell, SHOWN_BYTES))))
            }
        }
    }

    /// What is left of the line.
    pub fn rest(&self) -> &'l [u8] {
        self.rest
    }

    /// The next cell if it is nothing but up to 18 digits, which is what nearly all are: read while its end is searched.
    fn digits(&mut self) -> Option<i64> {
        self.skip_spaces();
        let (mut value, mut at) = (0_i64, 0);
        while let Some(digit) = digit(self.rest.get(at)) {
            value = value.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        if !(1..=18).contains(&at) {
            return None;
        }
        self.step_over(at).then_some(value)
    }

    /// The next cell if it is digits, a point and up to `digits` more, which fit 18 together.
    fn fraction(&mut self, digits: u32) -> Option<i64> {
        self.skip_spaces();
        let (mut value, mut at) = (0_i64, 0);
        while let Some(digit) = digit(self.rest.get(at)) {
            value = value.wrapping_mul(10).wrapping_add(digit);
            at += 1;
        }
        let before = at;
        let mut missing = digits;
        if before > 0 && self.rest.get(at) == Some(&b'.') {
            at += 1;
            while let (Some(digit), true) = (digit(self.rest.get(at)), missing > 0) {
                value = value.wrapping_mul(10).wrapping_add(digit);
                at += 1;
                missing -= 1;
            }
        }
        if before == 0 || before + digits as usize > 18 {
            return None;
        }
        self.step_over(at).then(|| value * 10_i64.pow(missing))
    }

    fn skip_spaces(&mut self) {
        while let Some((b' ', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    /// Goes on behind a cell of so many bytes, if it ends there.
    fn step_over(&mut self, mut length: usize) -> bool {
        while self.delimiter != b' ' && self.rest.get(length) == Some(&b' ') {
            length += 1;
        }
        match self.rest.get(length) {
            None => {
                self.ended = true;
                self.rest = &[];
                true
            }
            Some(&byte) if byte == self.delimiter => {
                self.rest = &self.rest[length + 1..];
                if byte == b' ' {
                    self.rest = self.rest.trim_ascii_start();
                }
                true
            }
            Some(_) => false,
        }
    }
}

/// A cell as a whole number that is not negative.
pub(crate) fn whole_number(name: &str, cell: &[u8]) -> Result<i64, Bad> {
    whole(cell).map_err(|error| not_a_number(name, cell, error))
}

/// A cell as a number, not negative, times ten to the `digits`, to the nearest whole.
pub(crate) fn scaled_number(name: &str, cell: &[u8], digits: u32) -> Result<i64, Bad> {
    scaled(cell, digits as i32).map_err(|error| not_a_number(name, cell, error))
}

/// So many sectors of 512 bytes in bytes.
pub(crate) fn sectors_in_bytes(name: &str, sectors: i64) -> Result<i64, Bad> {
    sectors.checked_mul(512).ok_or_else(|| too_large(name, sectors))
}

fn digit(byte: Option<&u8>) -> Option<i64> {
    byte.map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10).map(i64::from)
}

#[cold]
fn missing(name: &str) -> Bad {
    Bad::new(format!("there is no {name}: the line may be cut off, or of another format"))
}

#[cold]
fn not_a_number(name: &str, cell: &[u8], error: NotANumber) -> Bad {
    Bad::cell(name, cell, error.reason())
}

#[cold]
pub(crate) fn too_large(name: &str, value: i64) -> Bad {
    Bad::cell(name, value.to_string().as_bytes(), NotANumber::TooLarge.reason())
}

/// Checks that an I/O ends where a recording can say so.
pub(crate) fn check_end(offset_bytes: i64, length_bytes: i64) -> Result<(), Bad> {
    match offset_bytes.checked_add(length_bytes) {
        Some(_) => Ok(()),
        None => Err(Bad::new(format!(
            "the I/O would end {length_bytes} bytes after {offset_bytes}, which is too large"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cells_come_one_by_one_without_spaces() {
        let mut cells = Cells::separated(b" 12 ,x ,, 7", b',');
        let all: Vec<&[u8]> = std::iter::from_fn(|| cells.next()).collect();
        assert_eq!(all, [&b"12"[..], b"x", b"", b"7"]);
        let mut words = Cells::words(b"  12\t x   7  ");
        let all: Vec<&[u8]> = std::iter::from_fn(|| words.next()).collect();
        assert_eq!(all, [&b"12"[..], b"x", b"7"]);
        assert_eq!(Cells::words(b"  ").next(), None);
        assert_eq!(Cells::separated(b"", b',').next(), Some(&b""[..]));
    }

    #[test]
    fn cells_that_are_no_numbers_are_named() {
        for (cell, reason) in [
            ("12x", "is no number"),
            ("", "is no number"),
            ("-3", "is negative"),
            ("99999999999999999999", "is too large"),
            ("1.5", "is no whole number"),
        ] {
            let said = Cells::separated(cell.as_bytes(), b',').whole("size").unwrap_err().reason();
            assert_eq!(said, format!("size is '{cell}', which {reason}"));
        }
        let mut cells = Cells::separated(b"1", b',');
        assert!(cells.whole("size").is_ok());
        assert!(cells.whole("time").unwrap_err().reason().starts_with("there is no time"));
        assert!(Cells::separated(b"1", b',').end().unwrap_err().reason().contains("more than belongs"));
    }

    #[test]
    fn what_is_too_long_or_unprintable_is_shown_in_part() {
        let long = vec![b'9'; 1000];
        let said = Cells::separated(&long, b',').whole("size").unwrap_err().reason();
        assert!(said.len() < 100 && said.contains("999..."), "{said}");
        let said = Cells::separated(b"\x00\x1b[31m\xff", b',').whole("size").unwrap_err().reason();
        assert!(!said.chars().any(char::is_control), "{said:?}");
    }

    proptest! {
        /// The fast ways read what the careful one reads.
        #[test]
        fn numbers_are_read_exactly(text in "[ ]?[0-9]{0,21}([.][0-9]{0,12})?[ ]?", digits in 0_u32..=9) {
            let line = format!("{text},9");
            let mut cells = Cells::separated(line.as_bytes(), b',');
            let cell = text.trim();
            let read = cells.scaled("time", digits).ok();
            prop_assert_eq!(read, scaled(cell.as_bytes(), digits as i32).ok());
            if read.is_some() {
                prop_assert_eq!(cells.whole("next").ok(), Some(9));
            }
            let read = Cells::separated(line.as_bytes(), b',').whole("size").ok();
            prop_assert_eq!(read, whole(cell.as_bytes()).ok());
            if !cell.is_empty() {
                let line = format!("{cell}  9");
                let mut words = Cells::words(line.as_bytes());
                prop_assert_eq!(words.scaled("time", digits).ok(), scaled(cell.as_bytes(), digits as i32).ok());
            }
        }

        #[test]
        fn no_line_panics(line in proptest::collection::vec(any::<u8>(), 0..80), digits in 0_u32..=9) {
            let mut cells = Cells::separated(&line, b',');
            let _ = (cells.whole("a"), cells.scaled("b", digits), cells.sectors("c"), cells.end());
            let mut words = Cells::words(&line);
            let _ = (words.scaled("a", digits), words.whole("b"), words.end());
        }
    }
}
