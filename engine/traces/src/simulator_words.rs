//! The line that simulators of drives share: time, device, first sector, sectors, and what is done, with spaces between.

use crate::rows::cells::check_end;
use crate::rows::{plain, Bad, Block, Cells, Gather, LineParser};
use testdrive_core::Opcode;

/// Reads such lines.
pub(crate) struct Words {
    /// How many decimal digits the times' unit is above a nanosecond.
    pub time_digits: u32,
    /// Whether times may have a fraction.
    pub has_fractions: bool,
    /// What the last word says.
    pub opcode: fn(&[u8]) -> Result<Opcode, Bad>,
}

impl LineParser for Words {
    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let mut cells = Cells::words(line);
        if !self.has_fractions {
            let time = cells.clone().cell("the time")?;
            if time.contains(&b'.') {
                return Err(Bad::cell("the time", time, "has a fraction, as in DiskSim's format only"));
            }
        }
        let time_ns = cells.scaled("the time", self.time_digits)?;
        let device = cells.number_text("the device")?;
        let offset_bytes = cells.sectors("the sector")?;
        let length_bytes = cells.sectors("the number of sectors")?;
        let opcode = (self.opcode)(cells.cell("the operation")?)?;
        cells.end()?;
        check_end(offset_bytes, length_bytes)?;
        let volume = gather.volume(device, || String::from_utf8_lossy(device).into_owned())?;
        block.push(gather, volume, plain(time_ns, opcode, offset_bytes, length_bytes));
        Ok(())
    }
}

/// 1 for a read and 0 for a write.
pub(crate) fn read_or_write(word: &[u8]) -> Result<Opcode, Bad> {
    match word {
        b"1" => Ok(Opcode::Read),
        b"0" => Ok(Opcode::Write),
        _ => Err(Bad::cell("the operation", word, "is neither 1 (read) nor 0 (write)")),
    }
}
