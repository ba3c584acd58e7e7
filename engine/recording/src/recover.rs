//! What is done on opening a recording whose writer crashed.

use crate::error::RecordingError;
use crate::interval_segment::FOLDER;
use crate::intervals::Quantity;
use crate::lock::{writer_state, WriterLock, WriterState};
use crate::manifest::Manifest;
use crate::manifest::{Counts, Status};
use crate::opening::open_segment;
use crate::reader::{Recording, IOS_FOLDER, SLOWEST_FOLDER};
use crate::writer::count_rows;
use std::fs;
use testdrive_core::OpcodeCounts;

/// Marks a recording interrupted when it says `running` and its writer is gone; one in progress is left alone. Returns whether its
/// segments were listed anew.
pub(crate) fn mark_interrupted_if_crashed(recording: &mut Recording) -> Result<bool, RecordingError> {
    if recording.manifest.status != Status::Running
        || writer_state(recording.directory()) == WriterState::Alive
    {
        return Ok(false);
    }
    // The writer may have finished between the reading of the manifest and the look at its lock.
    recording.manifest = Manifest::read(recording.directory())?;
    if recording.manifest.status != Status::Running {
        return recording.list_again().map(|()| true);
    }
    keep_whole_segments(recording)?;
    recording.list_again()?;
    let (counts, span) = count_again(recording)?;
    let manifest = &mut recording.manifest;
    manifest.counts = counts;
    manifest.status = Status::Interrupted;
    manifest.status_reason = Some("the writing process ended without closing the recording".into());
    if let (Some(phase), Some((_, last_ns))) = (manifest.phases.last_mut(), span) {
        phase.end_ns = phase.end_ns.max(last_ns);
    }
    let directory = recording.directory();
    let _ = fs::remove_file(directory.join("reserve"));
    WriterLock::remove(directory);
    match recording.manifest.write(directory) {
        // A recording on a read-only disk can still be read; it is then recovered anew on each opening.
        Err(RecordingError::Io { source, .. })
            if matches!(
                source.kind(),
                std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Ok(true)
        }
        result => result.map(|()| true),
    }
}

/// Gives segments that were closed but not yet renamed their final name, and removes those that were never closed.
///
/// # Errors
/// When the system does not let one be read: it may be whole, and nothing is settled then.
fn keep_whole_segments(recording: &Recording) -> Result<(), RecordingError> {
    let folders = [IOS_FOLDER, SLOWEST_FOLDER, FOLDER].map(|folder| recording.directory().join(folder));
    for entry in folders.into_iter().flat_map(|folder| fs::read_dir(folder).into_iter().flatten().flatten()) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "open") {
            let _ = match open_segment(&path) {
                Ok(_) => fs::rename(&path, path.with_extension("")),
                Err(RecordingError::Damaged { .. }) => fs::remove_file(&path),
                // Another reader settled it meanwhile.
                Err(RecordingError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    Ok(())
                }
                Err(error) => return Err(error),
            };
        }
    }
    Ok(())
}

/// Counts what is in closed segments, with the span from the first intended or submit time to the last completion or submit.
///
/// Where not every row is kept, I/Os, bytes and errors are those of the histograms; the span begins and ends with the I/Os that are kept.
pub(crate) fn count_again(recording: &Recording) -> Result<(Counts, Option<(i64, i64)>), RecordingError> {
    let (mut counts, mut span) = (Counts::default(), None);
    recording.for_each_batch(|rows| count_rows(&mut counts, &mut span, rows))?;
    if recording.manifest.kept.is_none() {
        return Ok((counts, span));
    }
    recording.for_each_slowest(|rows| count_rows(&mut counts, &mut span, rows))?;
    let mut by_opcode = OpcodeCounts::default();
    recording.for_each_interval(|entry| {
        if entry.quantity == Quantity::Service {
            let failed = if entry.latency_ceiling_ns < 0 { entry.bucket.count } else { 0 };
            by_opcode.add_many(entry.opcode, entry.bucket.count, entry.bucket.bytes, failed);
        }
    })?;
    let total = by_opcode.total();
    (counts.ios, counts.bytes, counts.errors, counts.by_opcode) =
        (total.ios, total.bytes, total.errors, by_opcode);
    Ok((counts, span))
}
