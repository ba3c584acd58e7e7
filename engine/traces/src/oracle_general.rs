//! oracleGeneral: the binary format that libCacheSim keeps traces of caches in.

use crate::format::{Carries, Confidence, Decoded, Format, Sink};
use crate::options::{OptionName, Options};
use crate::rows::cells::check_end;
use crate::rows::records::{times, u32_at, u64_at};
use crate::rows::{
    self, plain, warn_of_whole_seconds, Bad, Block, Gather, RecordParser, Records, ABSENT_OF_PLAIN,
};
use crate::TraceError;
use std::path::{Path, PathBuf};
use testdrive_core::{Opcode, NS_PER_S};

/// Time in s (u32), object (u64), size in bytes (u32), when the object is next asked for (i64).
const RECORD_BYTES: usize = 24;
/// No trace is that long.
const RECORDS_MAX: i64 = 1 << 40;

/// The format. It does not tell reads from writes, nor where objects are: their numbers are addresses in traces of block devices,
/// and anything at all in others.
pub(crate) struct OracleGeneral;

impl Format for OracleGeneral {
    fn name(&self) -> &'static str {
        "oracle-general"
    }

    fn description(&self) -> &'static str {
        "libCacheSim's oracleGeneral, binary: time (s), object, size; no operations"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: false, completions: false, trims: false, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::ObjectBytes]
    }

    /// There is no mark. Times do not go back, and what is asked for next is further on or never: by chance, bytes are not so; and
    /// text has no zeroes.
    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        let (mut last_s, mut any) = (0, false);
        if !head.contains(&0) {
            return Confidence::No;
        }
        for (index, record) in head.chunks_exact(RECORD_BYTES).enumerate() {
            let (time_s, next) = (u32_at(record, 0), u64_at(record, 16) as i64);
            let is_next = matches!(next, -1 | i64::MAX) || (index as i64 + 1..RECORDS_MAX).contains(&next);
            if time_s < last_s || !is_next || u32_at(record, 12) == 0 {
                return Confidence::No;
            }
            (last_s, any) = (time_s, true);
        }
        if any {
            Confidence::Content
        } else {
            Confidence::No
        }
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let open = |path: &Path| Records::open(path, Parser { object_bytes: options.object_bytes });
        let mut decoded = rows::decode(inputs, options, sink, false, open)?;
        decoded.absent_columns.extend(ABSENT_OF_PLAIN);
        decoded.absent("opcode");
        if options.object_bytes.is_none() {
            decoded.absent("offset_bytes");
            decoded.warn(
                "objects_not_placed",
                "the trace has objects by their numbers, which need not be addresses: offsets are absent"
                    .into(),
                "where objects are blocks of a device, say of how many bytes, as in --object-bytes 512",
            );
        }
        warn_of_whole_seconds(&mut decoded);
        Ok(decoded)
    }
}

struct Parser {
    object_bytes: Option<u64>,
}

impl RecordParser for Parser {
    fn record_bytes(&mut self, _head: &[u8]) -> Result<usize, Bad> {
        Ok(RECORD_BYTES)
    }

    fn parse(&mut self, record: &[u8], block: &mut Block, gather: &mut Gather) -> Result<(), Bad> {
        let time_ns = i64::from(u32_at(record, 0)) * NS_PER_S;
        let offset_bytes = match self.object_bytes {
            Some(object_bytes) => times("the object", u64_at(record, 4), object_bytes)?,
            None => -1,
        };
        let length_bytes = i64::from(u32_at(record, 12));
        check_end(offset_bytes, length_bytes)?;
        block.push(gather, 0, plain(time_ns, Opcode::Read, offset_bytes, length_bytes));
        Ok(())
    }
}
