//! Opens a recording: checks it, recovers it after a crash, and decodes its row groups.

use crate::error::RecordingError;
use crate::manifest::Manifest;
use crate::merge::{OrderBy, OrderedRows};
use crate::recover;
use crate::schema;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use testdrive_core::{Flags, IoRecord, Opcode};

/// A recording that can be read.
#[derive(Debug)]
pub struct Recording {
    directory: PathBuf,
    /// What it is.
    pub manifest: Manifest,
    segments: Vec<PathBuf>,
}

/// Where a row group is, and the range of its times.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlace {
    pub(crate) segment: usize,
    pub(crate) group: usize,
    pub(crate) rows: usize,
    pub(crate) first_ns: i64,
}

impl Recording {
    /// Opens and checks a recording; one whose writer crashed is marked interrupted.
    ///
    /// # Errors
    /// When it is not a recording, of a newer version, or a segment is damaged or has another schema.
    pub fn open(directory: &Path) -> Result<Recording, RecordingError> {
        let manifest = Manifest::read(directory)?;
        let mut recording =
            Recording { directory: directory.to_path_buf(), manifest, segments: list_segments(directory)? };
        for path in &recording.segments {
            let reader = open_segment(path)?;
            if let Some(reason) = schema::mismatch(reader.metadata().file_metadata().schema()) {
                return Err(RecordingError::damaged(path, reason));
            }
        }
        recover::mark_interrupted_if_crashed(&mut recording)?;
        Ok(recording)
    }

    /// Lists the segments anew.
    pub(crate) fn list_again(&mut self) -> Result<(), RecordingError> {
        self.segments = list_segments(&self.directory)?;
        Ok(())
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Rows in all closed segments.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn rows(&self) -> Result<u64, RecordingError> {
        let mut rows = 0;
        for path in &self.segments {
            rows += open_segment(path)?.metadata().file_metadata().num_rows() as u64;
        }
        Ok(rows)
    }

    /// Streams every row in the order of issue, in memory that does not grow with the recording's length.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn ordered_rows(&self, order: OrderBy) -> Result<OrderedRows, RecordingError> {
        OrderedRows::new(self.segments.clone(), order)
    }

    /// Visits every row in file order.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn for_each_batch(&self, mut visit: impl FnMut(&[IoRecord])) -> Result<(), RecordingError> {
        for (segment, path) in self.segments.iter().enumerate() {
            for place in group_places(segment, path, OrderBy::Intended)? {
                visit(&read_group(path, place.group)?);
            }
        }
        Ok(())
    }
}

fn list_segments(directory: &Path) -> Result<Vec<PathBuf>, RecordingError> {
    let folder = directory.join("ios");
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RecordingError::io("list", &folder)(error)),
    };
    let mut segments: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
        .collect();
    segments.sort();
    Ok(segments)
}

pub(crate) fn open_segment(path: &Path) -> Result<SerializedFileReader<File>, RecordingError> {
    let file = File::open(path).map_err(RecordingError::io("open", path))?;
    SerializedFileReader::new(file).map_err(|error| RecordingError::damaged(path, error))
}

/// The row groups of a segment, with the smallest time of each by the chosen order.
pub(crate) fn group_places(
    segment: usize,
    path: &Path,
    order: OrderBy,
) -> Result<Vec<GroupPlace>, RecordingError> {
    let reader = open_segment(path)?;
    let mut places = Vec::new();
    for (group, metadata) in reader.metadata().row_groups().iter().enumerate() {
        let first_ns = match metadata.column(order.column()).statistics() {
            Some(Statistics::Int64(statistics)) => statistics.min_opt().copied(),
            _ => None,
        };
        let first_ns = first_ns
            .ok_or_else(|| RecordingError::damaged(path, "a row group lacks the range of its times"))?;
        places.push(GroupPlace { segment, group, rows: metadata.num_rows() as usize, first_ns });
    }
    Ok(places)
}

/// Decodes one row group.
pub(crate) fn read_group(path: &Path, group: usize) -> Result<Vec<IoRecord>, RecordingError> {
    let reader = open_segment(path)?;
    let damaged = |error: parquet::errors::ParquetError| RecordingError::damaged(path, error);
    let group = reader.get_row_group(group).map_err(damaged)?;
    let rows = group.metadata().num_rows() as usize;
    let wide = |column| read_column::<Int64Type>(&*group, column, rows).map_err(damaged);
    let narrow = |column| read_column::<Int32Type>(&*group, column, rows).map_err(damaged);
    let (intended, submit, latency, offset, length) = (wide(0)?, wide(1)?, wide(2)?, wide(3)?, wide(4)?);
    let (opcode, flags, stream, status, phase) = (narrow(5)?, narrow(6)?, narrow(7)?, narrow(8)?, narrow(9)?);
    (0..rows)
        .map(|row| {
            let opcode = Opcode::from_number(opcode[row]).ok_or_else(|| {
                RecordingError::damaged(path, format!("row {row} has opcode {}", opcode[row]))
            })?;
            let phase = u16::try_from(phase[row])
                .map_err(|_| RecordingError::damaged(path, format!("row {row} has phase {}", phase[row])))?;
            Ok(IoRecord {
                intended_ns: intended[row],
                submit_ns: submit[row],
                latency_ns: latency[row],
                offset_bytes: offset[row],
                length_bytes: length[row],
                stream: stream[row],
                status: status[row],
                phase,
                opcode,
                flags: Flags(flags[row] as u8),
            })
        })
        .collect()
}

fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    column: usize,
    rows: usize,
) -> parquet::errors::Result<Vec<T::T>> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows {
        let (read, ..) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            let message = format!("column {column} ends after {} of {rows} rows", values.len());
            return Err(parquet::errors::ParquetError::EOF(message));
        }
    }
    Ok(values)
}
