//! The thread that writes down what the drive measures of itself.

use crate::stop::Stop;
use std::path::Path;
use std::sync::mpsc::Receiver;
use testdrive_drives::Target;
use testdrive_recording::{DriveSample, RecordingError, Status, TelemetrySummary, TelemetryWriter};

/// Ends a target's telemetry whatever happens, since its writer waits for the end.
pub struct Telling<'a>(pub &'a mut Target);

impl Drop for Telling<'_> {
    fn drop(&mut self) {
        self.0.end_telemetry();
    }
}

/// Writes samples into a recording's directory until there are no more; what the manifest is to say of them. Where that fails, the run
/// is asked to stop, and what was written is left as after a crash.
pub fn write_telemetry(
    directory: &Path,
    samples: &Receiver<DriveSample>,
    stop: &Stop,
) -> Option<TelemetrySummary> {
    write(directory, samples).unwrap_or_else(|error| {
        stop.request(Status::Failed, format!("the recording could not be written: {error}"));
        None
    })
}

fn write(
    directory: &Path,
    samples: &Receiver<DriveSample>,
) -> Result<Option<TelemetrySummary>, RecordingError> {
    let mut writer = TelemetryWriter::new(directory);
    while let Ok(sample) = samples.recv() {
        writer.append(&sample)?;
        // One flush for all that came meanwhile: a model makes many seconds of telemetry in one.
        for sample in samples.try_iter() {
            writer.append(&sample)?;
        }
        writer.flush()?;
    }
    writer.finish()
}
