//! Text with an I/O a line.

use super::{Bad, Block, Gather, RowReader, BLOCK_ROWS};
use crate::decimal::scaled;
use crate::format::Decoded;
use crate::input::Input;
use crate::{Place, TraceError};
use std::path::Path;
use testdrive_core::IoRecord;

/// Lines of a head that are tried.
const SAMPLE_LINES: usize = 200;

/// Reads the lines of one file.
pub(crate) trait LineParser {
    /// Whether lines are written when I/Os end: see [`RowReader::is_in_order_of_ends`].
    const IN_ORDER_OF_ENDS: bool = false;

    /// Reads a line that is neither empty nor a comment: pushes its row, counts it as dropped, or passes over it.
    ///
    /// # Errors
    /// When it is no line of the format.
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad>;

    /// Whether the first line names the columns. By default: when there is a word in it and no number.
    fn is_header(&mut self, line: &[u8]) -> bool {
        is_header(line)
    }

    /// Whether a line is a comment.
    fn is_comment(&self, line: &[u8]) -> bool {
        line.starts_with(b"#")
    }

    /// Hands out what is left at the end of the file.
    fn finish(&mut self, _block: &mut Block, _gather: &mut Gather) {}

    /// Notes what the whole file told of itself.
    fn describe(&self, _decoded: &mut Decoded) {}
}

/// Whether none of a line's cells, which any usual delimiter separates, is a number.
pub(crate) fn is_header(line: &[u8]) -> bool {
    let mut any = false;
    for cell in line.split(|byte| matches!(byte, b',' | b';' | b'\t' | b' ')) {
        let cell = cell.trim_ascii();
        if cell.first().is_some_and(|&first| first == b'-' || first.is_ascii_digit())
            || scaled(cell, 0).is_ok()
        {
            return false;
        }
        any |= !cell.is_empty();
    }
    any
}

/// A file being read line by line.
pub(crate) struct Lines<P> {
    input: Input,
    parser: P,
    /// Lines read.
    number: u64,
    /// Whether a line that is no header was seen.
    began: bool,
    cut_off: bool,
}

impl<P: LineParser> Lines<P> {
    pub fn open(path: &Path, parser: P) -> Result<Lines<P>, TraceError> {
        Ok(Lines { input: Input::open(path)?, parser, number: 0, began: false, cut_off: false })
    }
}

impl<P: LineParser> RowReader for Lines<P> {
    fn read(&mut self, block: &mut Block, gather: &mut Gather) -> Result<bool, TraceError> {
        block.begin(self.number);
        // Lines that become no rows are bounded as well, so that progress is told.
        for _ in 0..2 * BLOCK_ROWS {
            let Some((line, ended)) = self.input.line()? else {
                self.parser.finish(block, gather);
                return Ok(false);
            };
            self.number += 1;
            block.place = self.number;
            if line.trim_ascii().is_empty() || self.parser.is_comment(line) {
                continue;
            }
            if !std::mem::replace(&mut self.began, true) && self.parser.is_header(line) {
                continue;
            }
            match self.parser.parse(line, block, gather) {
                Ok(()) => {}
                Err(_) if !ended && self.number > 1 => {
                    // Whoever wrote the file was stopped within the line.
                    self.cut_off = true;
                    gather.drop("lines cut off at the end of a file");
                }
                Err(bad) => {
                    let place = Place::Line(self.number);
                    return Err(TraceError::damaged(&self.input.path, place, bad.reason()));
                }
            }
            if block.rows.len() >= BLOCK_ROWS {
                break;
            }
        }
        Ok(true)
    }

    fn file_bytes(&self) -> u64 {
        self.input.file_bytes()
    }

    fn is_in_order_of_ends(&self) -> bool {
        P::IN_ORDER_OF_ENDS
    }

    fn describe(&self, decoded: &mut Decoded) {
        if self.cut_off {
            decoded.warn(
                "truncated",
                format!(
                    "the last line of {} is cut off: it was not written to its end",
                    self.input.path.display()
                ),
                "check that the copy is whole; what stands before was imported",
            );
        }
        self.parser.describe(decoded);
    }
}

/// The rows at the start of a file, if there are any and every line there can be read.
pub(crate) fn sample(head: &[u8], parser: &mut impl LineParser) -> Option<Vec<IoRecord>> {
    // The last line may go on behind the head.
    let whole = memchr::memrchr(b'\n', head).map_or(head, |end| &head[..end]);
    let (mut block, mut gather, mut began) = (Block::default(), Gather::default(), false);
    for line in whole.split(|&byte| byte == b'\n').take(SAMPLE_LINES) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.trim_ascii().is_empty() || parser.is_comment(line) {
            continue;
        }
        if !std::mem::replace(&mut began, true) && parser.is_header(line) {
            continue;
        }
        parser.parse(line, &mut block, &mut gather).ok()?;
    }
    parser.finish(&mut block, &mut gather);
    let rows: Vec<IoRecord> = block.rows.iter().map(|row| row.record).collect();
    (!rows.is_empty()).then_some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_words_is_a_header_and_one_with_a_number_is_none() {
        for header in ["Timestamp,Response,IOType,LUN", "time device", "a;b;c"] {
            assert!(is_header(header.as_bytes()), "{header}");
        }
        for line in ["1,a,b", "a,b,7", "x -5 y", "1.5e3", "5x,R", ""] {
            assert!(!is_header(line.as_bytes()), "{line}");
        }
    }
}
