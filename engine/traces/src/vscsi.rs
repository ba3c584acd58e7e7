//! VSCSI, versions 1 and 2: what VMware's vscsiStats traces became at CloudPhysics, as libCacheSim reads them.

use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::options::{OptionName, Options};
use crate::rows::cells::check_end;
use crate::rows::records::{times, u32_at, u64_at};
use crate::rows::{self, plain, sample_records, Bad, Block, Gather, RecordParser, Records, ABSENT_OF_PLAIN};
use crate::scsi::{command, Command};
use crate::TraceError;
use std::path::{Path, PathBuf};
use testdrive_core::{IoRecord, Opcode, SECTOR_BYTES};

/// Records of version 1: number, bytes, scatter-gather elements, operation code, version, block, us.
const V1_BYTES: usize = 32;
/// Of version 2: operation code, version, number, bytes, scatter-gather elements, block, us, response time.
const V2_BYTES: usize = 40;

/// The format.
pub(crate) struct Vscsi;

impl Format for Vscsi {
    fn name(&self) -> &'static str {
        "vscsi"
    }

    fn description(&self) -> &'static str {
        "VSCSI traces of CloudPhysics and libCacheSim, binary, versions 1 and 2"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: false, completions: false, trims: false, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[]
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        match sample_records(head, &mut Parser::default()) {
            Some(_) => Confidence::Content,
            None => Confidence::No,
        }
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let open = |path: &Path| Records::open(path, Parser::default());
        let mut decoded = rows::decode(inputs, options, sink, false, open)?;
        decoded.absent_columns.extend(ABSENT_OF_PLAIN);
        Ok(decoded)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Version {
    #[default]
    One,
    Two,
}

impl Version {
    /// The version that a record says it is of.
    fn of(record: &[u8]) -> Option<Version> {
        match (record.get(15), record.get(3)) {
            (Some(1), _) if record.len() >= V1_BYTES => Some(Version::One),
            (_, Some(2)) if record.len() >= V2_BYTES => Some(Version::Two),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Parser {
    version: Version,
}

impl RecordParser for Parser {
    fn record_bytes(&mut self, head: &[u8]) -> Result<usize, Bad> {
        self.version = Version::of(head).ok_or_else(|| {
            Bad::new("there is no record of VSCSI version 1 or 2: give such a file, or name another format")
        })?;
        Ok(match self.version {
            Version::One => V1_BYTES,
            Version::Two => V2_BYTES,
        })
    }

    fn parse(&mut self, record: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let two = |at: usize| u16::from_le_bytes([record[at], record[at + 1]]);
        let (code, version, length_at) = match self.version {
            Version::One => (two(12), two(14) >> 8, 4),
            Version::Two => (two(0), two(2) >> 8, 8),
        };
        let expected = if self.version == Version::One { 1 } else { 2 };
        if version != expected {
            let reason =
                format!("the record's version is {version}, and that of the first is {expected}: the file is damaged here");
            return Err(Bad::new(reason));
        }
        let Ok(code) = u8::try_from(code) else {
            return Err(Bad::new(format!("the operation code is {code:#x}, which no SCSI command has")));
        };
        let opcode = match command(code) {
            Command::Io(opcode) => opcode,
            Command::Elsewhere(what) => {
                gather.drop(what);
                return Ok(());
            }
            Command::Other => {
                gather.drop("SCSI commands that are no reads, writes or flushes");
                return Ok(());
            }
        };
        block.push(gather, 0, row(record, opcode, length_at)?);
        Ok(())
    }

    fn describe(&self, decoded: &mut Decoded) {
        if self.version == Version::Two {
            decoded.warn(
                "response_times_left_out",
                "the records hold response times, but of which unit is not documented: they were not imported".into(),
                "take latencies from another trace of the same system",
            );
        }
    }
}

fn row(record: &[u8], opcode: Opcode, length_at: usize) -> Result<IoRecord, Bad> {
    let time_ns = times("the time", u64_at(record, 24), 1000)?;
    if opcode == Opcode::Flush {
        return Ok(plain(time_ns, opcode, 0, 0));
    }
    let offset_bytes = times("the block", u64_at(record, 16), SECTOR_BYTES)?;
    let length_bytes = i64::from(u32_at(record, length_at));
    check_end(offset_bytes, length_bytes)?;
    Ok(plain(time_ns, opcode, offset_bytes, length_bytes))
}
