//! What a drive measures of itself while a run goes on: its power, its energy, its temperature.

use crate::error::RecordingError;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The file in a recording.
const TELEMETRY_NAME: &str = "telemetry.jsonl";

/// What a drive measured at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriveSample {
    /// When, on the recording's clock.
    pub time_ns: i64,
    /// Drawn since the run began.
    pub energy_uj: u64,
    /// Mean since the sample before.
    pub power_mw: u64,
    /// In thousandths of a degree Celsius, where the drive has a sensor.
    pub temperature_mc: Option<i64>,
}

/// A line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetryRow {
    /// When, on the recording's clock.
    pub time_ns: i64,
    /// `power`, `energy` or `temperature`.
    pub sensor: String,
    /// In the unit.
    pub value: i64,
    /// `mW`, `uJ` or `mC`.
    pub unit: String,
}

impl DriveSample {
    /// A row for each sensor.
    pub fn rows(&self) -> impl Iterator<Item = TelemetryRow> {
        let time_ns = self.time_ns;
        [
            Some(("power", self.power_mw.cast_signed(), "mW")),
            Some(("energy", self.energy_uj.cast_signed(), "uJ")),
            self.temperature_mc.map(|value| ("temperature", value, "mC")),
        ]
        .into_iter()
        .flatten()
        .map(move |(sensor, value, unit)| TelemetryRow {
            time_ns,
            sensor: sensor.into(),
            value,
            unit: unit.into(),
        })
    }
}

/// What the manifest says of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TelemetrySummary {
    /// Lines of the file.
    pub rows: u64,
}

/// Adds lines to the file of a recording that is being written. Each that was flushed is there after a crash; of the last one a part
/// may be.
#[derive(Debug)]
pub struct TelemetryWriter {
    path: PathBuf,
    /// Made with the first sample, so that a drive that measures nothing leaves nothing behind.
    file: Option<BufWriter<File>>,
    rows: u64,
}

impl TelemetryWriter {
    /// A writer for the recording in this directory.
    pub fn new(directory: &Path) -> TelemetryWriter {
        TelemetryWriter { path: directory.join(TELEMETRY_NAME), file: None, rows: 0 }
    }

    /// Adds what was measured at a time.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn append(&mut self, sample: &DriveSample) -> Result<(), RecordingError> {
        let mut write = || {
            let file = match &mut self.file {
                Some(file) => file,
                file => {
                    let made = OpenOptions::new().create(true).append(true).read(true).open(&self.path)?;
                    self.rows += keep_whole_lines(&made, u64::MAX)?;
                    file.insert(BufWriter::new(made))
                }
            };
            for row in sample.rows() {
                serde_json::to_writer(&mut *file, &row)?;
                file.write_all(b"\n")?;
                self.rows += 1;
            }
            Ok(())
        };
        write().map_err(RecordingError::io("write", &self.path))
    }

    /// Hands everything to the system.
    ///
    /// # Errors
    /// When it refuses.
    pub fn flush(&mut self) -> Result<(), RecordingError> {
        self.file.as_mut().map_or(Ok(()), Write::flush).map_err(RecordingError::io("write", &self.path))
    }

    /// Closes the file once it is on the disk; `None` where nothing was measured.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn finish(self) -> Result<Option<TelemetrySummary>, RecordingError> {
        let Some(file) = self.file else { return Ok(None) };
        let closed =
            file.into_inner().map_err(std::io::IntoInnerError::into_error).and_then(|file| file.sync_all());
        closed.map_err(RecordingError::io("write", &self.path))?;
        Ok(Some(TelemetrySummary { rows: self.rows }))
    }
}

/// Keeps at most so many whole lines of a file of a run that is gone on with, takes away what a crash left behind them, and returns how
/// many there are.
pub(crate) fn keep_whole_lines(file: &File, lines_max: u64) -> io::Result<u64> {
    let (mut reader, mut line) = (BufReader::new(file), Vec::new());
    let (mut lines, mut end_bytes) = (0, 0);
    while lines < lines_max {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        if read == 0 || line.last() != Some(&b'\n') {
            break;
        }
        lines += 1;
        end_bytes += read as u64;
    }
    file.set_len(end_bytes)?;
    Ok(lines)
}
