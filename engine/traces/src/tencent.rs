//! Tencent's cloud block storage traces of 2018.

use crate::format::{Carries, Decoded};
use crate::rows::cells::check_end;
use crate::rows::{
    plain, sample, warn_of_whole_seconds, Bad, Block, Cells, Gather, LineParser, TextFormat, ABSENT_OF_PLAIN,
};
use crate::Options;
use testdrive_core::{Opcode, NS_PER_S};

/// Times that tell a trace from other columns of numbers: from 2001 to 2100.
const EPOCH_S: std::ops::Range<i64> = 1_000_000_000..4_102_444_800;

/// The format: time in s since 1970, offset in sectors of 512 bytes, size in sectors, 0 for a read or 1 for a write, volume.
pub(crate) struct Tencent;

impl TextFormat for Tencent {
    const NAME: &'static str = "tencent";
    const DESCRIPTION: &'static str = "Tencent CBS traces, CSV: time (s),offset,size,0|1 (write),volume";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser
    }

    /// Any five columns of whole numbers could be it, if the times were not those of a calendar.
    fn fits(head: &[u8]) -> bool {
        sample(head, &mut Parser)
            .is_some_and(|rows| rows.iter().all(|row| EPOCH_S.contains(&(row.intended_ns / NS_PER_S))))
    }
}

pub(crate) struct Parser;

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let mut cells = Cells::separated(line, b',');
        let time_ns = cells.scaled("the timestamp", 9)?;
        let offset_bytes = cells.sectors("the offset")?;
        let length_bytes = cells.sectors("the size")?;
        let opcode = match cells.cell("the type")? {
            b"0" => Opcode::Read,
            b"1" => Opcode::Write,
            cell => return Err(Bad::cell("the type", cell, "is neither 0 (read) nor 1 (write)")),
        };
        let volume = cells.number_text("the volume")?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let volume = gather.volume(volume, || String::from_utf8_lossy(volume).into_owned())?;
        block.push(gather, volume, plain(time_ns, opcode, offset_bytes, length_bytes));
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        warn_of_whole_seconds(decoded);
    }
}
