//! The recordings that an import makes: one, or one for each volume of the trace.

use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use testdrive_core::IoRecord;
use testdrive_recording::{
    Counts, Dropped, Manifest, Phase, PhaseKind, RecordingError, RecordingKind, RecordingWriter, Status,
    Warning, WriterLimits,
};
use testdrive_traces::{Decoded, Events, Format, Options};

/// By convention recordings end in it; a volume's name goes before it.
const SUFFIX: &str = ".rec";
/// Longer names of volumes are cut in the names of recordings.
const NAME_CHARACTERS_MAX: usize = 80;

/// A recording being written.
struct Entry {
    volume: Option<String>,
    path: PathBuf,
    writer: RecordingWriter,
    /// From the first intended or submit time to the last completion or submit.
    span_ns: (i64, i64),
}

/// A recording that is closed.
pub struct Closed {
    pub volume: Option<String>,
    pub path: PathBuf,
    pub manifest: Manifest,
    span_ns: (i64, i64),
}

/// The recordings of one import.
pub struct Recordings {
    output: PathBuf,
    entries: Vec<Entry>,
    /// Which entry holds a volume, by its number in the trace.
    by_number: Vec<Option<usize>>,
}

/// Where everything came from, to be written down in each recording.
pub struct Source<'s> {
    pub format: &'s dyn Format,
    pub decoded: &'s Decoded,
    pub options: &'s Options,
}

impl Recordings {
    /// Begins an import. Where the trace knows no volumes, the recording is made at once, so that a place where none can be made is
    /// told before the trace is read.
    pub fn begin(output: &Path, has_volumes: bool) -> Result<Recordings, RecordingError> {
        let mut recordings =
            Recordings { output: output.to_path_buf(), entries: Vec::new(), by_number: Vec::new() };
        if output.exists() {
            return Err(RecordingError::Exists { path: output.to_path_buf() });
        }
        if !has_volumes {
            recordings.add(0, None, output.to_path_buf())?;
        }
        Ok(recordings)
    }

    /// Writes rows of a volume.
    pub fn append(
        &mut self,
        number: usize,
        name: Option<&str>,
        rows: &[IoRecord],
    ) -> Result<(), RecordingError> {
        let index = match (self.by_number.get(number).copied().flatten(), name) {
            (Some(index), _) => index,
            (None, Some(name)) => self.add(number, Some(name), self.path_of(name))?,
            (None, None) => self.add(number, None, self.output.clone())?,
        };
        let entry = &mut self.entries[index];
        let (mut first, mut last) = entry.span_ns;
        for row in rows {
            first = first.min(row.intended_ns).min(row.submit_ns);
            last = last.max(row.submit_ns.saturating_add(row.latency_ns.max(0)));
        }
        entry.span_ns = (first, last);
        entry.writer.append(rows)?;
        // What was held back is given up now, and what is in memory still fits.
        if entry.writer.disk_full_flag().load(Ordering::Acquire) {
            let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
            return Err(RecordingError::Io {
                action: "go on writing",
                path: entry.path.clone(),
                source: full,
            });
        }
        Ok(())
    }

    fn add(&mut self, number: usize, name: Option<&str>, path: PathBuf) -> Result<usize, RecordingError> {
        let manifest = Manifest::new(RecordingKind::Import, "trace");
        let writer = RecordingWriter::create(&path, manifest, WriterLimits::default())?;
        if self.by_number.len() <= number {
            self.by_number.resize(number + 1, None);
        }
        self.by_number[number] = Some(self.entries.len());
        let volume = name.map(String::from);
        self.entries.push(Entry { volume, path, writer, span_ns: (i64::MAX, i64::MIN) });
        Ok(self.entries.len() - 1)
    }

    /// Where a volume's recording goes: `prod.hm_0.rec` for `prod.rec`. Names that come out the same are numbered.
    fn path_of(&self, volume: &str) -> PathBuf {
        let output = self.output.to_string_lossy().into_owned();
        let (stem, suffix) = output.strip_suffix(SUFFIX).map_or((&output[..], ""), |stem| (stem, SUFFIX));
        let plain = file_name_part(volume);
        let mut path = PathBuf::from(format!("{stem}.{plain}{suffix}"));
        let mut count = 2;
        while self.entries.iter().any(|entry| entry.path == path) {
            path = PathBuf::from(format!("{stem}.{plain}-{count}{suffix}"));
            count += 1;
        }
        path
    }

    /// Gives up: removes what was begun. Nothing is lost, since the trace is still there.
    pub fn remove(self) {
        for entry in self.entries {
            drop(entry.writer);
            let _ = fs::remove_dir_all(&entry.path);
        }
    }

    /// Writes down where the rows came from, and closes all. A single recording takes the name that was asked for.
    pub fn finish(
        mut self,
        source: &Source<'_>,
        status: Status,
        reason: Option<&str>,
    ) -> Result<Vec<Closed>, RecordingError> {
        let is_single = self.entries.len() == 1;
        let (mut closed, mut failed) = (Vec::new(), None);
        for mut entry in std::mem::take(&mut self.entries) {
            entry.describe(source);
            match entry.writer.finish(status, reason.map(String::from)) {
                Ok(manifest) => closed.push(Closed {
                    volume: entry.volume,
                    path: entry.path,
                    manifest,
                    span_ns: entry.span_ns,
                }),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        match &mut closed[..] {
            [one] if is_single && one.path != self.output => {
                if self.output.exists() {
                    return Err(RecordingError::Exists { path: self.output });
                }
                fs::rename(&one.path, &self.output).map_err(|source| RecordingError::Io {
                    action: "rename",
                    path: one.path.clone(),
                    source,
                })?;
                one.path.clone_from(&self.output);
            }
            _ => {}
        }
        Ok(closed)
    }
}

/// A volume's name as part of a file's.
fn file_name_part(volume: &str) -> String {
    let plain = |char: char| if char.is_ascii_alphanumeric() || "._-".contains(char) { char } else { '-' };
    let plain: String = volume.chars().map(plain).take(NAME_CHARACTERS_MAX).collect();
    let trimmed = plain.trim_matches(['-', '.']);
    if trimmed.is_empty() { "volume" } else { trimmed }.to_string()
}

impl Entry {
    fn describe(&mut self, source: &Source<'_>) {
        let (_, end_ns) = self.span_ns;
        let Source { format, decoded, options } = source;
        let manifest = self.writer.manifest_mut();
        manifest.clock.shift_ns = decoded.shift_ns;
        let files: Vec<String> = decoded.files.iter().map(|path| path.display().to_string()).collect();
        manifest.source.insert("format".into(), json!(format.name()));
        manifest.source.insert("files".into(), json!(files));
        manifest.source.insert("events".into(), json!(decoded.events.map(Events::name)));
        manifest.source.insert("device".into(), json!(decoded.device.map(|device| device.to_string())));
        manifest.source.insert("volume".into(), json!(self.volume));
        if let Some(unit) = options.time_unit {
            manifest.source.insert("time_unit".into(), json!(unit.name()));
        }
        if let Some(bytes) = options.object_bytes {
            manifest.source.insert("object_bytes".into(), json!(bytes));
        }
        if !options.columns.is_empty() {
            let columns: serde_json::Map<_, _> =
                options.columns.iter().map(|(key, column)| (key.clone(), json!(column))).collect();
            manifest.source.insert("columns".into(), columns.into());
        }
        manifest.absent_columns = decoded.absent_columns.iter().map(|name| (*name).to_string()).collect();
        let dropped = decoded.dropped.iter();
        manifest.dropped =
            dropped.map(|dropped| Dropped { what: dropped.what.clone(), count: dropped.count }).collect();
        let warnings = decoded.warnings.iter().map(|warning| Warning {
            code: warning.code.into(),
            message: warning.message.clone(),
            remedy: warning.remedy.clone(),
        });
        manifest.warnings = warnings.collect();
        manifest.phases = vec![Phase {
            index: 0,
            name: "import".into(),
            kind: PhaseKind::Import,
            measured: true,
            start_ns: 0,
            end_ns: end_ns.max(0),
            settings: serde_json::Map::new(),
            accounting: serde_json::Map::new(),
            drive_counters: None,
        }];
    }
}

/// The counts of several recordings together. Their times are of one clock, which begins in the second of the first I/O.
pub fn total(closed: &[Closed]) -> Counts {
    let mut total = Counts::default();
    let (mut first, mut last) = (i64::MAX, i64::MIN);
    for one in closed {
        (first, last) = (first.min(one.span_ns.0), last.max(one.span_ns.1));
        let counts = &one.manifest.counts;
        total.ios += counts.ios;
        total.bytes = total.bytes.saturating_add(counts.bytes);
        total.errors += counts.errors;
        total.no_completion += counts.no_completion;
        total.end_max_bytes = total.end_max_bytes.max(counts.end_max_bytes);
        total.by_opcode.merge(&counts.by_opcode);
    }
    total.span_ns = if first <= last { last.saturating_sub(first) } else { 0 };
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_of_any_name_make_names_of_files() {
        for (volume, part) in [
            ("hm_0", "hm_0"),
            ("/dev/null", "dev-null"),
            ("../../etc/passwd", "etc-passwd"),
            ("", "volume"),
            ("...", "volume"),
            ("a b\u{e4}\0c", "a-b--c"),
        ] {
            assert_eq!(file_name_part(volume), part, "{volume}");
        }
        assert_eq!(file_name_part(&"x".repeat(500)).len(), NAME_CHARACTERS_MAX);
    }

    #[test]
    fn names_that_come_out_the_same_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let mut recordings = Recordings::begin(&folder.path().join("x.rec"), true).unwrap();
        for (number, volume) in ["a/b", "a b", "a-b"].into_iter().enumerate() {
            recordings.append(number, Some(volume), &[]).unwrap();
        }
        let names: Vec<_> = recordings.entries.iter().map(|entry| entry.path.file_name().unwrap()).collect();
        assert_eq!(names, ["x.a-b.rec", "x.a-b-2.rec", "x.a-b-3.rec"]);
        recordings.remove();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
