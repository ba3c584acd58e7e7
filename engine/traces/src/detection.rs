//! Which format a file is of.

use crate::format::{formats, Confidence, Format};
use crate::input::BYTE_ORDER_MARK;
use crate::unpack::{plain_name, Content};
use crate::TraceError;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Bytes of a file's content that detection looks at.
const HEAD_BYTES: u64 = 64 << 10;

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
        return detect_folder(path);
    }
    if head.is_empty() {
        return Err(TraceError::Empty { path: path.to_path_buf() });
    }
    let name = plain_name(path);
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
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
        _ => Err(ambiguous(path, head, &candidates)),
    }
}

fn detect_folder(path: &Path) -> Result<&'static dyn Format, TraceError> {
    let found = formats().iter().find(|format| format.takes_folder(path));
    found.copied().ok_or_else(|| {
        let message = format!(
            "{} is a folder that holds no trace which is imported as a whole: give the trace's files by name",
            path.display()
        );
        TraceError::Usage(message)
    })
}

/// Says what each reading would mean, so that a person can tell which is right.
fn ambiguous(path: &Path, head: &[u8], candidates: &[&'static dyn Format]) -> TraceError {
    let readings = candidates.iter().map(|format| match format.reading(head) {
        Some(reading) => format!("\n  {}: {reading}", format.name()),
        None => format!("\n  {}", format.name()),
    });
    TraceError::Ambiguous { path: path.to_path_buf(), candidates: readings.collect() }
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
    let mut content = Content::open(path)?;
    let mut head = Vec::new();
    let read = content.by_ref().take(HEAD_BYTES).read_to_end(&mut head);
    match read {
        // What is damaged further on than the format needs is the decoder's to tell, with its place.
        Err(_) if !head.is_empty() => Ok(head),
        Err(error) => Err(content.error(error)),
        Ok(_) => Ok(head),
    }
}

/// What to say of a file that is packed.
fn compression(head: &[u8]) -> &'static str {
    match head {
        [0xfd, b'7', b'z', b'X', b'Z', ..] => " (it is packed with xz: unpack it first)",
        [b'B', b'Z', b'h', ..] => " (it is packed with bzip2: unpack it first)",
        [0x17, 0x08, 0x44, b't', b'r', b'a', b'c', b'i', b'n', b'g', ..] => {
            " (it is a trace.dat: print it with 'trace-cmd report -t -i FILE' and import the text)"
        }
        [b'P', b'E', b'R', b'F', b'I', b'L', b'E', b'2', ..] => {
            " (it is a perf.data: print it with 'perf script --ns -i FILE' and import the text)"
        }
        _ if head.get(257..262) == Some(b"ustar") => {
            " (it is a tar archive: take its files out with 'tar xf FILE')"
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
            (&b"BZh91AY"[..], "bzip2"),
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
