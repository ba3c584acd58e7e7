//! What a decoder is, and which there are.

use crate::event::Device;
use crate::{blkparse, blktrace, csv, trace_event, TraceError};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use testdrive_core::IoRecord;

/// Bytes of a file that detection looks at.
const HEAD_BYTES: u64 = 64 << 10;

/// A trace format: one implementation a file, listed in [`formats`].
pub trait Format: Sync {
    /// Its name for `--format`.
    fn name(&self) -> &'static str;
    /// What it is and which tool writes it, in one line.
    fn description(&self) -> &'static str;
    /// What traces of it can hold.
    fn carries(&self) -> Carries;
    /// How sure it is that a file of this name that starts with `head` is of this format.
    fn detect(&self, head: &[u8], file_name: &str) -> Confidence;
    /// Decodes files that belong together into rows.
    ///
    /// # Errors
    /// When a file cannot be read, is not what it should be, or does not fit the options; or when the sink fails.
    fn decode(
        &self,
        inputs: &[PathBuf],
        options: &Options,
        sink: &mut dyn Sink,
    ) -> Result<Decoded, TraceError>;
}

/// Every format that can be decoded. Adding one is adding its file and a line here.
pub fn formats() -> &'static [&'static dyn Format] {
    &[&blktrace::Blktrace, &blkparse::Blkparse, &trace_event::TraceEvent, &csv::Csv]
}

/// What traces of a format can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Carries {
    /// When the workload queued an I/O, apart from when it was issued.
    pub queue_events: bool,
    /// When I/Os completed.
    pub completions: bool,
    /// Trims.
    pub trims: bool,
}

/// How sure a format is of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Confidence {
    /// It is something else.
    No,
    /// The name fits and the content does not speak against it.
    Name,
    /// The content fits.
    Content,
}

/// Which events become rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Events {
    /// One row for each I/O that the workload queued.
    Queued,
    /// One row for each request that was handed to the device.
    Issued,
}

impl Events {
    /// As on the command line and in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Events::Queued => "queued",
            Events::Issued => "issued",
        }
    }
}

/// What the person who imports asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which events become rows; by default queued ones where the trace has them.
    pub events: Option<Events>,
    /// Which device's I/Os; by default the only one that has any.
    pub device: Option<Device>,
    /// For CSV: which column is what, as `key=column` each.
    pub columns: Vec<(String, String)>,
}

/// Takes the rows as they are decoded.
pub trait Sink {
    /// Takes rows, in the order in which they stand in the recording.
    ///
    /// # Errors
    /// When they cannot be kept; decoding ends with this error.
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
    /// Hears how far decoding has come, in bytes of the input.
    ///
    /// # Errors
    /// When decoding shall end.
    fn progress(
        &mut self,
        bytes_read: u64,
        bytes_total: u64,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// Events that did not become rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// What they were and why they were dropped.
    pub what: String,
    /// How many.
    pub count: u64,
}

/// Something that makes the figures less valid than they look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// Stable name.
    pub code: &'static str,
    /// What is so.
    pub message: String,
    /// What to do about it.
    pub remedy: String,
}

/// What became of a trace, apart from its rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Decoded {
    /// Every file that was read.
    pub files: Vec<PathBuf>,
    /// What a row is; `None` where the format does not tell.
    pub events: Option<Events>,
    /// Whose I/Os they are, where the format tells.
    pub device: Option<Device>,
    /// What was subtracted from the trace's times: whole seconds.
    pub shift_ns: i64,
    /// Columns of the recording that hold fillers.
    pub absent_columns: Vec<&'static str>,
    /// What was lost or could not be used.
    pub dropped: Vec<Dropped>,
    /// What to beware of.
    pub warnings: Vec<Warning>,
    /// What was done beyond what was asked, in sentences.
    pub notes: Vec<String>,
}

impl Decoded {
    /// Notes events that did not become rows, if there were any.
    pub(crate) fn drop(&mut self, count: u64, what: &str) {
        if count > 0 {
            self.dropped.push(Dropped { what: what.into(), count });
        }
    }

    pub(crate) fn warn(&mut self, code: &'static str, message: String, remedy: &str) {
        self.warnings.push(Warning { code, message, remedy: remedy.into() });
    }
}

/// The format of a name.
///
/// # Errors
/// When there is none of this name.
pub fn by_name(name: &str) -> Result<&'static dyn Format, TraceError> {
    let found = formats().iter().find(|format| format.name() == name);
    found.copied().ok_or_else(|| TraceError::NoSuchFormat { name: name.into(), known: names(formats()) })
}

/// The one format that takes all of the files: by content first, by name where no content speaks.
///
/// # Errors
/// When a file cannot be read or is empty, or when no format, several formats, or different formats take the files.
pub fn detect(inputs: &[PathBuf]) -> Result<&'static dyn Format, TraceError> {
    let mut found: Option<(&'static dyn Format, &PathBuf)> = None;
    for path in inputs {
        let head = if path.is_dir() { Vec::new() } else { read_head(path)? };
        // blktrace leaves an empty file for a CPU that saw nothing; the other files tell the format.
        if head.is_empty() && !path.is_dir() && inputs.len() > 1 {
            continue;
        }
        let format = detect_one(path, &head)?;
        match found {
            Some((first, first_path)) if first.name() != format.name() => {
                return Err(TraceError::MixedFormats {
                    first: first_path.clone(),
                    first_format: first.name(),
                    second: path.clone(),
                    second_format: format.name(),
                });
            }
            _ => found = Some((format, path)),
        }
    }
    match (found, inputs.first()) {
        (Some((format, _)), _) => Ok(format),
        (None, Some(path)) => Err(TraceError::Empty { path: path.clone() }),
        (None, None) => Err(TraceError::Usage("no trace was named: give its file or files".into())),
    }
}

fn detect_one(path: &Path, head: &[u8]) -> Result<&'static dyn Format, TraceError> {
    if path.is_dir() {
        // Only blktrace leaves folders of files that belong together.
        return Ok(&blktrace::Blktrace);
    }
    if head.is_empty() {
        return Err(TraceError::Empty { path: path.to_path_buf() });
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let scored: Vec<(Confidence, &'static dyn Format)> =
        formats().iter().map(|format| (format.detect(head, &name), *format)).collect();
    let best = scored.iter().map(|(confidence, _)| *confidence).max().unwrap_or(Confidence::No);
    if best == Confidence::No {
        return Err(TraceError::Unknown {
            path: path.to_path_buf(),
            hint: compression(head).into(),
            known: names(formats()),
        });
    }
    let candidates: Vec<&'static dyn Format> =
        scored.iter().filter(|(confidence, _)| *confidence == best).map(|(_, format)| *format).collect();
    match candidates[..] {
        [one] => Ok(one),
        _ => Err(TraceError::Ambiguous { path: path.to_path_buf(), candidates: names(&candidates) }),
    }
}

fn read_head(path: &Path) -> Result<Vec<u8>, TraceError> {
    // What is read of a pipe to look at it would be gone.
    let metadata = std::fs::metadata(path).map_err(TraceError::io("open", path))?;
    if !metadata.is_file() {
        let message = format!(
            "{} is no regular file, so its format cannot be found out: name it with --format",
            path.display()
        );
        return Err(TraceError::Usage(message));
    }
    let file = std::fs::File::open(path).map_err(TraceError::io("open", path))?;
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(TraceError::io("read", path))?;
    Ok(head)
}

/// What to say of a file that is packed.
fn compression(head: &[u8]) -> &'static str {
    match head {
        [0x1f, 0x8b, ..] => " (it is packed with gzip: unpack it first)",
        [0x28, 0xb5, 0x2f, 0xfd, ..] => " (it is packed with zstd: unpack it first)",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => " (it is packed with xz: unpack it first)",
        [b'B', b'Z', b'h', ..] => " (it is packed with bzip2: unpack it first)",
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            " (it is a trace.dat: print it with 'trace-cmd report -t -i FILE' and import the text)"
        }
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => {
            " (it is a perf.data: print it with 'perf script --ns -i FILE' and import the text)"
        }
        _ => "",
    }
}

fn names(formats: &[&dyn Format]) -> String {
    let names: Vec<&str> = formats.iter().map(|format| format.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name_and_no_other_is() {
        for format in formats() {
            assert_eq!(by_name(format.name()).unwrap().name(), format.name());
        }
        let message = by_name("pcap").err().unwrap().to_string();
        assert!(message.contains("'pcap'") && message.contains("blktrace"), "{message}");
    }

    #[test]
    fn a_foreign_file_is_refused_with_the_formats_that_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("photo.bin");
        std::fs::write(&path, [0xff, 0xd8, 0xff, 0xe0, 0, 16, b'J', b'F', b'I', b'F']).unwrap();
        let message = detect(&[path]).err().unwrap().to_string();
        assert!(
            message.contains("photo.bin") && message.contains("blktrace, blkparse, trace-event"),
            "{message}"
        );
    }

    #[test]
    fn what_is_packed_or_binary_of_a_known_tool_gets_its_own_advice() {
        let folder = tempfile::tempdir().unwrap();
        for (head, advice) in [
            (&[0x1f, 0x8b, 8, 0][..], "gzip"),
            (&b"\x17\x08\x44tracing6"[..], "trace-cmd report"),
            (&b"PERFILE2abc"[..], "perf script"),
        ] {
            let path = folder.path().join("trace");
            std::fs::write(&path, head).unwrap();
            let message = detect(&[path]).err().unwrap().to_string();
            assert!(message.contains(advice), "{message}");
        }
    }

    #[test]
    fn an_empty_file_and_a_missing_one_are_said_to_be_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.txt");
        let message = detect(std::slice::from_ref(&path)).err().unwrap().to_string();
        assert!(message.contains("cannot open") && message.contains("trace.txt"), "{message}");
        std::fs::write(&path, "").unwrap();
        assert!(matches!(detect(&[path]), Err(TraceError::Empty { .. })));
    }

    #[test]
    fn files_of_different_formats_are_not_mixed() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a.txt"), folder.path().join("b.csv"));
        let line = "  dd-1 [000] 1.000000: block_bio_queue: 7,0 R 0 + 8 [dd]\n";
        std::fs::write(&first, line).unwrap();
        std::fs::write(&second, "time_us,op\n1,R\n").unwrap();
        assert!(matches!(detect(&[first, second]), Err(TraceError::MixedFormats { .. })));
    }
}
