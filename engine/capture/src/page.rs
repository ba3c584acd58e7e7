//! A page of the kernel's ring buffer: a time, a length with flags, and records that each say how long after the one before they
//! were written.
//!
//! A record starts with a word of 32 bits: five say its kind or its length in words, 27 the nanoseconds since the record before
//! (`events/header_event`). Times that do not fit stand in records of their own. What is described here has been so since
//! Linux 2.6.30, but for absolute times, which came with 4.17.

use crate::layout::{Field, PageLayout};
use std::ops::Range;

/// Set in a page's length when records before it were lost.
const LOST: u64 = 1 << 31;
/// Set when a word behind the data says how many.
const LOST_COUNTED: u64 = 1 << 30;
const LENGTH: u64 = LOST_COUNTED - 1;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
const DELTA_BITS: u32 = 27;
/// An absolute time has 59 bits; the rest is that of the time before.
const STAMP_BITS: u32 = 59;

/// How many records were lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// None.
    No,
    /// Some.
    Uncounted,
    /// So many.
    Counted(u64),
}

/// What a page says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// What the first record's time is counted from.
    pub time_ns: u64,
    /// Where the data ends.
    pub end: usize,
    /// What was lost before it.
    pub lost: Lost,
}

/// Why a page is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {offset} of a page")]
pub struct PageError {
    /// Where.
    pub offset: usize,
    /// What is there.
    pub reason: String,
}

fn error(offset: usize, reason: impl Into<String>) -> PageError {
    PageError { offset, reason: reason.into() }
}

/// An unsigned number of 2, 4 or 8 bytes, as this machine writes it; `None` beyond the end.
pub(crate) fn number(bytes: &[u8], field: Field) -> Option<u64> {
    let bytes = bytes.get(field.offset..field.end())?;
    match *bytes {
        [a, b] => Some(u64::from(u16::from_ne_bytes([a, b]))),
        [a, b, c, d] => Some(u64::from(u32::from_ne_bytes([a, b, c, d]))),
        [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
        _ => None,
    }
}

fn word(bytes: &[u8], offset: usize) -> Option<u32> {
    number(bytes, Field { offset, size: 4 }).and_then(|value| u32::try_from(value).ok())
}

/// The kind and the time of a record's first word. Bit fields stand at the low end of a word, or at the high end where bytes do.
fn split(word: u32) -> (u32, u64) {
    if cfg!(target_endian = "little") {
        (word & 31, u64::from(word >> 5))
    } else {
        (word >> DELTA_BITS, u64::from(word & ((1 << DELTA_BITS) - 1)))
    }
}

/// Reads what stands before a page's records.
///
/// # Errors
/// When the page is cut, or says that it holds more than it can.
pub fn parse_header(bytes: &[u8], layout: &PageLayout) -> Result<PageHeader, PageError> {
    let cut = || error(bytes.len(), "a cut header");
    let time_ns = number(bytes, layout.timestamp).ok_or_else(cut)?;
    let commit = number(bytes, layout.commit).ok_or_else(cut)?;
    let length = usize::try_from(commit & LENGTH).map_err(|_| cut())?;
    let end = layout.data_offset.checked_add(length).filter(|&end| end <= bytes.len());
    let end = end.ok_or_else(|| error(layout.commit.offset, format!("a length of {length}")))?;
    let lost = match (commit & LOST != 0, commit & LOST_COUNTED != 0) {
        (false, _) => Lost::No,
        (true, false) => Lost::Uncounted,
        (true, true) => number(bytes, Field { offset: end, size: layout.commit.size })
            .map_or(Lost::Uncounted, Lost::Counted),
    };
    Ok(PageHeader { time_ns, end, lost })
}

/// Walks over the records of a page that somebody else holds.
#[derive(Clone, Debug)]
pub struct Cursor {
    position: usize,
    end: usize,
    time_ns: u64,
}

/// A record: when it was written, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// On the buffer's clock.
    pub time_ns: u64,
    /// Its bytes in the page.
    pub place: Range<usize>,
}

impl Cursor {
    /// Before the first record.
    pub fn new(header: &PageHeader, layout: &PageLayout) -> Cursor {
        Cursor { position: layout.data_offset, end: header.end, time_ns: header.time_ns }
    }

    /// Steps to the next record of data; `None` after the last.
    ///
    /// # Errors
    /// When a record reaches beyond the page's data. The rest of the page cannot be read then.
    pub fn next(&mut self, page: &[u8]) -> Result<Option<Record>, PageError> {
        let page = page.get(..self.end).unwrap_or(page);
        while self.position < page.len() {
            let start = self.position;
            let cut = || error(start, "a cut record");
            let (kind, delta) = split(word(page, start).ok_or_else(cut)?);
            let second = || word(page, start + 4).map(u64::from).ok_or_else(cut);
            match kind {
                // The rest of the page was not written.
                PADDING if delta == 0 => break,
                // A record that was withdrawn. Its time counts for those that were written inside it.
                PADDING => {
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    self.skip(4 + second()?, page, cut)?;
                }
                TIME_EXTEND => {
                    self.time_ns = self.time_ns.wrapping_add(second()? << DELTA_BITS | delta);
                    self.skip(8, page, cut)?;
                }
                TIME_STAMP => {
                    self.time_ns = absolute(second()? << DELTA_BITS | delta, self.time_ns);
                    self.skip(8, page, cut)?;
                }
                words => {
                    self.time_ns = self.time_ns.wrapping_add(delta);
                    // A long record has its length in a second word, which the length includes.
                    let (from, length) =
                        if words == 0 { (8, 4 + second()?) } else { (4, 4 + u64::from(words) * 4) };
                    self.skip(length, page, cut)?;
                    let place = (start + from)..self.position;
                    if place.start > place.end {
                        return Err(error(start, format!("a record of {length} bytes")));
                    }
                    return Ok(Some(Record { time_ns: self.time_ns, place }));
                }
            }
        }
        self.position = page.len();
        Ok(None)
    }

    fn skip(&mut self, length: u64, page: &[u8], cut: impl Fn() -> PageError) -> Result<(), PageError> {
        let next = usize::try_from(length).ok().and_then(|length| self.position.checked_add(length));
        self.position = next.filter(|&next| next <= page.len()).ok_or_else(cut)?;
        Ok(())
    }
}

/// An absolute time of 59 bits, completed by those of the time before.
fn absolute(stamp: u64, before: u64) -> u64 {
    let above = before >> STAMP_BITS << STAMP_BITS;
    let time = above | stamp;
    // It was written after: where it seems earlier by half of what 59 bits hold, they have run over meanwhile.
    if above != 0 && time < before && before - time > 1 << (STAMP_BITS - 1) {
        time.wrapping_add(1 << STAMP_BITS)
    } else {
        time
    }
}

#[cfg(test)]
#[path = "page_tests.rs"]
mod tests;
