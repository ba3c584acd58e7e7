//! What is written is read back, in order, after a crash, on a full disk, and refused when it is not a recording.

use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::time::Duration;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_recording::{
    Kept, Manifest, OrderBy, Recording, RecordingError, RecordingKind, RecordingWriter, Status, WriterLimits,
};

fn limits(segment_rows: usize) -> WriterLimits {
    WriterLimits { segment_rows, segment_age: Duration::from_secs(3600), reserve_bytes: 1 << 20 }
}

fn row(intended_ns: i64, latency_ns: i64) -> IoRecord {
    IoRecord {
        intended_ns,
        submit_ns: intended_ns + 7,
        latency_ns,
        offset_bytes: intended_ns * 4096,
        length_bytes: 4096,
        stream: 3,
        status: 0,
        phase: 0,
        opcode: Opcode::from_number((intended_ns % 5) as i32).unwrap(),
        flags: Flags::FUA | Flags::SYNC,
    }
}

fn write(directory: &Path, rows: &[IoRecord], segment_rows: usize) -> Manifest {
    let manifest = Manifest::new(RecordingKind::Import, "trace");
    let mut writer = RecordingWriter::create(directory, manifest, limits(segment_rows)).unwrap();
    for batch in rows.chunks(1000) {
        writer.append(batch).unwrap();
    }
    writer.finish(Status::Complete, None).unwrap()
}

fn read(directory: &Path, order: OrderBy) -> Vec<IoRecord> {
    Recording::open(directory).unwrap().ordered_rows(order).unwrap().map(Result::unwrap).collect()
}

#[test]
fn rows_come_back_in_the_order_of_issue_across_segments() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let mut rows: Vec<IoRecord> = (0..300_000).map(|time_ns| row(time_ns, 10 + time_ns % 100_000)).collect();
    let expected = rows.clone();
    rows.sort_by_key(|row| row.submit_ns + row.latency_ns);
    let manifest = write(&path, &rows, 70_000);
    assert_eq!(read(&path, OrderBy::Intended), expected);
    assert_eq!(manifest.counts.ios, 300_000);
    assert_eq!(manifest.counts.by_opcode.of(Opcode::Trim).ios, 60_000);
    assert_eq!(fs::read_dir(path.join("ios")).unwrap().count(), 5);
    assert!(!path.join("reserve").exists());
}

#[test]
fn an_empty_recording_is_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    write(&path, &[], 10);
    assert_eq!(read(&path, OrderBy::Submit), []);
}

#[test]
fn an_existing_output_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = Manifest::new(RecordingKind::Run, "tsc");
    let error = RecordingWriter::create(folder.path(), manifest, limits(10)).err().unwrap();
    assert!(matches!(error, RecordingError::Exists { .. }), "{error}");
}

#[test]
fn after_a_crash_all_closed_segments_are_read_and_the_recording_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let manifest = Manifest::new(RecordingKind::Run, "tsc");
    let mut writer = RecordingWriter::create(&path, manifest, limits(1000)).unwrap();
    let rows: Vec<IoRecord> = (0..2500).map(|time_ns| row(time_ns, 5)).collect();
    rows.chunks(500).for_each(|batch| writer.append(batch).unwrap());
    // A writer that is dropped without finishing lets go of its lock, as one that was killed does.
    drop(writer);
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest.status, Status::Interrupted);
    assert_eq!(recording.manifest.counts.ios, 2000);
    assert_eq!(read(&path, OrderBy::Intended), rows[..2000]);
    let names: Vec<_> =
        fs::read_dir(path.join("ios")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
}

#[test]
fn a_recording_in_progress_is_read_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let manifest = Manifest::new(RecordingKind::Run, "tsc");
    let mut writer = RecordingWriter::create(&path, manifest, limits(10)).unwrap();
    writer.append(&[row(1, 1); 10]).unwrap();
    writer.append(&[row(2, 1); 5]).unwrap();
    // The full segment is closed by a thread of its own.
    while Recording::open(&path).unwrap().rows().unwrap() < 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(Recording::open(&path).unwrap().manifest.status, Status::Running);
    writer.finish(Status::Complete, None).unwrap();
    assert_eq!(Recording::open(&path).unwrap().rows().unwrap(), 15);
}

#[test]
fn what_is_no_recording_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let refusal = |path: &Path| Recording::open(path).unwrap_err().to_string();
    assert!(refusal(&folder.path().join("none")).contains("no such directory"));
    assert!(refusal(folder.path()).contains("no manifest.json"));
    let path = folder.path().join("a.rec");
    write(&path, &[row(1, 1)], 10);
    let manifest = fs::read_to_string(path.join("manifest.json")).unwrap();
    fs::write(path.join("manifest.json"), manifest.replace("\"version\": 1,", "\"version\": 2,")).unwrap();
    assert!(refusal(&path).contains("version 2"));
    fs::write(path.join("manifest.json"), manifest.replace("testdrive-recording", "other")).unwrap();
    assert!(refusal(&path).contains("another program"));
    fs::write(path.join("manifest.json"), &manifest[..100]).unwrap();
    assert!(refusal(&path).contains("damaged"));
    fs::write(path.join("manifest.json"), &manifest).unwrap();
    fs::write(path.join("ios/00000.parquet"), b"not parquet at all").unwrap();
    assert!(refusal(&path).contains("00000.parquet is damaged"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_rows_survive_the_round_trip(seed in any::<u64>(), count in 0_usize..3000, segment_rows in 1_usize..2000) {
        let mut random = SplitMix64::new(seed);
        let mut rows: Vec<IoRecord> = (0..count)
            .map(|_| IoRecord {
                intended_ns: random.below(1 << 40) as i64,
                submit_ns: random.next_u64() as i64 >> 2,
                latency_ns: random.below(1 << 40) as i64 - 1,
                offset_bytes: random.next_u64() as i64 >> 1,
                length_bytes: random.below(1 << 33) as i64,
                stream: random.next_u64() as i32,
                status: random.below(200) as i32,
                phase: random.next_u64() as u16 >> 1,
                opcode: Opcode::ALL[random.below(5) as usize],
                flags: Flags(random.below(32) as u8),
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.rec");
        write(&path, &rows, segment_rows);
        rows.sort_by_key(|row| row.intended_ns);
        let mut found = read(&path, OrderBy::Intended);
        found.sort_by_key(|row| row.intended_ns);
        prop_assert_eq!(found, rows);
    }
}

#[test]
fn after_a_crash_the_histograms_and_slowest_rows_of_closed_segments_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.rec");
    let mut manifest = Manifest::new(RecordingKind::Run, "tsc");
    manifest.kept = Some(Kept { slowest_per_second: 10, ..Kept::default() });
    let young = WriterLimits { segment_age: Duration::ZERO, ..limits(1000) };
    let mut writer = RecordingWriter::create(&path, manifest, young).unwrap();
    writer.phase_starts().tell(0, 0, 0);
    let read_at =
        |time_ns: i64| IoRecord { opcode: Opcode::Read, ..row(time_ns, 1_000 + time_ns / 1_000_000 % 997) };
    for second in 0..20 {
        let rows: Vec<IoRecord> =
            (0..1000).map(|index| read_at(second * 1_000_000_000 + index * 1_000_000)).collect();
        writer.append(&rows).unwrap();
        writer.rotate_if_old().unwrap();
    }
    drop(writer);
    let recording = Recording::open(&path).unwrap();
    let counts = recording.manifest.counts;
    assert_eq!(recording.manifest.status, Status::Interrupted);
    // The last seconds were open still; what was closed is whole, and every I/O of it is counted though few rows are kept.
    assert!(counts.ios >= 15_000 && counts.ios.is_multiple_of(1000), "{}", counts.ios);
    assert_eq!(counts.bytes, counts.ios * 4096);
    assert_eq!(counts.by_opcode.of(Opcode::Read).ios, counts.ios);
    let mut kept = 0;
    recording.for_each_slowest(|rows| kept += rows.len()).unwrap();
    assert!(kept > 1000 && kept < 8_000, "{kept}");
    assert_eq!(recording.rows().unwrap(), 0);
}

#[test]
fn rows_for_which_no_segment_could_be_made_are_not_counted() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("a.rec");
    let manifest = Manifest::new(RecordingKind::Import, "trace");
    let mut writer = RecordingWriter::create(&directory, manifest, limits(100)).unwrap();
    let rows: Vec<IoRecord> = (1..=150).map(|at| row(at, 10)).collect();
    writer.append(&rows[..100]).unwrap();
    let in_the_way = directory.join("ios/00001.parquet.open");
    fs::write(&in_the_way, "").unwrap();
    assert!(writer.append(&rows[100..]).is_err());
    fs::remove_file(&in_the_way).unwrap();
    let manifest = writer.finish(Status::Failed, Some("no place".into())).unwrap();
    assert_eq!((manifest.status, manifest.counts.ios), (Status::Failed, 100));
    assert_eq!(read(&directory, OrderBy::Submit).len(), 100);
}
