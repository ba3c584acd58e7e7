//! Alibaba's block traces of 2020.

use crate::format::Carries;
use crate::rows::cells::check_end;
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser, TextFormat, ABSENT_OF_PLAIN};
use crate::Options;

/// The format: device, R or W, offset in bytes, length in bytes, time in us since 1970.
pub(crate) struct Alibaba;

impl TextFormat for Alibaba {
    const NAME: &'static str = "alibaba";
    const DESCRIPTION: &'static str = "Alibaba block traces, CSV: device,R|W,offset,length,time (us)";
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
        let device = cells.number_text("the device")?;
        let opcode = cells.read_or_write("the opcode")?;
        let offset_bytes = cells.whole("the offset")?;
        let length_bytes = cells.whole("the length")?;
        let time_ns = cells.scaled("the timestamp", 3)?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let volume = gather.volume(device, || String::from_utf8_lossy(device).into_owned())?;
        block.push(gather, volume, plain(time_ns, opcode, offset_bytes, length_bytes));
        Ok(())
    }
}
