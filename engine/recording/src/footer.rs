//! The checksum of a segment's footer: what says where the pages are, and the ranges of their values, is believed only if it is
//! as it was written.
//!
//! It stands in the footer itself, among Parquet's key-value metadata: the CRC-32, as eight hexadecimal digits, of the footer with
//! eight zeroes in their place.

use crate::reserve::ReservedFile;
use parquet::file::metadata::KeyValue;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// The key of the checksum.
const KEY: &str = "testdrive.footer_crc32";
/// Who wrote a file, as its footer has it: other programs pass on the checksum of the file that they read.
const WRITER: &[u8] = b"testdrive-engine ";
const NO_DIGITS: &[u8; 8] = b"00000000";
/// What ends a Parquet file: the length of the footer, and four letters.
const TAIL_BYTES: usize = 8;
const MAGIC: &[u8; 4] = b"PAR1";
/// What stands between the checksum and the name of who wrote the file: the end of the pair and of the list, and the next field's type.
/// The name's length follows, in one byte.
const BEFORE_WRITER: [u8; 2] = [0, 0x18];
/// What stands between a key and its value: a field's type and the value's length, in Thrift's compact protocol.
const BETWEEN: [u8; 2] = [0x18, NO_DIGITS.len() as u8];

/// Where a segment is written to. Its footer is held back until it has its checksum.
pub(crate) struct SegmentSink {
    file: BufWriter<ReservedFile>,
    footer: Option<Vec<u8>>,
}

impl SegmentSink {
    /// A sink before a file.
    pub(crate) fn new(file: ReservedFile) -> SegmentSink {
        SegmentSink { file: BufWriter::with_capacity(1 << 20, file), footer: None }
    }

    /// What has to stand among the footer's key-value metadata.
    pub(crate) fn place_for_checksum() -> KeyValue {
        KeyValue::new(KEY.to_string(), String::from_utf8_lossy(NO_DIGITS).into_owned())
    }

    /// Holds back what is written from now on: the footer.
    pub(crate) fn hold_footer(&mut self) {
        self.footer = Some(Vec::new());
    }

    /// Writes the footer that was held back, with its checksum, and hands everything to the system.
    pub(crate) fn write_footer(&mut self) -> io::Result<()> {
        let Some(mut held) = self.footer.take() else { return self.file.flush() };
        if let Some(digits_at) = footer_of(&held).and_then(digits_at) {
            let start = held.len() - footer_of(&held).map_or(0, <[u8]>::len);
            let digits = format!("{:08x}", checksum(&held[start..], digits_at));
            held[start + digits_at..][..NO_DIGITS.len()].copy_from_slice(digits.as_bytes());
        }
        self.file.write_all(&held)?;
        self.file.flush()
    }

    /// Makes what was written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file.get_ref().sync()
    }
}

impl Write for SegmentSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.footer {
            Some(footer) => footer.write(bytes),
            None => self.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Whether a segment's footer is as it was written; one without a checksum is believed, and one that another program wrote.
pub(crate) fn is_sound(file: &File, file_bytes: u64) -> io::Result<bool> {
    let mut tail = [0; TAIL_BYTES];
    let Some(tail_at) = file_bytes.checked_sub(TAIL_BYTES as u64) else { return Ok(true) };
    file.read_exact_at(&mut tail, tail_at)?;
    let length = u64::from(length_in(&tail));
    let Some(start) = tail_at.checked_sub(length) else { return Ok(true) };
    let mut footer = vec![0; length as usize + TAIL_BYTES];
    file.read_exact_at(&mut footer, start)?;
    let Some(at) = digits_at(&footer) else { return Ok(true) };
    if !is_own(&footer[at + NO_DIGITS.len()..]) {
        return Ok(true);
    }
    let told = &footer[at..at + NO_DIGITS.len()];
    Ok(told == format!("{:08x}", checksum(&footer, at)).as_bytes())
}

fn length_in(tail: &[u8]) -> u32 {
    u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]])
}

/// The footer at the end of what was written last, with its length and the letters after it.
fn footer_of(written: &[u8]) -> Option<&[u8]> {
    let tail = written.get(written.len().checked_sub(TAIL_BYTES)?..)?;
    let length = length_in(tail) as usize + TAIL_BYTES;
    tail.ends_with(MAGIC).then(|| written.get(written.len().checked_sub(length)?..)).flatten()
}

/// Where in a footer the checksum's digits are.
fn digits_at(footer: &[u8]) -> Option<usize> {
    let key = [KEY.as_bytes(), &BETWEEN].concat();
    let at = footer.windows(key.len()).position(|window| window == key)? + key.len();
    (at + NO_DIGITS.len() + TAIL_BYTES <= footer.len()).then_some(at)
}

/// Whether what follows the checksum's digits is of the engine's own footer. Elsewhere the engine's name says nothing: other programs keep
/// who wrote the file that they read.
fn is_own(after: &[u8]) -> bool {
    after
        .strip_prefix(&BEFORE_WRITER)
        .and_then(|rest| rest.get(1..))
        .is_some_and(|name| name.starts_with(WRITER))
}

/// The checksum of a footer whose digits are at a place.
fn checksum(footer: &[u8], digits_at: usize) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&footer[..digits_at]);
    hasher.update(NO_DIGITS);
    hasher.update(&footer[digits_at + NO_DIGITS.len()..]);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_footer_is_the_engines_where_its_name_follows_the_checksum() {
        assert!(is_own(b"\x00\x18\x16testdrive-engine 0.1.0\x19"));
        for other in [
            &b"\x00\x18\x11parquet-cpp-arrow\x19"[..],
            b"\x18\x13original.created.by\x18\x16testdrive-engine 0.1.0\x00\x18\x0aparquet-mr",
            b"\x00\x18",
            b"",
        ] {
            assert!(!is_own(other), "{other:?}");
        }
    }
}
