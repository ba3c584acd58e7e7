//! One Parquet segment being written: rows are gathered by column and encoded a row group at a time.

use crate::error::RecordingError;
use crate::footer::SegmentSink;
use crate::manifest_file::sync_folder;
use crate::pages::ChunkEncoder;
use crate::reserve::Reserve;
use crate::table::{Table, IOS};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::SchemaDescriptor;
use std::fs::{self, OpenOptions};
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
pub(crate) struct SegmentWriter {
    file: SerializedFileWriter<SegmentSink>,
    chunks: ChunkEncoder,
}

impl SegmentWriter {
    /// Bytes encoded so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes_written() as u64
    }

    /// Encodes one row group from its columns.
    pub(crate) fn write_group(
        &mut self,
        wide: &[Vec<i64>],
        narrow: &[Vec<i32>],
    ) -> parquet::errors::Result<()> {
        let mut group = self.file.next_row_group()?;
        for (column, values) in wide.iter().enumerate() {
            let (chunk, close) = self.chunks.encode::<Int64Type>(column, values)?;
            group.append_column(&chunk, close)?;
        }
        for (column, values) in narrow.iter().enumerate() {
            let (chunk, close) = self.chunks.encode::<Int32Type>(wide.len() + column, values)?;
            group.append_column(&chunk, close)?;
        }
        group.close().map(|_| ())
    }

    /// Writes the footer with its checksum, and makes the file durable.
    fn finish(mut self) -> parquet::errors::Result<()> {
        self.file.append_key_value_metadata(SegmentSink::place_for_checksum());
        self.file.flush()?;
        self.file.inner_mut().hold_footer();
        self.file.finish()?;
        self.file.inner_mut().write_footer()?;
        Ok(self.file.inner().sync()?)
    }
}

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
    let (schema, properties) = (table.message_type(), Arc::new(table.writer_properties()));
    let columns = Arc::new(SchemaDescriptor::new(schema.clone()));
    let chunks =
        ChunkEncoder::new(columns, properties.clone()).map_err(RecordingError::io("compress", &open_path))?;
    let file = SerializedFileWriter::new(SegmentSink::new(reserve.guard(file)), schema, properties)
        .map_err(RecordingError::encode(&open_path))?;
    Ok((SegmentWriter { file, chunks }, open_path))
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
        self.writer.bytes()
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
            self.writer
                .write_group(&self.columns.wide, &self.columns.narrow)
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
        self.writer.bytes()
    }

    /// Writes the footer, makes the file durable and gives it its final name.
    pub(crate) fn close(self) -> Result<(), RecordingError> {
        let SealedSegment { writer, open_path } = self;
        writer.finish().map_err(RecordingError::encode(&open_path))?;
        let path = open_path.with_extension("");
        fs::rename(&open_path, &path).map_err(RecordingError::io("rename", &open_path))?;
        sync_folder(path.parent().unwrap_or(Path::new("")))
    }
}
