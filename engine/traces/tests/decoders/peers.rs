//! Real traces, checked against what `blkparse` and `btt` say of them.

use crate::support::{decode, real_traces};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use testdrive_core::{IoRecord, Opcode};
use testdrive_traces::{detect, Events, Options};

/// Whether a peer is installed; where it must be and is not, the test fails.
fn has_peer(program: &str, test: &str) -> bool {
    let found = Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok();
    if !found {
        assert!(std::env::var_os("CI").is_none(), "{program} is not installed (Debian package blktrace)");
        println!("SKIPPED: {test}: {program} is not installed (Debian package blktrace)");
    }
    found
}

fn files_of(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains(".blktrace."))
        .collect();
    files.sort();
    files
}

/// One event as blkparse prints it.
#[derive(Clone, Debug)]
struct Event {
    action: String,
    rwbs: String,
    sector: i64,
    bytes: i64,
    time_ns: i64,
}

/// Every event of the files, in the order of time. blkparse reads them as one stream, since it refuses a file whose CPU is not the one
/// that its name says, and one of the samples is such a file.
fn blkparse(files: &[PathBuf]) -> Vec<Event> {
    let content: Vec<u8> = files.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    let folder = tempfile::tempdir().unwrap();
    let joined = folder.path().join("joined");
    std::fs::write(&joined, content).unwrap();
    let output = Command::new("blkparse")
        .args(["-q", "-i", "-", "-f", "%a %d %S %N %T %t\n"])
        .stdin(std::fs::File::open(&joined).unwrap())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut events: Vec<Event> = text.lines().filter_map(event).collect();
    // Files that were joined are in order one by one only.
    events.sort_by_key(|event| event.time_ns);
    events
}

fn event(line: &str) -> Option<Event> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [action, rwbs, sector, bytes, seconds, fraction] = words[..] else { return None };
    let time_ns = seconds.parse::<i64>().ok()? * 1_000_000_000 + fraction.parse::<i64>().ok()?;
    let (sector, bytes) = (sector.parse().ok()?, bytes.parse().ok()?);
    Some(Event { action: action.into(), rwbs: rwbs.into(), sector, bytes, time_ns })
}

fn count(events: &[Event], action: &str, rwbs: &str) -> usize {
    events.iter().filter(|event| event.action == action && event.rwbs == rwbs).count()
}

fn decoded_rows(files: &[PathBuf]) -> Vec<IoRecord> {
    assert_eq!(detect(files).unwrap().name(), "blktrace");
    decode("blktrace", files, &Options::default()).unwrap().0
}

/// The difference between our time zero and blkparse's, which is the trace's first event.
fn offset_ns(rows: &[IoRecord], events: &[Event], action: &str) -> i64 {
    let first =
        events.iter().filter(|event| event.action == action).map(|event| event.time_ns).min().unwrap();
    rows.iter().map(|row| row.intended_ns).min().unwrap() - first
}

#[test]
fn each_read_of_an_nvme_trace_has_blkparses_times() {
    let test = "each_read_of_an_nvme_trace_has_blkparses_times";
    let Some(traces) = real_traces(test) else { return };
    if !has_peer("blkparse", test) {
        return;
    }
    let files = files_of(&traces.join("blktrace-nvme-read"));
    let (rows, events) = (decoded_rows(&files), blkparse(&files));
    assert_eq!(
        (rows.len(), count(&events, "Q", "RA"), count(&events, "D", "RA"), count(&events, "C", "RA")),
        (963, 963, 963, 963)
    );
    let shift_ns = offset_ns(&rows, &events, "Q");
    for row in &rows {
        assert_eq!(row.opcode, Opcode::Read);
        let time_of = |action: &str, around_ns: i64| {
            let own = events.iter().filter(|event| {
                event.action == action
                    && event.sector * 512 == row.offset_bytes
                    && event.bytes == row.length_bytes
            });
            own.map(|event| event.time_ns + shift_ns).min_by_key(|time_ns| (time_ns - around_ns).abs())
        };
        assert_eq!(time_of("Q", row.intended_ns), Some(row.intended_ns));
        assert_eq!(time_of("D", row.submit_ns), Some(row.submit_ns));
        assert_eq!(time_of("C", row.submit_ns + row.latency_ns), row.complete_ns());
    }
}

#[test]
fn average_latencies_are_btts() {
    let test = "average_latencies_are_btts";
    let Some(traces) = real_traces(test) else { return };
    if !has_peer("blkparse", test) || !has_peer("btt", test) {
        return;
    }
    let files = files_of(&traces.join("blktrace-nvme-read"));
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("all.bin");
    let input = std::fs::File::open(&files[0]).unwrap();
    let status =
        Command::new("blkparse").args(["-q", "-O", "-i", "-", "-d"]).arg(&dump).stdin(input).status();
    assert!(status.unwrap().success());
    let output = Command::new("btt").arg("-i").arg(&dump).current_dir(folder.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let average_us = |name: &str| {
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
        let words: Vec<&str> = line.split_whitespace().collect();
        (words[2].parse::<f64>().unwrap() * 1e6, words[4].parse::<usize>().unwrap())
    };
    let printed = folder.path().join("printed");
    let input = std::fs::File::open(&files[0]).unwrap();
    let status = Command::new("blkparse").args(["-q", "-i", "-", "-o"]).arg(&printed).stdin(input).status();
    assert!(status.unwrap().success());
    let from_text = decode("blkparse", &[printed], &Options::default()).unwrap().0;
    for rows in [decoded_rows(&files), from_text] {
        let mean_us = |value: fn(&IoRecord) -> i64| {
            rows.iter().map(|row| value(row) as f64).sum::<f64>() / rows.len() as f64 / 1e3
        };
        for (name, own_us) in [
            ("D2C", mean_us(|row| row.latency_ns)),
            ("Q2C", mean_us(|row| row.submit_ns + row.latency_ns - row.intended_ns)),
        ] {
            let (btt_us, ios) = average_us(name);
            assert_eq!(ios, rows.len());
            assert!((btt_us - own_us).abs() < 0.001, "{name}: btt {btt_us} us, here {own_us} us");
        }
    }
}

#[test]
fn a_sata_trace_with_trims_issued_again_has_blkparses_counts_and_times() {
    let test = "a_sata_trace_with_trims_issued_again_has_blkparses_counts_and_times";
    let Some(traces) = real_traces(test) else { return };
    if !has_peer("blkparse", test) {
        return;
    }
    let files = files_of(&traces.join("blktrace-keks-sata-discard"));
    let (rows, events) = (decoded_rows(&files), blkparse(&files));
    let of = |opcode: Opcode| rows.iter().filter(|row| row.opcode == opcode).collect::<Vec<_>>();
    assert_eq!(of(Opcode::Write).len(), count(&events, "C", "W"));
    assert_eq!(of(Opcode::Trim).len(), count(&events, "C", "DS"));
    assert_eq!(of(Opcode::Flush).len(), count(&events, "C", "FN"));
    assert_eq!(rows.len(), 1153 + 5 + 24);
    assert!(rows.iter().all(|row| row.latency_ns >= 0));
    // Paired here in the plainest way: a completion is of the last issue of the same place before it.
    let mut last_issue = BTreeMap::new();
    let mut latencies_ns = Vec::new();
    for event in &events {
        let key = (event.rwbs.clone(), event.sector, event.bytes);
        match &event.action[..] {
            "D" => {
                last_issue.insert(key, event.time_ns);
            }
            "C" if event.rwbs != "NS" => latencies_ns.push(event.time_ns - last_issue[&key]),
            _ => {}
        }
    }
    let mut own: Vec<i64> = rows.iter().map(|row| row.latency_ns).collect();
    own.sort_unstable();
    latencies_ns.sort_unstable();
    assert_eq!(own, latencies_ns);
}

/// Rows whose times count from the first of them: blkparse's text begins at 0, the trace itself anywhere.
fn from_first(mut rows: Vec<IoRecord>) -> Vec<IoRecord> {
    let first_ns = rows.iter().map(|row| row.intended_ns.min(row.submit_ns)).min().unwrap_or(0);
    for row in &mut rows {
        row.intended_ns -= first_ns;
        row.submit_ns -= first_ns;
    }
    rows
}

#[test]
fn a_binary_trace_and_blkparses_text_of_it_become_the_same_rows() {
    let test = "a_binary_trace_and_blkparses_text_of_it_become_the_same_rows";
    let Some(traces) = real_traces(test) else { return };
    if !has_peer("blkparse", test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for (name, arguments) in [
        ("blktrace-nvme-read/sample.blktrace.0", &["-i", "-"][..]),
        ("blktrace-nvme-read/sample.blktrace.0", &["-t", "-s", "-i", "-"]),
        ("blktrace-keks-sata-discard/keks.blktrace.0", &["-i", "keks"]),
        ("blktrace-keks-sata-discard/keks.blktrace.0", &["-q", "-t", "-i", "keks"]),
    ] {
        let binary = traces.join(name);
        let output = Command::new("blkparse")
            .args(arguments)
            .current_dir(binary.parent().unwrap())
            .stdin(std::fs::File::open(&binary).unwrap())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        let text = folder.path().join("printed");
        std::fs::write(&text, &output.stdout).unwrap();
        assert_eq!(detect(std::slice::from_ref(&text)).unwrap().name(), "blkparse");
        for events in [None, Some(Events::Issued)] {
            let options = Options { events, ..Options::default() };
            let (own, own_decoded) = decode("blktrace", std::slice::from_ref(&binary), &options).unwrap();
            let (printed, decoded) = decode("blkparse", std::slice::from_ref(&text), &options).unwrap();
            assert!(!own.is_empty());
            assert_eq!(from_first(printed), from_first(own), "{arguments:?}");
            assert_eq!(decoded.dropped, own_decoded.dropped, "{arguments:?}");
            assert_eq!(decoded.absent_columns, own_decoded.absent_columns);
        }
    }
}

#[test]
fn a_published_text_has_the_counts_that_its_notes_say() {
    let test = "a_published_text_has_the_counts_that_its_notes_say";
    let Some(traces) = real_traces(test) else { return };
    let path = traces.join("blkparse-ycsb-rocksdb-nvme/sample.txt");
    assert_eq!(detect(std::slice::from_ref(&path)).unwrap().name(), "blkparse");
    let (rows, decoded) = decode("blkparse", std::slice::from_ref(&path), &Options::default()).unwrap();
    // 1695 were queued and 1694 completed; reads only, one at a time, in 0.68 s.
    assert_eq!(rows.len(), 1695);
    assert!(rows.iter().all(|row| row.opcode == Opcode::Read));
    assert_eq!(rows.iter().filter(|row| row.latency_ns < 0).count(), 1);
    assert!(decoded.dropped.is_empty(), "{:?}", decoded.dropped);
    assert_eq!(rows.last().unwrap().intended_ns, 679_741_681);
    let issued = Options { events: Some(Events::Issued), ..Options::default() };
    let (rows, _) = decode("blkparse", &[path], &issued).unwrap();
    assert_eq!(rows.iter().filter(|row| row.latency_ns >= 0).count(), 1694);
}

#[test]
fn a_real_trace_without_one_cpu_says_what_is_missing() {
    let test = "a_real_trace_without_one_cpu_says_what_is_missing";
    let Some(traces) = real_traces(test) else { return };
    let folder = tempfile::tempdir().unwrap();
    for path in files_of(&traces.join("blktrace-keks-sata-discard")) {
        // CPU 3 took every completion.
        if !path.to_string_lossy().ends_with(".3") {
            std::fs::copy(&path, folder.path().join(path.file_name().unwrap())).unwrap();
        }
    }
    let (rows, decoded) = decode("blktrace", &[folder.path().to_path_buf()], &Options::default()).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row.latency_ns == -1));
    let codes: Vec<&str> = decoded.warnings.iter().map(|warning| warning.code).collect();
    assert!(codes.contains(&"cpu_files_missing") && codes.contains(&"no_completions"), "{codes:?}");
    assert!(decoded.absent_columns.contains(&"latency_ns"));
}
