//! `intervals/NNNNN.parquet`: the histograms of a long run, written as they are closed.

use crate::error::RecordingError;
use crate::intervals::{IntervalRow, Quantity};
use crate::opening::{decoded, open_segment};
use crate::reader::read_column;
use crate::reserve::Reserve;
use crate::segment::{create_file, SealedSegment, SegmentWriter};
use crate::table::INTERVALS;
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::reader::FileReader;
use std::path::{Path, PathBuf};
use testdrive_core::{Bucket, Opcode};

/// The folder of a recording.
pub(crate) const FOLDER: &str = "intervals";
/// Entries of a row group.
const ROW_GROUP_ROWS: usize = 65_536;

/// `intervals/NNNNN.parquet.open`.
pub(crate) struct IntervalSegment {
    writer: SegmentWriter,
    open_path: PathBuf,
    wide: Vec<Vec<i64>>,
    narrow: Vec<Vec<i32>>,
}

impl IntervalSegment {
    /// Creates segment `index` in `directory`/intervals.
    pub(crate) fn create(directory: &Path, index: u32, reserve: &Reserve) -> Result<Self, RecordingError> {
        let (writer, open_path) = create_file(directory, FOLDER, index, reserve, &INTERVALS)?;
        let narrow = INTERVALS.columns.len() - INTERVALS.wide;
        Ok(IntervalSegment {
            writer,
            open_path,
            wide: vec![Vec::new(); INTERVALS.wide],
            narrow: vec![Vec::new(); narrow],
        })
    }

    /// Bytes encoded so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes()
    }

    /// Takes entries; encodes a row group whenever one is full.
    pub(crate) fn append(&mut self, rows: &[IntervalRow]) -> Result<(), RecordingError> {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        for row in rows {
            let Bucket { count, sum_ns, max_ns, bytes } = row.bucket;
            let wide = [
                row.start_ns,
                row.latency_ceiling_ns,
                row.kept_from_ns,
                number(count),
                number(sum_ns),
                number(max_ns),
                number(bytes),
            ];
            let narrow = [row.quantity as i32, row.opcode as i32, row.stream, i32::from(row.phase)];
            self.wide.iter_mut().zip(wide).for_each(|(column, value)| column.push(value));
            self.narrow.iter_mut().zip(narrow).for_each(|(column, value)| column.push(value));
        }
        if self.wide[0].len() >= ROW_GROUP_ROWS {
            self.encode()?;
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), RecordingError> {
        if !self.wide[0].is_empty() {
            let written = self.writer.write_group(&self.wide, &self.narrow);
            written.map_err(RecordingError::encode(&self.open_path))?;
            self.wide.iter_mut().for_each(Vec::clear);
            self.narrow.iter_mut().for_each(Vec::clear);
        }
        Ok(())
    }

    /// Encodes the rest.
    pub(crate) fn seal(mut self) -> Result<SealedSegment, RecordingError> {
        self.encode()?;
        Ok(SealedSegment::new(self.writer, self.open_path))
    }
}

/// Visits the entries of a closed segment, a row group at a time.
pub(crate) fn for_each_interval(
    path: &Path,
    mut visit: impl FnMut(&IntervalRow),
) -> Result<(), RecordingError> {
    let reader = open_segment(path)?;
    if let Some(reason) = INTERVALS.mismatch(reader.metadata().file_metadata().schema()) {
        return Err(RecordingError::damaged(path, reason));
    }
    for index in 0..reader.num_row_groups() {
        let (rows, wide, narrow) = decoded(path, || {
            let group = reader.get_row_group(index)?;
            let rows = group.metadata().num_rows() as usize;
            let wide: Vec<Vec<i64>> = (0..INTERVALS.wide)
                .map(|column| read_column::<Int64Type>(&*group, column, rows))
                .collect::<Result<_, _>>()?;
            let narrow: Vec<Vec<i32>> = (INTERVALS.wide..INTERVALS.columns.len())
                .map(|column| read_column::<Int32Type>(&*group, column, rows))
                .collect::<Result<_, _>>()?;
            Ok((rows, wide, narrow))
        })?;
        for row in 0..rows {
            let number = |column: usize| u64::try_from(wide[column][row]).unwrap_or(0);
            let entry = IntervalRow {
                start_ns: wide[0][row],
                latency_ceiling_ns: wide[1][row],
                kept_from_ns: wide[2][row],
                bucket: Bucket { count: number(3), sum_ns: number(4), max_ns: number(5), bytes: number(6) },
                quantity: if narrow[0][row] == 0 { Quantity::Service } else { Quantity::Response },
                opcode: Opcode::from_number(narrow[1][row])
                    .ok_or_else(|| RecordingError::damaged(path, "an entry has no known opcode"))?,
                stream: narrow[2][row],
                phase: u16::try_from(narrow[3][row])
                    .map_err(|_| RecordingError::damaged(path, "an entry has no possible phase"))?,
            };
            visit(&entry);
        }
    }
    Ok(())
}
