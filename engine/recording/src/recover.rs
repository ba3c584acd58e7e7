//! What is done on opening a recording whose writer crashed.

use crate::error::RecordingError;
use crate::manifest::{Counts, Status};
use crate::process;
use crate::reader::Recording;
use crate::writer::count_rows;
use std::fs;

/// Marks a recording interrupted when it says `running` and its writer is gone; one in progress is left alone.
pub(crate) fn mark_interrupted_if_crashed(recording: &mut Recording) -> Result<(), RecordingError> {
    if recording.manifest.status != Status::Running || process::is_alive(&recording.manifest.writer) {
        return Ok(());
    }
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
    for entry in fs::read_dir(directory.join("ios")).into_iter().flatten().flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "open") {
            let _ = fs::remove_file(entry.path());
        }
    }
    let _ = fs::remove_file(directory.join("reserve"));
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
