//! Opens a recording: checks it, recovers it after a crash, and decodes its row groups.

use crate::completeness;
use crate::error::RecordingError;
use crate::interval_segment;
use crate::intervals::IntervalRow;
use crate::manifest::Manifest;
use crate::merge::{OrderBy, OrderedRows};
use crate::opening::{decoded, open_segment};
use crate::recover;
use crate::segment::ROW_GROUP_ROWS;
use crate::selection::Phases;
use crate::table::IOS;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, RowGroupReader};
use parquet::file::statistics::Statistics;
use std::fs;
use std::path::{Path, PathBuf};
use testdrive_core::{Flags, IoRecord, Opcode};

/// The folder of every I/O's row.
pub(crate) const IOS_FOLDER: &str = "ios";
/// The folder of the slowest I/Os' rows, where not all are kept.
pub(crate) const SLOWEST_FOLDER: &str = "slowest";

/// Which of the columns is `phase`.
const PHASE_COLUMN: usize = 9;

/// A recording that can be read.
#[derive(Debug)]
pub struct Recording {
    directory: PathBuf,
    /// What it is.
    pub manifest: Manifest,
    segments: Vec<PathBuf>,
}

/// Where a row group is, and what its statistics tell of its rows.
#[derive(Clone, Debug)]
pub(crate) struct GroupPlace {
    pub(crate) segment: usize,
    pub(crate) group: usize,
    pub(crate) rows: usize,
    /// No row has an earlier time, by the chosen order.
    pub(crate) first_ns: i64,
    /// The least and the greatest phase.
    pub(crate) phases: (u16, u16),
}

impl Recording {
    /// Opens and checks a recording; one whose writer crashed is marked interrupted.
    ///
    /// # Errors
    /// When it is not a recording, of a newer version, or a segment is damaged, missing, or has another schema.
    pub fn open(directory: &Path) -> Result<Recording, RecordingError> {
        let manifest = Manifest::read(directory)?;
        let mut recording = Recording {
            directory: directory.to_path_buf(),
            manifest,
            segments: list_segments(directory, IOS_FOLDER)?,
        };
        let mut rows = 0;
        for path in &recording.segments {
            let reader = open_segment(path)?;
            rows += rows_of(&reader);
            if let Some(reason) = IOS.mismatch(reader.metadata().file_metadata().schema()) {
                return Err(RecordingError::damaged(path, reason));
            }
        }
        if !recover::mark_interrupted_if_crashed(&mut recording)? {
            completeness::check(&mut recording, rows)?;
        }
        Ok(recording)
    }

    /// Lists the segments anew.
    pub(crate) fn list_again(&mut self) -> Result<(), RecordingError> {
        self.segments = list_segments(&self.directory, IOS_FOLDER)?;
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
            rows += rows_of(&open_segment(path)?);
        }
        Ok(rows)
    }

    /// Streams every row in the order of issue, in memory that does not grow with the recording's length.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn ordered_rows(&self, order: OrderBy) -> Result<OrderedRows, RecordingError> {
        self.ordered_rows_of(order, &Phases::All)
    }

    /// Visits the rows of the slowest I/Os in file order, where the recording keeps only those.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn for_each_slowest(&self, mut visit: impl FnMut(&[IoRecord])) -> Result<(), RecordingError> {
        for (segment, path) in list_segments(&self.directory, SLOWEST_FOLDER)?.iter().enumerate() {
            for place in group_places(segment, path, OrderBy::Intended)? {
                visit(&read_group(path, place.group)?);
            }
        }
        Ok(())
    }

    /// Visits the histograms of a recording that does not keep every row, in file order: entries of the same interval, opcode and
    /// latency add up.
    ///
    /// # Errors
    /// When a segment cannot be read.
    pub fn for_each_interval(&self, mut visit: impl FnMut(&IntervalRow)) -> Result<(), RecordingError> {
        for path in list_segments(&self.directory, interval_segment::FOLDER)? {
            interval_segment::for_each_interval(&path, &mut visit)?;
        }
        Ok(())
    }

    /// Why its I/Os cannot be issued or written again, where it does not keep every row.
    pub fn not_every_row(&self) -> Option<String> {
        self.manifest.kept.map(|_| {
            format!(
                "{} keeps histograms and the slowest I/Os, not every row: make it again with keep \"rows\"",
                self.directory.display()
            )
        })
    }

    /// Its closed segments, in order.
    pub(crate) fn segments(&self) -> &[PathBuf] {
        &self.segments
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

/// Rows of a segment, as its footer says.
fn rows_of(segment: &impl FileReader) -> u64 {
    segment.metadata().row_groups().iter().map(|group| group.num_rows() as u64).sum()
}

/// The closed segments of one folder of a recording, in order; none where there is no such folder.
pub(crate) fn list_segments(directory: &Path, folder: &str) -> Result<Vec<PathBuf>, RecordingError> {
    let folder = directory.join(folder);
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

/// The number that the next segment of a folder gets: beyond all that are there, closed or left open by a crash.
pub(crate) fn next_segment(directory: &Path, folder: &str) -> Result<u32, RecordingError> {
    let folder = directory.join(folder);
    let mut next = 0;
    for entry in fs::read_dir(&folder).map_err(RecordingError::io("list", &folder))?.flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.split('.').next()?.parse::<u32>().ok());
        next = number.map_or(next, |number| next.max(number.saturating_add(1)));
    }
    Ok(next)
}

/// The row groups of a segment, with what can be told of their rows without reading them.
pub(crate) fn group_places(
    segment: usize,
    path: &Path,
    order: OrderBy,
) -> Result<Vec<GroupPlace>, RecordingError> {
    let reader = open_segment(path)?;
    let mut places = Vec::new();
    for (group, metadata) in reader.metadata().row_groups().iter().enumerate() {
        let least = |column: usize| match metadata.column(column).statistics() {
            Some(Statistics::Int64(statistics)) => statistics.min_opt().copied(),
            _ => None,
        };
        let rows = metadata.num_rows() as usize;
        let (Some(intended_ns), Some(submit_ns), Some(latency_ns)) = (least(0), least(1), least(2)) else {
            if rows == 0 {
                continue;
            }
            return Err(RecordingError::damaged(path, "a row group lacks the range of its times"));
        };
        let first_ns = order.bound_ns(intended_ns, submit_ns, latency_ns);
        places.push(GroupPlace { segment, group, rows, first_ns, phases: phases_of(metadata) });
    }
    Ok(places)
}

/// The range of phases in a row group: any, where its statistics do not tell.
fn phases_of(group: &RowGroupMetaData) -> (u16, u16) {
    let range = match group.column(PHASE_COLUMN).statistics() {
        Some(Statistics::Int32(statistics)) => statistics.min_opt().zip(statistics.max_opt()),
        _ => None,
    };
    let phase = |number: &i32| u16::try_from(*number).ok();
    range.and_then(|(least, greatest)| phase(least).zip(phase(greatest))).unwrap_or((0, u16::MAX))
}

/// Decodes one row group.
pub(crate) fn read_group(path: &Path, group: usize) -> Result<Vec<IoRecord>, RecordingError> {
    let reader = open_segment(path)?;
    let (rows, wide, narrow) = decoded(path, || {
        let group = reader.get_row_group(group)?;
        let rows = group.metadata().num_rows() as usize;
        let wide = |column| read_column::<Int64Type>(&*group, column, rows);
        let narrow = |column| read_column::<Int32Type>(&*group, column, rows);
        Ok((
            rows,
            [wide(0)?, wide(1)?, wide(2)?, wide(3)?, wide(4)?],
            [narrow(5)?, narrow(6)?, narrow(7)?, narrow(8)?, narrow(9)?],
        ))
    })?;
    let [intended, submit, latency, offset, length] = wide;
    let [opcode, flags, stream, status, phase] = narrow;
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

/// Decodes one column of a row group.
pub(crate) fn read_column<T: DataType>(
    group: &dyn RowGroupReader,
    column: usize,
    rows: usize,
) -> parquet::errors::Result<Vec<T::T>> {
    let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    // A damaged footer may claim any number.
    let mut values = Vec::with_capacity(rows.min(ROW_GROUP_ROWS));
    while values.len() < rows {
        let (read, ..) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            let message = format!("its column {column} ends after {} of {rows} rows", values.len());
            return Err(parquet::errors::ParquetError::EOF(message));
        }
    }
    Ok(values)
}
