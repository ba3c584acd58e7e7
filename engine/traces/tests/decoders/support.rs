//! What the tests share: a sink that keeps rows, and traces written from short texts.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_traces::{by_name, Decoded, Options, Sink, TraceError, Volume};

/// Keeps all rows.
#[derive(Default)]
pub struct Rows {
    pub rows: Vec<IoRecord>,
    /// The rows of each volume, where the trace tells them apart.
    pub volumes: BTreeMap<String, Vec<IoRecord>>,
    pub progress: Vec<(u64, u64)>,
}

impl Sink for Rows {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.rows.extend_from_slice(rows);
        Ok(())
    }
    fn volume_rows(
        &mut self,
        volume: Volume<'_>,
        rows: &[IoRecord],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.volumes.entry(volume.name.to_string()).or_default().extend_from_slice(rows);
        self.rows(rows)
    }
    fn progress(&mut self, bytes_read: u64, bytes_total: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.progress.push((bytes_read, bytes_total));
        Ok(())
    }
}

/// Decodes files of a format into rows.
pub fn decode(
    format: &str,
    inputs: &[PathBuf],
    options: &Options,
) -> Result<(Vec<IoRecord>, Decoded), TraceError> {
    let mut sink = Rows::default();
    let decoded = testdrive_traces::decode(by_name(format)?, inputs, options, &mut sink)?;
    let (read, total) = sink.progress.last().copied().unwrap_or_default();
    assert_eq!(read, total, "the last progress is the whole input");
    Ok((sink.rows, decoded))
}

/// Writes a file into a folder of its own and decodes it.
pub fn decode_text(
    format: &str,
    text: impl AsRef<[u8]>,
    options: &Options,
) -> Result<(Vec<IoRecord>, Decoded), TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    std::fs::write(&path, text).unwrap();
    decode(format, &[path], options)
}

/// Trace-event text from short lines: `time_us action rwbs sector+sectors`, where the action is Q, D, C, R or A, with an error
/// after C, and a device where it is not 7,0.
pub fn events(short: &str) -> String {
    let mut text = String::from("# tracer: nop\n#\n");
    for line in short.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [time_us, action, rwbs, place, more @ ..] = &words[..] else { panic!("{line}") };
        let time_us: u64 = time_us.parse().unwrap();
        let (sector, sectors) = place.split_once('+').unwrap();
        let device = more.iter().find_map(|word| word.strip_prefix("dev=")).unwrap_or("7,0");
        let error = more.iter().find_map(|word| word.strip_prefix("err=")).unwrap_or("0");
        let cpu = more.iter().find_map(|word| word.strip_prefix("cpu=")).unwrap_or("1");
        let from = more.iter().find_map(|word| word.strip_prefix("from=")).unwrap_or("");
        let bytes = sectors.parse::<u64>().unwrap() * 512;
        let words = match *action {
            "Q" => format!("block_bio_queue: {device} {rwbs} {sector} + {sectors} [fio]"),
            "D" => format!("block_rq_issue: {device} {rwbs} {bytes} () {sector} + {sectors} be,0,4 [fio]"),
            "C" => format!("block_rq_complete: {device} {rwbs} () {sector} + {sectors} be,0,4 [{error}]"),
            "R" => format!("block_rq_requeue: {device} {rwbs} () {sector} + {sectors} be,0,4 [{error}]"),
            "B" => format!("block_bio_complete: {device} {rwbs} {sector} + {sectors} [{error}]"),
            "A" => format!("block_bio_remap: {device} {rwbs} {sector} + {sectors} <- {from}"),
            _ => panic!("{line}"),
        };
        let (seconds, fraction) = (time_us / 1_000_000, time_us % 1_000_000);
        text += &format!("             fio-77      [00{cpu}] ..... {seconds:5}.{fraction:06}: {words}\n");
    }
    text
}

/// Decodes such lines by `options`.
pub fn assemble(short: &str, options: &Options) -> (Vec<IoRecord>, Decoded) {
    decode_text("trace-event", events(short), options).unwrap_or_else(|error| panic!("{error}"))
}

/// A row in few words: opcode, sector, sectors, then intended, submit and latency in us, and status.
pub fn brief(row: &IoRecord) -> (Opcode, i64, i64, i64, i64, i64, i32) {
    let latency_us = if row.latency_ns < 0 { -1 } else { row.latency_ns / 1000 };
    (
        row.opcode,
        row.offset_bytes / 512,
        row.length_bytes / 512,
        row.intended_ns / 1000,
        row.submit_ns / 1000,
        latency_us,
        row.status,
    )
}

pub fn briefs(rows: &[IoRecord]) -> Vec<(Opcode, i64, i64, i64, i64, i64, i32)> {
    rows.iter().map(brief).collect()
}

/// How many events of this kind were dropped.
pub fn dropped(decoded: &Decoded, words: &str) -> u64 {
    let fitting = decoded.dropped.iter().filter(|dropped| dropped.what.contains(words));
    fitting.map(|dropped| dropped.count).sum()
}

pub fn has_warning(decoded: &Decoded, code: &str) -> bool {
    decoded.warnings.iter().any(|warning| warning.code == code)
}

pub const FUA_PREFLUSH_SYNC_META: Flags =
    Flags(Flags::FUA.0 | Flags::PREFLUSH.0 | Flags::SYNC.0 | Flags::METADATA.0);

/// The folder of real traces beside the checkout, or `None` with a printed reason.
pub fn real_traces(test: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/traces");
    let folder = std::env::var_os("TESTDRIVE_TRACES").map_or(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    println!("SKIPPED: {test}: no folder of real traces at {} (set TESTDRIVE_TRACES)", folder.display());
    None
}
