//! What must be true of every decoding, whatever the bytes were.

use crate::memory::peak_of;
use std::error::Error;
use std::path::PathBuf;
use testdrive_core::{IoRecord, NS_PER_S};
use testdrive_traces::{decode, Decoded, Events, Format, OptionName, Options, Sink, TraceError};

/// What a decoder may hold beyond what the input's size explains: buffers, windows, a batch for each volume.
const FIXED_BYTES: usize = 96 << 20;
/// What it may hold for each byte of the input: a row for every few bytes, in several stages.
const BYTES_PER_BYTE: usize = 1 << 10;

/// Rows as they came.
#[derive(Default)]
struct Rows {
    rows: Vec<IoRecord>,
    progress: Option<(u64, u64)>,
}

impl Sink for Rows {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.rows.extend_from_slice(rows);
        Ok(())
    }

    fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some((before, total)) = self.progress {
            assert!(before <= bytes_read && total == bytes_total, "progress went back");
        }
        assert!(bytes_read <= bytes_total, "{bytes_read} of {bytes_total} bytes were read");
        self.progress = Some((bytes_read, bytes_total));
        Ok(())
    }
}

/// Decodes files, checks what comes of it, and gives the rows.
///
/// # Errors
/// The decoder's own, of which the message was checked.
pub fn decoded(
    format: &dyn Format,
    inputs: &[PathBuf],
    options: &Options,
) -> Result<(Vec<IoRecord>, Decoded), TraceError> {
    let input_bytes: usize =
        inputs.iter().map(|path| std::fs::metadata(path).map_or(0, |file| file.len() as usize)).sum();
    let mut sink = Rows::default();
    let (peak_bytes, result) = peak_of(|| decode(format, inputs, options, &mut sink));
    assert!(
        peak_bytes <= FIXED_BYTES + input_bytes * BYTES_PER_BYTE,
        "{peak_bytes} bytes were held for an input of {input_bytes}"
    );
    match result {
        Ok(decoded) => {
            let (read, total) = sink.progress.expect("the end of an import is told");
            assert_eq!(read, total, "the last progress is the whole input");
            check(&sink.rows, &decoded, options);
            // What was queued first need not have become a row, and one volume of several need not be the one that began.
            if !format.takes().contains(&OptionName::Events) && options.volume.is_none() {
                let first_ns = sink.rows.iter().map(|row| row.intended_ns.min(row.submit_ns)).min();
                assert!(first_ns < Some(NS_PER_S), "the first I/O is at {first_ns:?} ns");
            }
            Ok((sink.rows, decoded))
        }
        Err(error) => {
            check_error(&error);
            Err(error)
        }
    }
}

/// Checks rows and what was said of them.
pub fn check(rows: &[IoRecord], decoded: &Decoded, options: &Options) {
    check_rows(rows, decoded, options);
    check_decoded(decoded);
}

fn check_rows(rows: &[IoRecord], decoded: &Decoded, options: &Options) {
    assert!(!rows.is_empty(), "a trace without rows is an error");
    for row in rows {
        assert!(row.latency_ns >= -1 && row.length_bytes >= 0 && row.offset_bytes >= -1, "{row:?}");
        assert!(row.status >= 0 && row.stream >= -1 && row.phase == 0, "{row:?}");
        assert!(row.intended_ns >= 0 && row.submit_ns >= 0, "before the time zero: {row:?}");
        assert!(row.submit_ns.checked_add(row.latency_ns.max(0)).is_some(), "ends beyond time: {row:?}");
        assert!(row.offset_bytes.checked_add(row.length_bytes).is_some(), "ends beyond any drive: {row:?}");
        check_absent(row, &decoded.absent_columns);
    }
    match decoded.events {
        _ if rows.len() >= 1 << 17 => {}
        Some(Events::Queued) if options.events.is_some() => {
            assert!(rows.is_sorted_by_key(|row| row.intended_ns), "queued I/Os are out of order");
        }
        Some(Events::Issued) if options.events.is_some() => {
            assert!(rows.is_sorted_by_key(|row| row.submit_ns), "issued I/Os are out of order");
        }
        _ => {}
    }
}

/// Absent columns hold the fillers of the recording format.
fn check_absent(row: &IoRecord, absent: &[&str]) {
    for column in absent {
        let filler = match *column {
            "intended_ns" | "submit_ns" => row.intended_ns == row.submit_ns,
            "latency_ns" => row.latency_ns == -1,
            "offset_bytes" => row.offset_bytes == -1,
            "length_bytes" => row.length_bytes == 0,
            "opcode" => row.opcode as i32 == 0,
            "flags" => row.flags.0 == 0,
            "stream" => row.stream == -1,
            "status" => row.status == 0,
            other => panic!("there is no column {other}"),
        };
        assert!(filler, "{column} is absent, and yet {row:?}");
    }
}

fn check_decoded(decoded: &Decoded) {
    assert_eq!(decoded.shift_ns % NS_PER_S, 0, "times are shifted by whole seconds");
    assert!(!decoded.files.is_empty(), "no file was read");
    for (index, dropped) in decoded.dropped.iter().enumerate() {
        assert!(dropped.count > 0 && !dropped.what.is_empty(), "{dropped:?}");
        assert!(decoded.dropped[..index].iter().all(|other| other.what != dropped.what), "{dropped:?} twice");
    }
    for warning in &decoded.warnings {
        assert!(!warning.code.is_empty() && !warning.message.is_empty(), "{warning:?}");
    }
    for (index, column) in decoded.absent_columns.iter().enumerate() {
        assert!(!decoded.absent_columns[..index].contains(column), "{column} is absent twice");
    }
}

/// A message is for a person: one line of bounded length.
fn check_error(error: &TraceError) {
    let message = error.to_string();
    assert!(!message.is_empty() && message.len() < 4096, "a message of {} bytes", message.len());
    assert!(!message.contains('\n'), "a message of several lines: {message}");
}
