//! SPC: the traces of the Storage Performance Council, as the UMass repository publishes them.

use crate::format::Carries;
use crate::rows::cells::check_end;
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat, ABSENT_OF_PLAIN};
use crate::Options;

/// The format: application storage unit, first block of 512 bytes, size in bytes, R or W, time in s; further fields are optional.
pub(crate) struct Spc;

impl TextFormat for Spc {
    const NAME: &'static str = "spc";
    const DESCRIPTION: &'static str = "SPC, UMass CSV: ASU,LBA,size,R|W,time (s)";
    const CARRIES: Carries = Carries { queue_events: false, completions: false, trims: false, volumes: true };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser
    }
}

pub(crate) struct Parser;

impl LineParser for Parser {
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let mut cells = Cells::separated(line, b',');
        let unit = cells.number_text("the ASU")?;
        let offset_bytes = cells.sectors("the LBA")?;
        let length_bytes = cells.whole("the size")?;
        let opcode = cells.read_or_write("the opcode")?;
        let time_ns = cells.scaled("the timestamp", 9)?;
        check_end(offset_bytes, length_bytes)?;
        let volume = gather.volume(unit, || String::from_utf8_lossy(unit).into_owned())?;
        block.push(gather, volume, plain(time_ns, opcode, offset_bytes, length_bytes));
        Ok(())
    }
}
