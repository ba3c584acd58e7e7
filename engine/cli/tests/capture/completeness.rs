//! What is captured is what happened: every I/O, once, at its place.

use crate::capturing::{capture_turn, open, rows, Capturing};
use crate::support::{has_program, must, skip, Loop, SIZE_BYTES};
use crate::workload::Direct;
use serde_json::Value;
use std::path::Path;
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_recording::{RecordingKind, Status};

const BLOCK: i64 = 4096;

fn of(rows: &[IoRecord], opcode: Opcode) -> Vec<IoRecord> {
    rows.iter().copied().filter(|row| row.opcode == opcode).collect()
}

/// Offsets in blocks and lengths in blocks, in the order of queueing.
fn places(rows: &[IoRecord]) -> Vec<(i64, i64)> {
    let mut rows = rows.to_vec();
    rows.sort_by_key(|row| row.intended_ns);
    rows.iter().map(|row| (row.offset_bytes / BLOCK, row.length_bytes / BLOCK)).collect()
}

/// A capture of a device while `work` is done; the rows of its recording.
fn captured(folder: &Path, device: &str, work: impl FnOnce()) -> Vec<IoRecord> {
    let output = folder.join("a.rec");
    let capturing = Capturing::start(&[device, "-o", output.to_str().unwrap()]);
    work();
    let last = capturing.stop();
    assert_eq!(last["events_lost"], 0);
    rows(&output)
}

#[test]
fn a_known_workload_of_a_prime_number_of_each_kind_is_captured_exactly() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let (reads, writes, durable, flushes, trims, zeroes) = (101, 103, 29, 31, 53, 17);
    let rows = captured(folder.path(), &device.path, || {
        let mut direct = Direct::open(&device.path);
        (0..reads).for_each(|index| direct.read(index * 7));
        (0..writes).for_each(|index| direct.write(index * 11));
        (0..durable).for_each(|index| direct.write_durably(index * 13));
        (0..flushes).for_each(|_| direct.flush());
        (0..trims).for_each(|index| direct.trim(index * 16, 16));
        (0..zeroes).for_each(|index| direct.write_zeroes(index * 32, 32));
    });
    let steps = |count: u64, step: i64, length: i64| -> Vec<(i64, i64)> {
        (0..count as i64).map(|index| (index * step, length)).collect()
    };
    assert_eq!(places(&of(&rows, Opcode::Read)), steps(reads, 7, 1));
    let (fua, plain): (Vec<_>, Vec<_>) =
        of(&rows, Opcode::Write).into_iter().partition(|row| row.flags.contains(Flags::FUA));
    assert_eq!(places(&plain), steps(writes, 11, 1));
    assert_eq!(places(&fua), steps(durable, 13, 1));
    assert_eq!(places(&of(&rows, Opcode::Trim)), steps(trims, 16, 16));
    assert_eq!(places(&of(&rows, Opcode::WriteZeroes)), steps(zeroes, 32, 32));
    // The kernel follows each durable write with a flush of its own, since a loop device cannot do FUA.
    assert_eq!(of(&rows, Opcode::Flush).len() as u64, flushes + durable);
    for row in &rows {
        assert!(row.status == 0 && row.latency_ns > 0 && row.submit_ns >= row.intended_ns, "{row:?}");
        assert!((0..1024).contains(&row.stream), "{row:?}");
    }
}

#[test]
fn the_recording_says_what_it_is_of_and_how_it_was_made() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    captured(folder.path(), &device.path, || Direct::open(&device.path).write(5));
    let manifest = open(&folder.path().join("a.rec")).manifest;
    assert_eq!((manifest.kind, manifest.status), (RecordingKind::Capture, Status::Complete));
    assert_eq!(manifest.clock.source, "clock_monotonic");
    let drive = manifest.drive.unwrap();
    assert_eq!((drive.uri, drive.capacity_bytes), (device.path.clone(), SIZE_BYTES));
    assert_eq!(manifest.source["name"], device.name());
    assert_eq!(manifest.source["events"], "queued");
    assert!(manifest.dropped.is_empty() && manifest.warnings.is_empty(), "{:?}", manifest.warnings);
    let phase = &manifest.phases[0];
    assert!(phase.start_ns < 1_000_000_000 && phase.end_ns > phase.start_ns);
}

#[test]
fn captured_counts_equal_those_of_fio_by_opcode() {
    let Some(_turn) = capture_turn() else { return };
    if !has_program("fio") {
        return skip("fio is not installed");
    }
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let report = folder.path().join("fio.json");
    let filename = format!("--filename={}", device.path);
    let output = format!("--output={}", report.display());
    // What stands before the first name is of both jobs.
    let mut job = vec!["--thread", &filename, "--direct=1", "--ioengine=io_uring", "--norandommap=1"];
    job.extend(["--output-format=json", &output]);
    // Beyond the device's requests the kernel turns attempts away, which must not be counted.
    job.extend(["--name=mixed", "--rw=randrw", "--bs=4k", "--iodepth=300", "--number_ios=20011"]);
    job.extend(["--name=trims", "--rw=randtrim", "--bs=16k", "--iodepth=8", "--number_ios=5003"]);
    let rows = captured(folder.path(), &device.path, || {
        must("fio", &job);
    });
    let text = std::fs::read_to_string(&report).unwrap();
    let fio: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    for (kind, opcode) in [("read", Opcode::Read), ("write", Opcode::Write), ("trim", Opcode::Trim)] {
        let jobs = fio["jobs"].as_array().unwrap();
        let ios: u64 = jobs.iter().map(|job| job[kind]["total_ios"].as_u64().unwrap()).sum();
        let bytes: i64 = jobs.iter().map(|job| job[kind]["io_bytes"].as_i64().unwrap()).sum();
        let own = of(&rows, opcode);
        assert!(ios > 1000, "{kind}: {ios}");
        assert_eq!(own.len() as u64, ios, "{kind}");
        assert_eq!(own.iter().map(|row| row.length_bytes).sum::<i64>(), bytes, "{kind}");
    }
    assert!(rows.iter().all(|row| row.status == 0 && row.latency_ns > 0));
}

#[test]
fn several_devices_are_recorded_apart_with_one_clock() {
    let Some(_turn) = capture_turn() else { return };
    let (one, other, idle) = (Loop::new(), Loop::new(), Loop::new());
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("all");
    let arguments = [&one.path, &other.path, &idle.path, "-o", output.to_str().unwrap()];
    let capturing = Capturing::start(&arguments);
    let (mut first, mut second) = (Direct::open(&one.path), Direct::open(&other.path));
    for index in 0..97 {
        first.write(index);
        second.read(index * 2);
    }
    let last = capturing.stop();
    assert_eq!((&last["counts"]["ios"], last["recordings"].as_array().unwrap().len()), (&194.into(), 3));
    let recording = |device: &Loop| output.join(format!("{}.rec", device.name()));
    let (first, second) = (rows(&recording(&one)), rows(&recording(&other)));
    assert_eq!((of(&first, Opcode::Write).len(), first.len()), (97, 97));
    assert_eq!((of(&second, Opcode::Read).len(), second.len()), (97, 97));
    // Each write was done before the read after it began.
    let order = first.iter().zip(&second);
    assert!(order.clone().all(|(write, read)| write.complete_ns().unwrap() < read.intended_ns));
    let shifts: Vec<i64> =
        [&one, &other, &idle].iter().map(|device| open(&recording(device)).manifest.clock.shift_ns).collect();
    assert_eq!((shifts[0], shifts[0]), (shifts[1], shifts[2]));
    let idle = open(&recording(&idle)).manifest;
    assert_eq!(
        (idle.counts.ios, idle.status, idle.warnings[0].code.as_str()),
        (0, Status::Complete, "no_ios")
    );
}

#[test]
fn a_partition_has_its_own_places_and_nothing_of_the_rest_of_its_disk() {
    let Some(_turn) = capture_turn() else { return };
    let device = Loop::with(&["-P"]);
    let partition = device.partition();
    let folder = tempfile::tempdir().unwrap();
    let rows = captured(folder.path(), &partition, || {
        let (mut inside, mut disk) = (Direct::open(&partition), Direct::open(&device.path));
        for index in 0..83 {
            inside.write(index);
            // Before the partition, in it by the disk's own count, and behind it.
            disk.read(index % 256);
            disk.read(256 + index);
            disk.read(5376 + index);
        }
        inside.flush();
    });
    assert_eq!(places(&of(&rows, Opcode::Write)), (0..83).map(|index| (index, 1)).collect::<Vec<_>>());
    assert_eq!(places(&of(&rows, Opcode::Read)), (0..83).map(|index| (index, 1)).collect::<Vec<_>>());
    assert_eq!((of(&rows, Opcode::Flush).len(), rows.len()), (1, 167));
    let manifest = open(&folder.path().join("a.rec")).manifest;
    assert_eq!(manifest.drive.unwrap().capacity_bytes, 40_960 * 512);
    assert_eq!(manifest.source["partition_first_sector"], 2048);
    assert!(manifest.dropped.is_empty(), "{:?}", manifest.dropped);
}

#[test]
fn events_that_are_left_out_make_absent_columns() {
    let Some(_turn) = capture_turn() else { return };
    let (device, folder) = (Loop::new(), tempfile::tempdir().unwrap());
    let cases = [
        ("issue,complete", "issued", vec!["intended_ns"], "no_queue_events"),
        ("queue,complete", "queued", vec!["submit_ns"], "no_issue_events"),
        ("queue", "queued", vec!["submit_ns", "latency_ns", "status"], "no_completions"),
    ];
    for (events, kind, absent, warning) in cases {
        let output = folder.path().join(events);
        let capturing = Capturing::start(&[&device.path, "--events", events, "-o", output.to_str().unwrap()]);
        let mut direct = Direct::open(&device.path);
        (0..59).for_each(|index| direct.read(index));
        capturing.stop();
        let manifest = open(&output).manifest;
        assert_eq!(
            (manifest.counts.ios, manifest.absent_columns),
            (59, absent.iter().map(ToString::to_string).collect())
        );
        assert_eq!(manifest.source["events"], kind);
        let told = manifest.warnings.iter().find(|each| each.code == warning).unwrap();
        assert!(told.remedy.contains("--events queue,issue,complete"), "{told:?}");
    }
}
