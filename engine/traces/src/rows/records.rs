//! Binary files with an I/O a record, all of one size.

use super::{Bad, Block, Gather, RowReader, BLOCK_ROWS};
use crate::format::Decoded;
use crate::input::Input;
use crate::{Place, TraceError};
use std::path::Path;
use testdrive_core::IoRecord;

/// Reads the records of one file.
pub(crate) trait RecordParser {
    /// How large a record is, in a file that starts so.
    ///
    /// # Errors
    /// When the file is of another format.
    fn record_bytes(&mut self, head: &[u8]) -> Result<usize, Bad>;

    /// Reads a record: pushes its row, or counts it as dropped.
    ///
    /// # Errors
    /// When it is no record of the format.
    fn parse(&mut self, record: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad>;

    /// Notes what the whole file told of itself.
    fn describe(&self, _decoded: &mut Decoded) {}
}

/// A file being read record by record.
pub(crate) struct Records<P> {
    input: Input,
    parser: P,
    record_bytes: usize,
    cut_off: bool,
}

impl<P: RecordParser> Records<P> {
    pub fn open(path: &Path, mut parser: P) -> Result<Records<P>, TraceError> {
        let mut input = Input::open(path)?;
        let head = input.peek(64)?;
        let record_bytes =
            if head.is_empty() { 1 } else { parser.record_bytes(head).map_err(bad(path, 0))? };
        Ok(Records { input, parser, record_bytes, cut_off: false })
    }
}

impl<P: RecordParser> RowReader for Records<P> {
    fn read(&mut self, block: &mut Block, gather: &mut Gather) -> Result<bool, TraceError> {
        let offset = self.input.offset;
        block.begin_bytes(offset);
        let bytes = self.input.peek(BLOCK_ROWS * self.record_bytes)?;
        for (index, record) in bytes.chunks_exact(self.record_bytes).enumerate() {
            block.place = offset + (index * self.record_bytes) as u64;
            if let Err(reason) = self.parser.parse(record, block, gather) {
                return Err(bad(&self.input.path, block.place)(reason));
            }
        }
        let (rest, count) = (bytes.len() % self.record_bytes, bytes.len());
        if rest > 0 {
            self.cut_off = true;
            gather.drop("records cut off at the end of a file");
        }
        self.input.skip(count)?;
        Ok(count > 0)
    }

    fn file_bytes(&self) -> u64 {
        self.input.file_bytes()
    }

    fn describe(&self, decoded: &mut Decoded) {
        if self.cut_off {
            let path = self.input.path.display();
            decoded.warn(
                "truncated",
                format!("the last record of {path} is cut off: it was not written to its end"),
                "check that the copy is whole; what stands before was imported",
            );
        }
        self.parser.describe(decoded);
    }
}

/// Four bytes of a record, little-endian.
pub(crate) fn u32_at(record: &[u8], at: usize) -> u32 {
    record[at..at + 4].iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

/// Eight bytes of a record, little-endian.
pub(crate) fn u64_at(record: &[u8], at: usize) -> u64 {
    record[at..at + 8].iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// So many times `factor`, where a recording can hold it.
pub(crate) fn times(name: &str, value: u64, factor: u64) -> Result<i64, Bad> {
    let product = value.checked_mul(factor).and_then(|product| i64::try_from(product).ok());
    product.ok_or_else(|| Bad::cell(name, value.to_string().as_bytes(), "is too large"))
}

fn bad(path: &Path, offset: u64) -> impl FnOnce(Bad) -> TraceError + '_ {
    move |bad| TraceError::damaged(path, Place::Byte(offset), bad.reason())
}

/// The rows at the start of a file, if every whole record there can be read.
pub(crate) fn sample_records(head: &[u8], parser: &mut impl RecordParser) -> Option<Vec<IoRecord>> {
    let record_bytes = parser.record_bytes(head).ok()?;
    let (mut block, mut gather) = (Block::default(), Gather::default());
    for record in head.chunks_exact(record_bytes) {
        parser.parse(record, &mut block, &mut gather).ok()?;
    }
    (head.len() >= record_bytes).then(|| block.rows.iter().map(|row| row.record).collect())
}
