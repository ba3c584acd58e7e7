//! What is done on opening a recording whose writer crashed.

use crate::error::RecordingError;
use crate::lock::{writer_state, WriterLock, WriterState};
use crate::manifest::Manifest;
use crate::manifest::{Counts, Status};
use crate::reader::{open_segment, Recording};
use crate::writer::count_rows;
use std::fs;

/// Marks a recording interrupted when it says `running` and its writer is gone; one in progress is left alone.
pub(crate) fn mark_interrupted_if_crashed(recording: &mut Recording) -> Result<(), RecordingError> {
    if recording.manifest.status != Status::Running
        || writer_state(recording.directory()) == WriterState::Alive
    {
        return Ok(());
    }
    // The writer may have finished between the reading of the manifest and the look at its lock.
    recording.manifest = Manifest::read(recording.directory())?;
    if recording.manifest.status != Status::Running {
        return recording.list_again();
    }
    keep_whole_segments(recording);
    recording.list_again()?;
    let mut counts = Counts::default();
    let mut span = None;
    recording.for_each_batch(|rows| count_rows(&mut counts, &mut span, rows))?;
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
            Ok(())
        }
        result => result,
    }
}

/// Gives segments that were closed but not yet renamed their final name, and removes those that were never closed.
fn keep_whole_segments(recording: &Recording) {
    for entry in fs::read_dir(recording.directory().join("ios")).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "open") {
            let _ = match open_segment(&path) {
                Ok(_) => fs::rename(&path, path.with_extension("")),
                Err(_) => fs::remove_file(&path),
            };
        }
    }
}
