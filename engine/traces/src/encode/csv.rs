//! CSV whose header has the keys of our own import, so that it is read back without a map of columns.

use super::losses::Losses;
use super::{refuse, shift_ns, EncodeError, EncodeOptions, Encoded, Encoder, Order, Source};
use std::io::Write;
use testdrive_core::{Flags, IoRecord, OpcodeCounts};

/// The format.
pub(super) struct Csv;

/// The recording's columns and the import's keys for them, in the order of the header. The phase has no key: an import is one.
const COLUMNS: [(&str, &str); 9] = [
    ("intended_ns", "intended_ns"),
    ("submit_ns", "submit_ns"),
    ("latency_ns", "latency_ns"),
    ("opcode", "op"),
    ("offset_bytes", "offset_bytes"),
    ("length_bytes", "length_bytes"),
    ("flags", "flags"),
    ("stream", "stream"),
    ("status", "status"),
];

impl Encoder for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn description(&self) -> &'static str {
        "CSV with every column of the recording, times in ns; `testdrive import` reads it back without options"
    }

    fn encode(
        &self,
        source: &dyn Source,
        options: &EncodeOptions,
        output: &mut dyn Write,
    ) -> Result<Encoded, EncodeError> {
        refuse(options.target.is_some(), "--target", "csv", "its rows name no drive")?;
        refuse(options.times.is_some(), "--times", "csv", "it has both times of each I/O")?;
        refuse(options.device.is_some(), "--device", "csv", "its rows name no device")?;
        let shift_ns = shift_ns(source)?;
        let columns: Vec<(&str, &str)> =
            COLUMNS.into_iter().filter(|(column, _)| !source.lacks(column)).collect();
        let header: Vec<&str> = columns.iter().map(|(_, key)| *key).collect();
        writeln!(output, "{}", header.join(","))?;
        let (mut written, mut losses, mut line) = (OpcodeCounts::default(), Losses::new(&[]), Vec::new());
        for row in source.rows(Order::Intended).map_err(EncodeError::Source)? {
            let row = row.map_err(EncodeError::Source)?;
            line.clear();
            for (index, (column, _)) in columns.iter().enumerate() {
                if index > 0 {
                    line.push(b',');
                }
                write_cell(&mut line, column, &row, shift_ns)?;
            }
            line.push(b'\n');
            output.write_all(&line)?;
            written.add_record(&row);
            losses.count_phase(&row);
        }
        Ok(Encoded { written, shift_ns, not_carried: losses.list(), ..Encoded::default() })
    }
}

/// Writes one cell; what is not known stands as an empty one, an unknown place as -1.
fn write_cell(line: &mut Vec<u8>, column: &str, row: &IoRecord, shift_ns: i64) -> std::io::Result<()> {
    match column {
        "intended_ns" => write!(line, "{}", row.intended_ns.saturating_sub(shift_ns)),
        "submit_ns" => write!(line, "{}", row.submit_ns.saturating_sub(shift_ns)),
        "latency_ns" if row.latency_ns < 0 => Ok(()),
        "latency_ns" => write!(line, "{}", row.latency_ns),
        "opcode" => line.write_all(row.opcode.name().as_bytes()),
        "offset_bytes" => write!(line, "{}", row.offset_bytes),
        "length_bytes" => write!(line, "{}", row.length_bytes),
        "flags" => write_flags(line, row.flags),
        "stream" if row.stream < 0 => Ok(()),
        "stream" => write!(line, "{}", row.stream),
        _ => write!(line, "{}", row.status),
    }
}

/// The flags' names, or their number where one has no name.
fn write_flags(line: &mut Vec<u8>, flags: Flags) -> std::io::Result<()> {
    let mut unnamed = flags;
    let start = line.len();
    for (flag, name) in Flags::NAMED {
        if flags.contains(flag) {
            if line.len() > start {
                line.push(b'|');
            }
            line.extend_from_slice(name.as_bytes());
            unnamed = unnamed.without(flag);
        }
    }
    if unnamed != Flags::NONE {
        line.truncate(start);
        write!(line, "{}", flags.0)?;
    }
    Ok(())
}
