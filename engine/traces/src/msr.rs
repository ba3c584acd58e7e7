//! MSR Cambridge: CSV of the block traces that Microsoft Research published in 2008, and of those made after them.

use crate::format::Carries;
use crate::rows::cells::{check_end, too_large};
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat};
use crate::Options;
use testdrive_core::{IoRecord, Opcode};

/// Ticks of 100 ns from the year 1601, where Windows begins to count, to 1970. They are whole seconds.
const TICKS_TO_1970: i64 = 116_444_736_000_000_000;

/// The format: Timestamp, Hostname, DiskNumber, Type, Offset, Size, ResponseTime.
pub(crate) struct Msr;

impl TextFormat for Msr {
    const NAME: &'static str = "msr";
    const DESCRIPTION: &'static str =
        "MSR Cambridge CSV: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
    const CARRIES: Carries = Carries { queue_events: false, completions: true, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = &["intended_ns", "flags", "stream", "status"];
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser { epoch_ticks: None }
    }
}

pub(crate) struct Parser {
    /// Where times count from: 1601 in the published traces, and 0 in those that were shifted to their start.
    epoch_ticks: Option<i64>,
}

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let mut cells = Cells::separated(line, b',');
        let ticks = cells.whole("Timestamp")?;
        let volume = volume(&mut cells, gather)?;
        let opcode = opcode(cells.cell("Type")?)?;
        let offset_bytes = cells.whole("Offset")?;
        let length_bytes = cells.whole("Size")?;
        let response_ticks = cells.whole("ResponseTime")?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let epoch_ticks =
            *self.epoch_ticks.get_or_insert(if ticks >= TICKS_TO_1970 { TICKS_TO_1970 } else { 0 });
        let submit_ns = nanoseconds("Timestamp", ticks, epoch_ticks)?;
        let latency_ns = nanoseconds("ResponseTime", response_ticks, 0)?;
        let record = IoRecord { latency_ns, ..plain(submit_ns, opcode, offset_bytes, length_bytes) };
        block.push(gather, volume, record);
        Ok(())
    }
}

/// Host and disk together are the volume, as in the names of the published files: `hm_0`.
fn volume(cells: &mut Cells<'_>, gather: &mut Gather) -> Result<u32, Bad> {
    let before = cells.rest();
    let host = cells.cell("Hostname")?;
    let disk = cells.cell("DiskNumber")?;
    let key = &before[..before.len() - cells.rest().len()];
    gather.volume(key, || format!("{}_{}", String::from_utf8_lossy(host), String::from_utf8_lossy(disk)))
}

fn opcode(cell: &[u8]) -> Result<Opcode, Bad> {
    match cell {
        b"Read" => Ok(Opcode::Read),
        b"Write" => Ok(Opcode::Write),
        _ if cell.eq_ignore_ascii_case(b"read") || cell.eq_ignore_ascii_case(b"r") => Ok(Opcode::Read),
        _ if cell.eq_ignore_ascii_case(b"write") || cell.eq_ignore_ascii_case(b"w") => Ok(Opcode::Write),
        _ => Err(Bad::cell("Type", cell, "is neither Read nor Write")),
    }
}

fn nanoseconds(name: &str, ticks: i64, epoch_ticks: i64) -> Result<i64, Bad> {
    let since = ticks.checked_sub(epoch_ticks).filter(|&since| since >= 0);
    let since = since.ok_or_else(|| {
        Bad::cell(name, ticks.to_string().as_bytes(), "is before 1970, though the first one is not")
    })?;
    since.checked_mul(100).ok_or_else(|| too_large(name, ticks))
}
