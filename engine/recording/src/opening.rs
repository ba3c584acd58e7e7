//! Opens the files of a recording, which may be anything by now: what is wrong with them is told, and nothing of it is believed.

use crate::contained::contained;
use crate::error::RecordingError;
use crate::footer;
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::{self, File};
use std::path::Path;

/// Opens a file for reading. To open anything else, a pipe above all, could wait for ever.
pub(crate) fn open_file(path: &Path) -> Result<File, RecordingError> {
    let kind = fs::metadata(path).map_err(RecordingError::io("open", path))?.file_type();
    if !kind.is_file() {
        let found = if kind.is_dir() { "it is a directory, not a file" } else { "it is not a regular file" };
        return Err(RecordingError::damaged(path, found));
    }
    File::open(path).map_err(RecordingError::io("open", path))
}

/// Opens a segment. What its footer says of row groups lies within the file then: the decoder takes that for granted.
pub(crate) fn open_segment(path: &Path) -> Result<SerializedFileReader<File>, RecordingError> {
    let file = open_file(path)?;
    let file_bytes = file.metadata().map_err(RecordingError::io("read", path))?.len();
    if !footer::is_sound(&file, file_bytes).map_err(RecordingError::io("read", path))? {
        return Err(RecordingError::damaged(path, "its footer is not as it was written"));
    }
    decoded(path, || {
        let reader = SerializedFileReader::new(file)?;
        for group in reader.metadata().row_groups() {
            check_group(group, file_bytes).map_err(ParquetError::General)?;
        }
        Ok(reader)
    })
}

/// Decodes a part of a segment. What the decoder cannot make sense of is damaged, also where it panics.
pub(crate) fn decoded<T>(
    path: &Path,
    decode: impl FnOnce() -> Result<T, ParquetError>,
) -> Result<T, RecordingError> {
    let failed = match contained(decode) {
        Ok(Ok(result)) => return Ok(result),
        Ok(Err(error)) => error,
        Err(reason) => return Err(RecordingError::damaged(path, reason)),
    };
    match failed {
        // The disk, not what is on it; what zstd finds wrong has no number of the system.
        ParquetError::External(error) => match error.downcast::<std::io::Error>() {
            Ok(error) if error.raw_os_error().is_some() => Err(RecordingError::io("read", path)(*error)),
            Ok(error) => Err(RecordingError::damaged(path, error)),
            Err(error) => Err(RecordingError::damaged(path, error)),
        },
        ParquetError::General(reason) if reason.starts_with("Page CRC") => {
            Err(RecordingError::damaged(path, "a page of it is not as it was written"))
        }
        ParquetError::General(reason) | ParquetError::EOF(reason) => {
            Err(RecordingError::damaged(path, format!("it is not a whole Parquet file ({reason})")))
        }
        other => Err(RecordingError::damaged(path, other)),
    }
}

/// Whether what a row group says of itself can be.
fn check_group(group: &RowGroupMetaData, file_bytes: u64) -> Result<(), String> {
    let rows = group.num_rows();
    if u32::try_from(rows).is_err() {
        return Err(format!("a row group claims to have {rows} rows"));
    }
    for column in group.columns() {
        let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
        let length = column.compressed_size();
        let end = u64::try_from(start).ok().zip(u64::try_from(length).ok());
        if end.and_then(|(start, length)| start.checked_add(length)).is_none_or(|end| end > file_bytes) {
            return Err(format!("a column claims {length} bytes from {start} on, of {file_bytes}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Manifest, RecordingKind, RecordingWriter, Status, WriterLimits};
    use testdrive_core::{Flags, IoRecord, Opcode};

    #[test]
    fn a_footer_that_claims_what_cannot_be_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        let limits = WriterLimits { reserve_bytes: 1 << 16, ..WriterLimits::default() };
        let manifest = Manifest::new(RecordingKind::Import, "trace");
        let mut writer = RecordingWriter::create(&path, manifest, limits).unwrap();
        let row = IoRecord {
            intended_ns: 1,
            submit_ns: 2,
            latency_ns: 3,
            offset_bytes: 0,
            length_bytes: 4096,
            stream: 0,
            status: 0,
            phase: 0,
            opcode: Opcode::Read,
            flags: Flags::NONE,
        };
        writer.append(&[row]).unwrap();
        writer.finish(Status::Complete, None).unwrap();
        let segment = path.join("ios/00000.parquet");
        let file_bytes = fs::metadata(&segment).unwrap().len();
        let reader = open_segment(&segment).unwrap();
        let group = reader.metadata().row_group(0);
        assert_eq!(check_group(group, file_bytes), Ok(()));

        let with_rows = |rows| group.clone().into_builder().set_num_rows(rows).build().unwrap();
        for rows in [-1, i64::MAX] {
            let reason = check_group(&with_rows(rows), file_bytes).unwrap_err();
            assert_eq!(reason, format!("a row group claims to have {rows} rows"));
        }
        let with_length = |length| {
            let mut columns = group.columns().to_vec();
            columns[3] = columns[3].clone().into_builder().set_total_compressed_size(length).build().unwrap();
            group.clone().into_builder().set_column_metadata(columns).build().unwrap()
        };
        for length in [-1, i64::MAX, file_bytes as i64] {
            let reason = check_group(&with_length(length), file_bytes).unwrap_err();
            assert!(reason.starts_with(&format!("a column claims {length} bytes")), "{reason}");
        }
    }
}
