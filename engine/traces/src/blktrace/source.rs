//! One CPU's file: its records as events, many at a time.

use super::record::{ByteOrder, Header, Meaning, Short, HEADER_BYTES_MAX};
use crate::event::BlockEvent;
use crate::input::Input;
use crate::merge;
use crate::{Place, TraceError};
use std::path::Path;

/// Events that are decoded at once: they stay in the cache until they are taken.
const BLOCK_EVENTS: usize = 512;

/// What of a file's records is no event of an I/O.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Skipped {
    pub passthrough: u64,
    pub zone: u64,
    pub truncated: u64,
}

/// One CPU's file.
pub(super) struct Source {
    pub input: Input,
    pub skipped: Skipped,
    order: Option<ByteOrder>,
    /// Events decoded and where each stands, those from `taken` not handed out yet.
    block: Vec<(BlockEvent, u64)>,
    taken: usize,
}

impl Source {
    /// Opens one of so many files.
    pub fn open(path: &Path, files: usize) -> Result<Source, TraceError> {
        let (input, skipped) = (Input::one_of(path, files)?, Skipped::default());
        Ok(Source { input, skipped, order: None, block: Vec::with_capacity(BLOCK_EVENTS), taken: 0 })
    }

    /// Decodes on until there are events, or the file ends.
    fn refill(&mut self) -> Result<(), TraceError> {
        self.block.clear();
        self.taken = 0;
        let mut least = HEADER_BYTES_MAX;
        while self.block.is_empty() {
            let offset = self.input.offset;
            let bytes = self.input.ahead(least)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let at_end = bytes.len() < least;
            let (used, stopped) = decode(bytes, offset, &mut self.order, &mut self.skipped, &mut self.block);
            self.input.skip(used)?;
            match stopped {
                Stopped::Full => {}
                // What was decoded comes first; the error comes again when it is its turn.
                Stopped::NoRecord if self.block.is_empty() => return Err(self.no_record()),
                Stopped::NoRecord => {}
                Stopped::Short { .. } if at_end && self.block.is_empty() => return self.truncated(),
                Stopped::Short { record_bytes } => least = record_bytes,
            }
        }
        Ok(())
    }

    fn no_record(&mut self) -> TraceError {
        let offset = self.input.offset;
        let found = match self.input.peek(4) {
            Ok(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" "),
            Err(error) => return error,
        };
        let advice = if offset == 0 {
            "give a file of blktrace, or name another format with --format".to_string()
        } else {
            format!("the file is damaged here; 'head -c {offset}' keeps what stands before")
        };
        let reason = format!("{found} is no record of blktrace version 7 or 8: {advice}");
        TraceError::damaged(&self.input.path, Place::Byte(offset), reason)
    }

    /// Notes that the last record is not whole, and ends the file there.
    fn truncated(&mut self) -> Result<(), TraceError> {
        self.skipped.truncated += 1;
        self.input.skip(usize::MAX).map(|_| ())
    }
}

impl merge::Source for Source {
    type Key = i64;
    /// An event and where it stands.
    type Item = (BlockEvent, u64);

    fn next_key(&mut self) -> Result<Option<i64>, TraceError> {
        if self.taken == self.block.len() {
            self.refill()?;
        }
        Ok(self.block.get(self.taken).map(|(event, _)| event.time_ns))
    }

    fn take(&mut self) -> Option<(BlockEvent, u64)> {
        let next = self.block.get(self.taken).copied();
        self.taken += 1;
        next
    }

    fn bytes_read(&self) -> u64 {
        self.input.file_bytes()
    }
}

/// Why decoding stopped.
enum Stopped {
    /// There are events enough.
    Full,
    /// The record that comes next needs more bytes than are there: so many.
    Short { record_bytes: usize },
    /// No record stands here.
    NoRecord,
}

/// Decodes the records in `bytes`, which stand at `offset`, as far as they are whole; gives how many bytes those are.
fn decode(
    bytes: &[u8],
    offset: u64,
    order: &mut Option<ByteOrder>,
    skipped: &mut Skipped,
    block: &mut Vec<(BlockEvent, u64)>,
) -> (usize, Stopped) {
    // A trace is of one byte order; the first record says which.
    if order.is_none() {
        *order = ByteOrder::of_magic(bytes);
    }
    // Each order has a loop of its own, in which it is not asked for at every number.
    match order {
        Some(ByteOrder::Little) => decode_in(ByteOrder::Little, bytes, offset, skipped, block),
        Some(ByteOrder::Big) => decode_in(ByteOrder::Big, bytes, offset, skipped, block),
        None if bytes.len() < 4 => (0, Stopped::Short { record_bytes: HEADER_BYTES_MAX }),
        None => (0, Stopped::NoRecord),
    }
}

#[inline(always)]
fn decode_in(
    order: ByteOrder,
    bytes: &[u8],
    offset: u64,
    skipped: &mut Skipped,
    block: &mut Vec<(BlockEvent, u64)>,
) -> (usize, Stopped) {
    let mut at = 0;
    while block.len() < BLOCK_EVENTS {
        let rest = &bytes[at..];
        if rest.len() < 4 {
            return (at, Stopped::Short { record_bytes: HEADER_BYTES_MAX });
        }
        let (header, header_bytes) = match Header::parse(rest, order) {
            Some(Ok(found)) => found,
            Some(Err(Short)) => return (at, Stopped::Short { record_bytes: HEADER_BYTES_MAX }),
            None => return (at, Stopped::NoRecord),
        };
        let record_bytes = header_bytes + usize::from(header.pdu_bytes);
        let Some(record) = rest.get(..record_bytes) else { return (at, Stopped::Short { record_bytes }) };
        match header.meaning(&record[header_bytes..]) {
            Meaning::Event(event) => block.push((event, offset + at as u64)),
            Meaning::Passthrough => skipped.passthrough += 1,
            Meaning::Zone => skipped.zone += 1,
            Meaning::Nothing => {}
        }
        at += record_bytes;
    }
    (at, Stopped::Full)
}
