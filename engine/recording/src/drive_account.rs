//! What a drive tells of itself: what it counted before and after each phase, and what it was busy with.

use crate::error::RecordingError;
use crate::telemetry::keep_whole_lines;
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

/// The file of [`DriveEvents`] in a recording.
pub(crate) const EVENTS_NAME: &str = "drive_events.jsonl";

/// What a drive counts of itself since it was made. What it does not count is left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveCounters {
    /// Bytes that the host read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_read_bytes: Option<u64>,
    /// Bytes that the host wrote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_written_bytes: Option<u64>,
    /// Trims of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trims: Option<u64>,
    /// Bytes that these covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trimmed_bytes: Option<u64>,
    /// Bytes programmed into the NAND, for whatever reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nand_written_bytes: Option<u64>,
    /// Pages that garbage collection moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_pages: Option<u64>,
    /// Blocks erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erases: Option<u64>,
    /// Energy drawn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_uj: Option<u64>,
}

/// The counters of a drive around a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseCounters {
    /// Just before its first I/O.
    pub before: DriveCounters,
    /// Just after its last.
    pub after: DriveCounters,
}

/// Something that a drive was busy with, or held up by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveEvent {
    /// What.
    pub kind: String,
    /// From when, on the recording's clock.
    pub start_ns: i64,
    /// Until when.
    pub end_ns: i64,
    /// How much of that time was spent on it.
    pub busy_ns: i64,
    /// How much was done.
    pub amount: u64,
    /// What the amount counts.
    pub unit: String,
}

/// Events of one kind that the drive could not keep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedDriveEvents {
    /// What.
    pub kind: String,
    /// How many.
    pub events: u64,
    /// The time that was spent on them.
    pub busy_ns: i64,
    /// How much was done in them.
    pub amount: u64,
    /// What the amount counts.
    pub unit: String,
}

/// All that a drive logged of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriveEvents {
    /// In the order of their starts.
    pub events: Vec<DriveEvent>,
    /// By kind, what is missing: the shortest.
    pub dropped: Vec<DroppedDriveEvents>,
}

/// What the manifest says of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DriveEventsSummary {
    /// Lines of the file.
    pub events: u64,
    /// What did not fit in the drive's log.
    pub dropped: Vec<DroppedDriveEvents>,
}

impl DriveEvents {
    /// Adds the events to the file of a recording that is being written, one a line, and to what its manifest says of them: lines
    /// beyond that count, which a crash may have left, are not of the recording and are taken away.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn append(&self, directory: &Path, summary: &mut DriveEventsSummary) -> Result<(), RecordingError> {
        let path = directory.join(EVENTS_NAME);
        let opened = OpenOptions::new().create(true).append(true).read(true).open(&path);
        let written = opened.and_then(|file| {
            keep_whole_lines(&file, summary.events)?;
            let mut writer = BufWriter::new(file);
            for event in &self.events {
                serde_json::to_writer(&mut writer, event)?;
                writer.write_all(b"\n")?;
            }
            writer.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()
        });
        written.map_err(RecordingError::io("write", &path))?;
        summary.events += self.events.len() as u64;
        for lost in &self.dropped {
            match summary.dropped.iter_mut().find(|known| known.kind == lost.kind) {
                Some(known) => {
                    known.events += lost.events;
                    known.busy_ns += lost.busy_ns;
                    known.amount += lost.amount;
                }
                None => summary.dropped.push(lost.clone()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_crash_left_behind_the_events_that_count_is_not_gone_on_with() {
        let folder = tempfile::tempdir().unwrap();
        let event = |start_ns| DriveEvent {
            kind: "stall".into(),
            start_ns,
            end_ns: start_ns + 1,
            busy_ns: 1,
            amount: 1,
            unit: "times".into(),
        };
        let events = |start_ns| DriveEvents { events: vec![event(start_ns)], dropped: Vec::new() };
        let mut summary = DriveEventsSummary::default();
        events(1).append(folder.path(), &mut summary).unwrap();
        let path = folder.path().join(EVENTS_NAME);
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{whole}{}", &whole[..9])).unwrap();
        events(5).append(folder.path(), &mut summary).unwrap();
        let expected =
            whole.clone() + &whole.replace("\"start_ns\":1,\"end_ns\":2", "\"start_ns\":5,\"end_ns\":6");
        assert_eq!((fs::read_to_string(&path).unwrap(), summary.events), (expected, 2));
    }
}
