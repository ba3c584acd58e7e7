//! One line of a CSV as a row.

use super::columns::{Column, Columns, Key, Unit};
use crate::decimal::{scaled, whole, NotANumber};
use crate::shown::shown;
use csv::ByteRecord;
use testdrive_core::{Flags, IoRecord, Opcode, NO_COMPLETION};

/// Bytes of a cell that messages show.
const SHOWN_BYTES: usize = 40;

/// Reads a line; the error says which column holds what, and what to do.
pub(super) fn parse(record: &ByteRecord, columns: &Columns) -> Result<IoRecord, String> {
    let time = |key| columns.get(key).map(|column| number(record, column)).transpose();
    let (intended, submit) = (time(Key::Intended)?, time(Key::Submit)?);
    let submit_ns = submit.or(intended).unwrap_or(0);
    let intended_ns = intended.unwrap_or(submit_ns);
    let opcode = match columns.get(Key::Op) {
        Some(column) => opcode(record, column)?,
        None => Opcode::Read,
    };
    let offset_bytes = offset(record, columns.get(Key::Offset), opcode)?;
    let length_bytes = place(record, columns.get(Key::Length), opcode)?;
    let stream = optional(record, columns.get(Key::Stream))?.map_or(Ok(-1), to_i32)?;
    let status = optional(record, columns.get(Key::Status))?.map_or(Ok(0), to_i32)?;
    Ok(IoRecord {
        intended_ns,
        submit_ns,
        latency_ns: latency_ns(record, columns, intended_ns, submit_ns)?,
        offset_bytes: offset_bytes.unwrap_or(-1),
        length_bytes: length_bytes.unwrap_or(0),
        stream,
        status,
        phase: 0,
        opcode,
        flags: columns.get(Key::Flags).map_or(Ok(Flags::NONE), |column| flags(record, column))?,
    })
}

/// Completion - submission, whichever way the line says it. An empty cell is a completion that was not seen.
fn latency_ns(
    record: &ByteRecord,
    columns: &Columns,
    intended_ns: i64,
    submit_ns: i64,
) -> Result<i64, String> {
    if let Some(latency_ns) = optional(record, columns.get(Key::Latency))? {
        return Ok(latency_ns);
    }
    for (key, from_ns) in [(Key::Complete, 0), (Key::Response, intended_ns)] {
        let Some(column) = columns.get(key) else { continue };
        let Some(value) = optional(record, Some(column))? else { continue };
        let complete_ns =
            from_ns.checked_add(value).ok_or_else(|| complain(record, column, "is too large"))?;
        if complete_ns < submit_ns {
            return Err(complain(
                record,
                column,
                "lies before the submission: check the columns and their units",
            ));
        }
        return Ok(complete_ns - submit_ns);
    }
    Ok(NO_COMPLETION)
}

/// The offset; -1 says that it is not known, as in the recording itself.
fn offset(record: &ByteRecord, column: Option<&Column>, opcode: Opcode) -> Result<Option<i64>, String> {
    match column {
        Some(column) if cell(record, column)? == b"-1" => Ok(Some(-1)),
        column => place(record, column, opcode),
    }
}

/// Offset or length; a flush needs neither.
fn place(record: &ByteRecord, column: Option<&Column>, opcode: Opcode) -> Result<Option<i64>, String> {
    match column {
        Some(column) if opcode == Opcode::Flush && cell(record, column)?.is_empty() => Ok(Some(0)),
        Some(column) => number(record, column).map(Some),
        None => Ok(None),
    }
}

fn optional(record: &ByteRecord, column: Option<&Column>) -> Result<Option<i64>, String> {
    match column {
        Some(column) if !cell(record, column)?.is_empty() => number(record, column).map(Some),
        _ => Ok(None),
    }
}

fn number(record: &ByteRecord, column: &Column) -> Result<i64, String> {
    let cell = cell(record, column)?;
    let value = match column.unit {
        Unit::Time(scale) => scaled(cell, scale),
        Unit::Times(factor) => {
            whole(cell).and_then(|value| value.checked_mul(factor).ok_or(NotANumber::TooLarge))
        }
        Unit::Word => Err(NotANumber::Malformed),
    };
    value.map_err(|error| {
        let advice = match error {
            NotANumber::Negative => "; leave the cell empty where a completion was not seen",
            _ => "",
        };
        complain(record, column, &format!("{}{advice}", error.reason()))
    })
}

fn opcode(record: &ByteRecord, column: &Column) -> Result<Opcode, String> {
    let text = cell(record, column)?.to_ascii_lowercase();
    match &text[..] {
        b"r" => Ok(Opcode::Read),
        b"w" => Ok(Opcode::Write),
        b"d" | b"t" | b"discard" | b"unmap" | b"deallocate" => Ok(Opcode::Trim),
        b"f" => Ok(Opcode::Flush),
        b"wz" | b"write zeroes" | b"write-zeroes" => Ok(Opcode::WriteZeroes),
        other => std::str::from_utf8(other).ok().and_then(Opcode::from_name).ok_or_else(|| {
            complain(record, column, "is none of read, write, trim, flush, write_zeroes, R, W, D, T, F")
        }),
    }
}

/// Names of flags with `|`, `+` or a space between them, or the recording's own number; none in an empty cell.
fn flags(record: &ByteRecord, column: &Column) -> Result<Flags, String> {
    let unknown = || {
        complain(record, column, "is neither a number below 256 nor fua, preflush, sync, metadata or read_ahead, with | between several")
    };
    let text = std::str::from_utf8(cell(record, column)?).map_err(|_| unknown())?;
    if text.starts_with(|first: char| first.is_ascii_digit()) {
        return text.parse().map(Flags).map_err(|_| unknown());
    }
    let names = text.split(['|', '+', ' ']).filter(|name| !name.is_empty());
    names
        .into_iter()
        .try_fold(Flags::NONE, |flags, name| Ok(flags | Flags::from_name(name).ok_or_else(unknown)?))
}

fn cell<'r>(record: &'r ByteRecord, column: &Column) -> Result<&'r [u8], String> {
    record.get(column.index).ok_or_else(|| {
        format!("there are {} cells, and none for {}: the line may be cut off", record.len(), column.shown)
    })
}

fn complain(record: &ByteRecord, column: &Column, what: &str) -> String {
    let value = shown(record.get(column.index).unwrap_or_default(), SHOWN_BYTES);
    format!("{} is '{value}', which {what}", column.shown)
}

fn to_i32(value: i64) -> Result<i32, String> {
    i32::try_from(value).map_err(|_| format!("{value} is too large for a stream or status"))
}
