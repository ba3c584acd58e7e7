//! One Parquet segment being written: rows are gathered by column and encoded a row group at a time.

use crate::error::RecordingError;
use crate::reserve::{Reserve, ReservedFile};
use crate::table::{Table, IOS};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use std::fs::{self, OpenOptions};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use testdrive_core::IoRecord;

/// Rows of a row group: small enough that a reader's column buffers fit its cache budget, large enough for the encodings.
pub(crate) const ROW_GROUP_ROWS: usize = 131_072;

/// Rows that are taken apart at once: each column reads all of them, so that they should stay in the cache.
const CACHED_ROWS: usize = 256;

/// Rows by column, as the encoder wants them.
#[derive(Default)]
struct Columns {
    wide: [Vec<i64>; IOS.wide],
    narrow: [Vec<i32>; 5],
}

impl Columns {
    fn extend(&mut self, rows: &[IoRecord]) {
        let [intended, submit, latency, offset, length] = &mut self.wide;
        intended.extend(rows.iter().map(|row| row.intended_ns));
        submit.extend(rows.iter().map(|row| row.submit_ns));
        latency.extend(rows.iter().map(|row| row.latency_ns));
        offset.extend(rows.iter().map(|row| row.offset_bytes));
        length.extend(rows.iter().map(|row| row.length_bytes));
        let [opcode, flags, stream, status, phase] = &mut self.narrow;
        opcode.extend(rows.iter().map(|row| row.opcode as i32));
        flags.extend(rows.iter().map(|row| i32::from(row.flags.0)));
        stream.extend(rows.iter().map(|row| row.stream));
        status.extend(rows.iter().map(|row| row.status));
        phase.extend(rows.iter().map(|row| i32::from(row.phase)));
    }

    fn clear(&mut self) {
        self.wide.iter_mut().for_each(Vec::clear);
        self.narrow.iter_mut().for_each(Vec::clear);
    }
}

/// What encodes a segment.
pub(crate) type SegmentWriter = SerializedFileWriter<BufWriter<ReservedFile>>;

/// Creates `directory`/`folder`/NNNNN.parquet.open.
pub(crate) fn create_file(
    directory: &Path,
    folder: &str,
    index: u32,
    reserve: &Reserve,
    table: &Table,
) -> Result<(SegmentWriter, PathBuf), RecordingError> {
    let open_path = directory.join(folder).join(format!("{index:05}.parquet.open"));
    let file = OpenOptions::new().write(true).create_new(true).open(&open_path);
    let file = file.map_err(RecordingError::io("create", &open_path))?;
    let file = BufWriter::with_capacity(1 << 20, reserve.guard(file));
    let writer = SerializedFileWriter::new(file, table.message_type(), Arc::new(table.writer_properties()))
        .map_err(RecordingError::encode(&open_path))?;
    Ok((writer, open_path))
}

/// `ios/NNNNN.parquet.open`, or the same of the slowest I/Os.
pub(crate) struct Segment {
    writer: SegmentWriter,
    /// Of the row group to come.
    gathered: Vec<IoRecord>,
    columns: Columns,
    open_path: PathBuf,
    rows: usize,
}

impl Segment {
    /// Creates segment `index` in `directory`/`folder`.
    pub(crate) fn create(
        directory: &Path,
        folder: &str,
        index: u32,
        reserve: &Reserve,
    ) -> Result<Segment, RecordingError> {
        let (writer, open_path) = create_file(directory, folder, index, reserve, &IOS)?;
        let gathered = Vec::with_capacity(ROW_GROUP_ROWS);
        Ok(Segment { writer, gathered, columns: Columns::default(), open_path, rows: 0 })
    }

    /// Rows taken so far.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes encoded so far; rows that are gathered for the next row group are not among them.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Takes rows; encodes a row group whenever one is full.
    pub(crate) fn append(&mut self, mut rows: &[IoRecord]) -> Result<(), RecordingError> {
        self.rows += rows.len();
        while !rows.is_empty() {
            let (now, later) = rows.split_at(rows.len().min(ROW_GROUP_ROWS - self.gathered.len()));
            self.gathered.extend_from_slice(now);
            if self.gathered.len() == ROW_GROUP_ROWS {
                self.encode()?;
            }
            rows = later;
        }
        Ok(())
    }

    fn encode(&mut self) -> Result<(), RecordingError> {
        if !self.gathered.is_empty() {
            // In the order of their times, neighbours differ by little, which takes a third less disk than the order of completion.
            if !self.gathered.is_sorted_by_key(|row| row.intended_ns) {
                self.gathered.sort_by_key(|row| row.intended_ns);
            }
            for rows in self.gathered.chunks(CACHED_ROWS) {
                self.columns.extend(rows);
            }
            self.gathered.clear();
            let group = self.writer.next_row_group().map_err(RecordingError::encode(&self.open_path))?;
            encode_group(group, &self.columns.wide, &self.columns.narrow)
                .map_err(RecordingError::encode(&self.open_path))?;
            self.columns.clear();
        }
        Ok(())
    }

    /// Encodes the rest. What remains to do is disk work, for which nobody need wait.
    pub(crate) fn seal(mut self) -> Result<SealedSegment, RecordingError> {
        self.encode()?;
        Ok(SealedSegment::new(self.writer, self.open_path))
    }
}

/// A segment to which no row will be added.
pub(crate) struct SealedSegment {
    writer: SegmentWriter,
    open_path: PathBuf,
}

impl SealedSegment {
    /// Of a writer to which nothing will be added.
    pub(crate) fn new(writer: SegmentWriter, open_path: PathBuf) -> SealedSegment {
        SealedSegment { writer, open_path }
    }

    /// Its bytes but for the footer.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Writes the footer, makes the file durable and gives it its final name.
    pub(crate) fn close(self) -> Result<(), RecordingError> {
        let SealedSegment { mut writer, open_path } = self;
        writer.finish().map_err(RecordingError::encode(&open_path))?;
        let file = writer.inner().get_ref();
        file.sync().map_err(RecordingError::io("sync", &open_path))?;
        let path = open_path.with_extension("");
        fs::rename(&open_path, &path).map_err(RecordingError::io("rename", &open_path))?;
        let folder = path.parent().unwrap_or(Path::new("."));
        let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(RecordingError::io("sync", folder))
    }
}

/// Encodes one row group from its columns.
pub(crate) fn encode_group(
    mut group: SerializedRowGroupWriter<'_, BufWriter<ReservedFile>>,
    wide: &[Vec<i64>],
    narrow: &[Vec<i32>],
) -> parquet::errors::Result<()> {
    for values in wide {
        let mut column = group.next_column()?.expect("the schema has a column for each vector");
        column.typed::<Int64Type>().write_batch(values, None, None)?;
        column.close()?;
    }
    for values in narrow {
        let mut column = group.next_column()?.expect("the schema has a column for each vector");
        column.typed::<Int32Type>().write_batch(values, None, None)?;
        column.close()?;
    }
    group.close().map(|_| ())
}
