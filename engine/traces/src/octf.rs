//! Traces of the Open CAS telemetry framework: `iotrace` leaves a folder with a file for each queue.

mod event;
mod pairing;
mod queue;
mod reader;
mod summary;
mod wire;

use crate::format::{Carries, Confidence, Decoded, Events, Format, Sink};
use crate::numbered_files::NumberedFiles;
use crate::options::{OptionName, Options};
use crate::rows::decode_joined;
use crate::TraceError;
use reader::Reader;
use std::path::{Path, PathBuf};

/// One file for each queue.
const FILES: NumberedFiles = NumberedFiles {
    infix: ".trace.",
    name: Some("octf"),
    pattern: "octf.trace.N",
    numbers: "queues",
    missing_code: "queue_files_missing",
};

/// The format.
pub(crate) struct Octf;

impl Format for Octf {
    fn name(&self) -> &'static str {
        "octf"
    }

    fn description(&self) -> &'static str {
        "Open CAS telemetry (iotrace): octf.trace.N files of one trace, or the folder that holds them"
    }

    fn carries(&self) -> Carries {
        Carries { queue_events: true, completions: true, trims: true, volumes: true }
    }

    fn takes(&self) -> &'static [OptionName] {
        &[OptionName::Volume]
    }

    fn detect(&self, head: &[u8], _file_name: &str) -> Confidence {
        if queue::is_queue(head) {
            Confidence::Content
        } else {
            Confidence::No
        }
    }

    fn takes_folder(&self, folder: &Path) -> bool {
        FILES.are_in(folder)
    }

    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError> {
        let mut found = Decoded::default();
        let paths = FILES.of_trace(inputs, &mut found)?;
        let reader = Reader::open(&paths)?;
        let mut decoded = decode_joined(reader, &paths, options, sink, true)?;
        decoded.events = Some(Events::Queued);
        decoded.notes.append(&mut found.notes);
        decoded.warnings.append(&mut found.warnings);
        summary::describe(&paths, &mut decoded);
        Ok(decoded)
    }
}
