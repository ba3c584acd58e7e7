//! libCacheSim's CSV of the CloudPhysics traces, whose header names the columns.

use crate::format::{Carries, Decoded};
use crate::options::OptionName;
use crate::rows::cells::{check_end, scaled_number, sectors_in_bytes, whole_number};
use crate::rows::header::Header;
use crate::rows::{
    plain, warn_of_whole_seconds, Bad, Block, Gather, LineParser, TextFormat, ABSENT_OF_PLAIN,
};
use crate::scsi::{command, Command};
use crate::Options;
use testdrive_core::{Opcode, NS_PER_S};

/// The format: time in s, SCSI operation code in hexadecimal, size in bytes, logical block of 512 bytes.
pub(crate) struct LibCacheSimCsv;

impl TextFormat for LibCacheSimCsv {
    const NAME: &'static str = "libcachesim-csv";
    const DESCRIPTION: &'static str =
        "libCacheSim's CSV of CloudPhysics, with the header version,time,op,size,lbn";
    const CARRIES: Carries =
        Carries { queue_events: false, completions: false, trims: false, volumes: false };
    const ABSENT: &'static [&'static str] = ABSENT_OF_PLAIN;
    const TAKES: &'static [OptionName] = &[];
    type Parser = Parser;

    fn parser(_options: &Options) -> Parser {
        Parser { header: None, has_fractions: false }
    }
}

pub(crate) struct Parser {
    header: Option<Header<4>>,
    has_fractions: bool,
}

impl LineParser for Parser {
    fn is_header(&mut self, line: &[u8]) -> bool {
        self.header = Header::find(line, [&["time"], &["op"], &["size"], &["lbn"]], 4);
        self.header.is_some()
    }

    fn is_comment(&self, _line: &[u8]) -> bool {
        false
    }

    fn parse(&mut self, line: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let Some(header) = self.header else {
            return Err(Bad::new("the first line does not name the columns time, op, size and lbn"));
        };
        let [time, operation, size, block_number] = header.cells(line)?;
        let time_ns = scaled_number("time", time, 9)?;
        self.has_fractions |= time_ns % NS_PER_S != 0;
        let Some(opcode) = opcode(operation, gather)? else { return Ok(()) };
        if opcode == Opcode::Flush {
            block.push(gather, 0, plain(time_ns, opcode, 0, 0));
            return Ok(());
        }
        let length_bytes = whole_number("size", size)?;
        let offset_bytes = sectors_in_bytes("lbn", whole_number("lbn", block_number)?)?;
        check_end(offset_bytes, length_bytes)?;
        block.push(gather, 0, plain(time_ns, opcode, offset_bytes, length_bytes));
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        if !self.has_fractions {
            warn_of_whole_seconds(decoded);
        }
    }
}

/// What a SCSI operation code is; `None` where it becomes no row.
fn opcode(cell: &[u8], gather: &mut Gather) -> Result<Option<Opcode>, Bad> {
    let text = std::str::from_utf8(cell).unwrap_or_default();
    let code = u8::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16);
    let code = code.map_err(|_| Bad::cell("op", cell, "is no SCSI operation code in hexadecimal"))?;
    match command(code) {
        Command::Io(opcode) => Ok(Some(opcode)),
        Command::Elsewhere(what) => {
            gather.drop(what);
            Ok(None)
        }
        Command::Other => {
            gather.drop("SCSI commands that are no reads, writes or flushes");
            Ok(None)
        }
    }
}
