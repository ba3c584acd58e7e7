//! The traces of a virtual desktop infrastructure that were published with SYSTOR '17.

use crate::format::Carries;
use crate::rows::cells::{check_end, scaled_number};
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat};
use crate::Options;
use testdrive_core::{IoRecord, Opcode, NO_COMPLETION};

/// The format: time of issue in s since 1970, response time in s, R or W or nothing, LUN, offset in bytes, size in bytes.
pub(crate) struct Systor17;

impl TextFormat for Systor17 {
    const NAME: &'static str = "systor17";
    const DESCRIPTION: &'static str = "SYSTOR '17 traces, CSV: Timestamp,Response,IOType,LUN,Offset,Size";
    const CARRIES: Carries = Carries { queue_events: false, completions: true, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = &["intended_ns", "flags", "stream", "status"];
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser
    }
}

pub(crate) struct Parser;

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let mut cells = Cells::separated(line, b',');
        let submit_ns = cells.scaled("Timestamp", 9)?;
        let latency_ns = latency_ns(cells.cell("Response")?, gather)?;
        let opcode = match cells.cell("IOType")? {
            b"R" | b"r" => Some(Opcode::Read),
            b"W" | b"w" => Some(Opcode::Write),
            b"" => None,
            cell => return Err(Bad::cell("IOType", cell, "is neither R nor W")),
        };
        let unit = cells.number_text("LUN")?;
        let offset_bytes = cells.whole("Offset")?;
        let length_bytes = cells.whole("Size")?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let Some(opcode) = opcode else {
            gather
                .drop("I/Os of which it is not known whether they read or write, since no response was seen");
            return Ok(());
        };
        let volume = gather.volume(unit, || String::from_utf8_lossy(unit).into_owned())?;
        let record = IoRecord { latency_ns, ..plain(submit_ns, opcode, offset_bytes, length_bytes) };
        block.push(gather, volume, record);
        Ok(())
    }
}

/// Packets were lost when the traces were taken: some responses are missing or came before their requests.
fn latency_ns(cell: &[u8], gather: &mut Gather) -> Result<i64, Bad> {
    match cell {
        b"" => Ok(NO_COMPLETION),
        [b'-', rest @ ..] => {
            scaled_number("Response", rest, 9)?;
            gather.drop("response times below zero");
            Ok(NO_COMPLETION)
        }
        _ => scaled_number("Response", cell, 9),
    }
}
