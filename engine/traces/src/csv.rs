//! CSV of any kind, with a map that says which column is what.

mod columns;
mod row;

use crate::format::{Carries, Confidence, Decoded, Format, FoundBy, Sink};
use crate::input::Progress;
use crate::options::{OptionName, Options};
use crate::shown::shown;
use crate::unpack::Content;
use crate::{Place, TraceError};
use ::csv::{ByteRecord, Reader, ReaderBuilder};
use columns::{Columns, Key};
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use testdrive_core::{IoRecord, NS_PER_S};

/// Longer records are no I/O.
const RECORD_BYTES_MAX: usize = 1 << 20;
/// Rows handed to the sink at once.
const BATCH_ROWS: usize = 8192;

/// Longer names of columns are cut.
const COLUMN_NAME_BYTES_MAX: usize = 80;

/// The format.
pub(crate) struct Csv;

impl Format for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn description(&self) -> &'static str {
        "CSV of any kind, one I/O a line, with --columns to say which column is what"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true, volumes: false }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::Columns]
    }

    fn found_by(&self) -> FoundBy {
        FoundBy::Name
    }

    /// By a header of our own keys, as an export has it; else by name only, since what has commas may be of any of the formats
    /// that are CSV underneath.
    fn detect(&self, head: &[u8], file_name: &str) -> Confidence {
        let is_text = !head.contains(&0);
        if is_text && columns::names_keys_only(first_line(head)) {
            Confidence::Content
        } else if is_text && file_name.to_ascii_lowercase().ends_with(".csv") {
            Confidence::Name
        } else {
            Confidence::No
        }
    }

    /// Reads the file twice: rows may stand in any order, and the earliest tells how far times are shifted.
    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let [path] = inputs else {
            return Err(TraceError::Usage("CSV files are imported one at a time: give one".into()));
        };
        if path.exists() && !path.is_file() {
            let message = format!(
                "{} is no regular file, and CSV is read twice: save it to a file first",
                path.display()
            );
            return Err(TraceError::Usage(message));
        }
        let mut table = Table::open(path, &options.columns)?;
        let mut earliest_ns: Option<i64> = None;
        while let Some(row) = table.next()? {
            let time_ns = row.intended_ns.min(row.submit_ns);
            earliest_ns = Some(earliest_ns.map_or(time_ns, |earliest| earliest.min(time_ns)));
        }
        let Some(earliest_ns) = earliest_ns else {
            let reason = "there is no line after the header".into();
            return Err(TraceError::NoIos { path: path.clone(), reason });
        };
        let shift_ns = earliest_ns.div_euclid(NS_PER_S) * NS_PER_S;
        let mut table = Table::open(path, &options.columns)?;
        hand_out(&mut table, shift_ns, sink)?;
        Ok(Decoded {
            files: inputs.to_vec(),
            shift_ns,
            absent_columns: absent(&table.columns),
            ..Decoded::default()
        })
    }
}

fn hand_out(table: &mut Table, shift_ns: i64, sink: &mut dyn Sink) -> Result<(), TraceError> {
    let mut progress = Progress::over(std::slice::from_ref(&table.path))?;
    let mut batch = Vec::with_capacity(BATCH_ROWS);
    loop {
        let row = table.next()?;
        if let Some(row) = row {
            batch.push(IoRecord {
                intended_ns: row.intended_ns - shift_ns,
                submit_ns: row.submit_ns - shift_ns,
                ..row
            });
        }
        if batch.len() >= BATCH_ROWS || row.is_none() {
            sink.rows(&batch).map_err(TraceError::Sink)?;
            batch.clear();
        }
        let read = table.file_bytes.load(Ordering::Relaxed);
        if progress.is_due(read) || row.is_none() {
            sink.progress(read, progress.bytes_total).map_err(TraceError::Sink)?;
        }
        if row.is_none() {
            return Ok(());
        }
    }
}

/// Columns of the recording that the CSV does not have.
fn absent(columns: &Columns) -> Vec<&'static str> {
    let has = |key: Key| columns.get(key).is_some();
    let ends = has(Key::Latency) || has(Key::Complete) || has(Key::Response);
    let present = [
        ("intended_ns", has(Key::Intended)),
        ("submit_ns", has(Key::Submit)),
        ("latency_ns", ends),
        ("offset_bytes", has(Key::Offset)),
        ("length_bytes", has(Key::Length)),
        ("opcode", has(Key::Op)),
        ("flags", has(Key::Flags)),
        ("stream", has(Key::Stream)),
        ("status", has(Key::Status)),
    ];
    present.iter().filter(|(_, present)| !present).map(|(name, _)| *name).collect()
}

/// A CSV being read.
struct Table {
    path: PathBuf,
    file_bytes: Arc<AtomicU64>,
    reader: Reader<Bounded>,
    columns: Columns,
    record: ByteRecord,
    /// Whether `record` holds the first line, which is no header and not yet handed out.
    first_waits: bool,
}

impl Table {
    fn open(path: &Path, wanted: &[(String, String)]) -> Result<Table, TraceError> {
        let content = Content::open(path)?;
        let file_bytes = content.file_bytes();
        let mut file = BufReader::new(content);
        let start = match file.fill_buf() {
            Ok(start) => start,
            Err(error) => return Err(file.get_ref().error(error)),
        };
        if start.is_empty() {
            return Err(TraceError::Empty { path: path.to_path_buf() });
        }
        let delimiter = delimiter(start);
        if start.starts_with(b"\xef\xbb\xbf") {
            file.consume(3);
        }
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .delimiter(delimiter)
            .trim(::csv::Trim::All)
            .comment(Some(b'#'))
            .from_reader(Bounded { file, left_bytes: RECORD_BYTES_MAX });
        let mut record = ByteRecord::new();
        if !read_record(&mut reader, &mut record, path)? {
            return Err(TraceError::Empty { path: path.to_path_buf() });
        }
        let first: Vec<String> = record.iter().map(|cell| shown(cell, COLUMN_NAME_BYTES_MAX)).collect();
        let columns = Columns::find(wanted, &first)?;
        let first_waits = !columns.has_header;
        Ok(Table { path: path.to_path_buf(), file_bytes, reader, columns, record, first_waits })
    }

    fn next(&mut self) -> Result<Option<IoRecord>, TraceError> {
        let waits = std::mem::take(&mut self.first_waits);
        if !waits && !read_record(&mut self.reader, &mut self.record, &self.path)? {
            return Ok(None);
        }
        row::parse(&self.record, &self.columns).map(Some).map_err(|reason| {
            let line = self.record.position().map_or(0, ::csv::Position::line);
            TraceError::damaged(&self.path, Place::Line(line), reason)
        })
    }
}

/// A file of which a record may not take more than [`RECORD_BYTES_MAX`]: a quotation mark that is never closed would otherwise make one
/// record of all that follows.
struct Bounded {
    file: BufReader<Content>,
    /// What may still be read for the record.
    left_bytes: usize,
}

impl Read for Bounded {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.left_bytes == 0 {
            return Err(std::io::Error::other(TooLong));
        }
        let wanted = buffer.len().min(self.left_bytes);
        let count = self.file.read(&mut buffer[..wanted])?;
        self.left_bytes -= count;
        Ok(count)
    }
}

/// A record is longer than any.
#[derive(Debug)]
struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("the record is too long")
    }
}

impl std::error::Error for TooLong {}

fn read_record(
    reader: &mut Reader<Bounded>,
    record: &mut ByteRecord,
    path: &Path,
) -> Result<bool, TraceError> {
    let line = reader.position().line();
    reader.get_mut().left_bytes = RECORD_BYTES_MAX;
    reader.read_byte_record(record).map_err(|error| match error.into_kind() {
        ::csv::ErrorKind::Io(source) if source.get_ref().is_some_and(|inner| inner.is::<TooLong>()) => {
            let reason = format!(
                "there is no end of the record within {RECORD_BYTES_MAX} bytes: a quotation mark may not be closed, or the file is no CSV"
            );
            TraceError::damaged(path, Place::Line(line), reason)
        }
        ::csv::ErrorKind::Io(source) => reader.get_ref().file.get_ref().error(source),
        other => TraceError::Usage(format!("{}: {other:?}", path.display())),
    })
}

/// The first line that is no comment.
fn first_line(start: &[u8]) -> &[u8] {
    start.split(|&byte| byte == b'\n').find(|line| !line.starts_with(b"#")).unwrap_or(start)
}

/// Comma, semicolon or tab: whichever the first line has most of.
fn delimiter(start: &[u8]) -> u8 {
    let line = first_line(start);
    let count = |delimiter: u8| line.iter().filter(|&&byte| byte == delimiter).count();
    [b';', b'\t', b','].into_iter().max_by_key(|&delimiter| count(delimiter)).unwrap_or(b',')
}
