//! Open CAS telemetry: queues that belong together, what is lost, and damage. The encoder here is an account of its own of the format.

use crate::support::{briefs, decode, dropped, has_warning, real_traces};
use proptest::prelude::*;
use std::error::Error;
use std::path::{Path, PathBuf};
use testdrive_core::Opcode::{Flush, Read, Trim, Write};
use testdrive_core::{IoRecord, Opcode};
use testdrive_traces::{by_name, detect, Decoded, Options, Sink, TraceError, Volume};

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// A message of numbers: field and value, zeros left out as protocol buffers have it.
fn numbers(fields: &[(u64, u64)]) -> Vec<u8> {
    let mut out = Vec::new();
    for &(field, value) in fields.iter().filter(|(_, value)| *value != 0) {
        varint(field << 3, &mut out);
        varint(value, &mut out);
    }
    out
}

fn nested(field: u64, message: &[u8], out: &mut Vec<u8>) {
    varint(field << 3 | 2, out);
    varint(message.len() as u64, out);
    out.extend_from_slice(message);
}

/// An event with its length before it.
fn event(sequence: u64, time_ns: u64, field: u64, message: &[u8]) -> Vec<u8> {
    let (mut event, mut out) = (Vec::new(), Vec::new());
    nested(1, &numbers(&[(1, sequence), (2, time_ns)]), &mut event);
    nested(field, message, &mut event);
    varint(event.len() as u64, &mut out);
    out.extend_from_slice(&event);
    out
}

const S: u64 = 1_000_000_000;

fn io(
    sequence: u64,
    time_us: u64,
    id: u64,
    operation: u64,
    place: (u64, u64),
    more: &[(u64, u64)],
) -> Vec<u8> {
    let fields = [&[(1, place.0), (2, place.1), (4, 8 << 20), (5, operation)], more, &[(9, id)]].concat();
    event(sequence, 7 * S + time_us * 1000, 2, &numbers(&fields))
}

fn end(sequence: u64, time_us: u64, id: u64, failed: u64) -> Vec<u8> {
    event(sequence, 7 * S + time_us * 1000, 5, &numbers(&[(3, failed), (4, 8 << 20), (5, id)]))
}

/// One queue's file with two I/Os.
pub fn small() -> Vec<u8> {
    let first = [device(8 << 20, "nvme0n1"), io(2, 10, 1, 2, (800, 8), &[]), io(3, 20, 2, 1, (0, 16), &[])];
    [&first[..], &[end(4, 30, 1, 0), end(5, 45, 2, 0)]].concat().concat()
}

fn device(id: u64, name: &str) -> Vec<u8> {
    let mut description = numbers(&[(1, id)]);
    nested(2, name.as_bytes(), &mut description);
    event(1, 7 * S, 3, &description)
}

/// Writes the queues of a trace into a folder of their own.
fn folder(queues: &[Vec<Vec<u8>>]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (number, events) in queues.iter().enumerate() {
        std::fs::write(folder.path().join(format!("octf.trace.{number}")), events.concat()).unwrap();
    }
    folder
}

fn rows_of(folder: &Path) -> Result<(Vec<IoRecord>, Decoded), TraceError> {
    let (mut rows, decoded) = decode("octf", &[folder.to_path_buf()], &Options::default())?;
    rows.sort_by_key(|row| row.intended_ns);
    Ok((rows, decoded))
}

/// A read and a failed write, which complete in another queue, a trim, and a flush.
fn queues() -> Vec<Vec<Vec<u8>>> {
    vec![
        vec![
            device(8 << 20, "sda"),
            io(2, 10, 100, 1, (64, 8), &[(12, 1)]),
            io(3, 20, 101, 2, (128, 16), &[(6, 1), (7, 1), (10, 1)]),
            io(6, 60, 100, 3, (4096, 2048), &[]),
        ],
        vec![
            device(8 << 20, "sda"),
            end(4, 50, 101, 1),
            end(5, 55, 100, 0),
            // What files have to do with it.
            event(7, 7 * S + 61_000, 6, &numbers(&[(9, 9)])),
            io(8, 62, 102, 2, (0, 0), &[(6, 1)]),
            end(9, 70, 100, 0),
            end(10, 80, 102, 0),
        ],
        vec![],
    ]
}

#[test]
fn ios_are_paired_by_number_over_all_queues_though_numbers_are_used_again() {
    let trace = folder(&queues());
    let (rows, decoded) = rows_of(trace.path()).unwrap();
    let expected = [
        (Read, 64, 8, 10, 10, 45, 0),
        (Write, 128, 16, 20, 20, 30, 5),
        (Trim, 4096, 2048, 60, 60, 10, 0),
        (Flush, 0, 0, 62, 62, 18, 0),
    ];
    assert_eq!(briefs(&rows), expected);
    let (flags, streams): (Vec<u8>, Vec<i32>) = rows.iter().map(|row| (row.flags.0, row.stream)).unzip();
    // Read-ahead; FUA, preflush and metadata.
    assert_eq!((flags, streams), (vec![16, 1 | 2 | 8, 0, 0], vec![0, 0, 0, 1]));
    assert_eq!((decoded.shift_ns, &decoded.absent_columns[..]), (7 * S as i64, &["submit_ns"][..]));
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
    assert_eq!(decoded.files.len(), 3);
}

#[test]
fn the_folder_and_one_file_of_it_are_the_whole_trace() {
    let trace = folder(&queues());
    let one = trace.path().join("octf.trace.1");
    for inputs in [vec![trace.path().to_path_buf()], vec![one]] {
        assert_eq!(detect(&inputs).unwrap().name(), "octf");
        let (rows, _) = decode("octf", &inputs, &Options::default()).unwrap();
        assert_eq!(rows.len(), 4);
    }
}

/// Keeps which volume each row is of.
#[derive(Default)]
struct Volumes(Vec<(String, i64)>);

impl Sink for Volumes {
    fn volume_rows(
        &mut self,
        volume: Volume<'_>,
        rows: &[IoRecord],
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.extend(rows.iter().map(|row| (volume.name.to_string(), row.offset_bytes / 512)));
        Ok(())
    }
    fn rows(&mut self, _: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        unreachable!("every row is of a device")
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

#[test]
fn devices_are_volumes_by_their_names() {
    let second = event(4, 7 * S + 5000, 2, &numbers(&[(1, 8), (2, 8), (4, 9), (5, 1), (9, 1)]));
    let mut queues = queues();
    queues[2] = vec![device(9, "nvme0n1"), second, end(11, 90, 1, 0)];
    let trace = folder(&queues);
    let inputs = [trace.path().to_path_buf()];
    let mut sink = Volumes::default();
    testdrive_traces::decode(by_name("octf").unwrap(), &inputs, &Options::default(), &mut sink).unwrap();
    sink.0.sort();
    let names: Vec<&str> = sink.0.iter().map(|(name, _)| &name[..]).collect();
    assert_eq!(names, ["nvme0n1", "sda", "sda", "sda", "sda"]);
    let only = Options { volume: Some("nvme0n1".into()), ..Options::default() };
    let mut sink = Volumes::default();
    testdrive_traces::decode(by_name("octf").unwrap(), &inputs, &only, &mut sink).unwrap();
    assert_eq!(sink.0, [("nvme0n1".to_string(), 8)]);
}

#[test]
fn lost_events_and_missing_queues_are_told() {
    let mut queues = queues();
    queues.remove(1);
    let trace = folder(&queues);
    let summary = r#"{"state": "RUNNING", "droppedEvents": "12", "queueCount": "72"}"#;
    std::fs::write(trace.path().join("octf.summary"), summary).unwrap();
    let (rows, decoded) = rows_of(trace.path()).unwrap();
    // The second write's number was used again.
    assert_eq!(rows.iter().filter(|row| row.latency_ns < 0).count(), 3);
    assert_eq!(dropped(&decoded, "events that the tracer lost"), 12);
    for code in ["events_lost", "queue_files_missing", "trace_incomplete", "no_completions"] {
        assert!(has_warning(&decoded, code), "{code}: {:?}", decoded.warnings);
    }
    assert!(decoded.absent_columns.contains(&"latency_ns") && decoded.absent_columns.contains(&"status"));
}

#[test]
fn a_completion_of_what_began_before_the_trace_is_counted() {
    let trace =
        folder(&[vec![io(1, 1, 5, 1, (0, 8), &[]), end(2, 2, 4, 0), end(3, 3, 5, 0), end(4, 4, 0, 0)]]);
    let (rows, decoded) = rows_of(trace.path()).unwrap();
    assert_eq!(briefs(&rows), [(Read, 0, 8, 1, 1, 2, 0)]);
    assert_eq!(dropped(&decoded, "completions whose I/O was not seen"), 2);
}

#[test]
fn a_cut_file_gives_what_stands_before_and_damage_is_an_error_at_its_byte() {
    let whole = queues()[0].concat();
    for length in 1..whole.len() {
        let trace = folder(&[vec![whole[..length].to_vec()]]);
        match rows_of(trace.path()) {
            Ok((rows, decoded)) => {
                assert!(rows.len() <= 3);
                assert!(dropped(&decoded, "cut off") <= 1, "{length}");
            }
            Err(error) => assert!(matches!(error, TraceError::NoIos { .. }), "{length}: {error}"),
        }
    }
    let first = queues()[0][0].len();
    let mut damaged = whole.clone();
    // The first field of the second event is of a kind that does not exist.
    damaged[first + 1] = 0x0b;
    let trace = folder(&[vec![damaged]]);
    let message = rows_of(trace.path()).err().unwrap().to_string();
    let place = format!("byte {first}: ");
    assert!(message.contains(&place) && message.contains(&format!("head -c {first}")), "{message}");
}

#[test]
fn foreign_and_empty_files_and_disorder_are_refused() {
    let message = |queue: Vec<u8>| rows_of(folder(&[vec![queue]]).path()).err().unwrap().to_string();
    assert!(message(b"time_us,op\n1,R\n".to_vec()).contains("holds no I/O"));
    assert!(message(b"\x03foreign text".to_vec()).contains("byte 0: "));
    assert!(message(vec![0; 4096]).contains("no header"));
    assert!(message(vec![0xff; 64]).contains("more than 64 bits"));
    assert!(message(Vec::new()).contains("is empty"));
    // More events than can be put in order, each before the one before it.
    let back: Vec<u8> = (0..5000).flat_map(|at| io(at, 6000 - at, at + 1, 1, (at * 8, 8), &[])).collect();
    let said = message(back);
    assert!(said.contains("time goes back"), "{said}");
    // Bytes that could be anything are not taken for it.
    let folder = tempfile::tempdir().unwrap();
    let path = [folder.path().join("x")];
    for foreign in [&[0_u8; 100][..], b"\x07\x74\x61\x65", b"hello world, this is text\n"] {
        std::fs::write(&path[0], foreign).unwrap();
        assert!(detect(&path).map_or(true, |format| format.name() != "octf"));
    }
}

#[test]
fn the_published_trace_has_the_counts_and_latencies_that_its_notes_say() {
    let test = "the_published_trace_has_the_counts_and_latencies_that_its_notes_say";
    let Some(traces) = real_traces(test) else { return };
    let folder = traces.join("octf-nvme-ycsb/trace");
    assert_eq!(detect(std::slice::from_ref(&folder)).unwrap().name(), "octf");
    let (rows, decoded) = rows_of(&folder).unwrap();
    let of = |opcode: Opcode| rows.iter().filter(|row| row.opcode == opcode).count();
    assert_eq!((rows.len(), of(Write), of(Trim), of(Read)), (64_420, 64_188, 231, 1));
    let mut latencies_ns: Vec<i64> = rows.iter().map(|row| row.latency_ns).collect();
    latencies_ns.sort_unstable();
    assert!(latencies_ns[0] >= 0, "all are matched");
    let quantile_ms = |percent: usize| latencies_ns[(rows.len() - 1) * percent / 100] as f64 / 1e6;
    assert!((quantile_ms(50) - 13.8).abs() < 0.05 && (quantile_ms(99) - 48.3).abs() < 0.06);
    let span_ns = rows.last().unwrap().intended_ns - rows[0].intended_ns;
    assert!((span_ns as f64 / 1e9 - 24.65).abs() < 0.01, "{span_ns}");
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
    assert_eq!(decoded.files.len(), 72);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_damage_panics(
        at in any::<proptest::sample::Index>(), value in any::<u8>(), cut in any::<proptest::sample::Index>(), queue in 0_usize..2,
    ) {
        let mut queues = queues();
        let mut bytes = queues[queue].concat();
        let place = at.index(bytes.len());
        bytes[place] = value;
        bytes.truncate(cut.index(bytes.len()) + 1);
        queues[queue] = vec![bytes];
        let trace = folder(&queues);
        if let Ok((rows, _)) = rows_of(trace.path()) {
            prop_assert!(rows.len() <= 8);
            for row in &rows {
                prop_assert!(row.latency_ns >= -1 && row.offset_bytes >= 0 && row.length_bytes >= 0, "{row:?}");
            }
        }
    }
}

#[test]
fn a_folder_without_queues_is_no_trace_of_it() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes"), "x").unwrap();
    let inputs: [PathBuf; 1] = [folder.path().to_path_buf()];
    assert!(detect(&inputs).err().unwrap().to_string().contains("holds no trace"));
    let message = decode("octf", &inputs, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("no octf.trace.N file"), "{message}");
}
