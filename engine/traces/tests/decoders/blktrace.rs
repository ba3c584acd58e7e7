//! Binary blktrace: versions, byte orders, CPUs, and damage.

use crate::encode::{file, Layout, Record, A, C, CGROUP, D, DISCARD, FLUSH, FUA, LAYOUTS, META, NOTIFY};
use crate::encode::{PASSTHROUGH, Q, READ, SYNC, WRITE, WRITE_ZEROES, ZONE_RESET};
use crate::support::{briefs, decode, decode_text, dropped, has_warning};
use std::path::PathBuf;
use testdrive_core::{Flags, IoRecord, Opcode::*};
use testdrive_traces::{detect, Decoded, Device, Options, TraceError};

const S: u64 = 1_000_000_000;
const V7: Layout = LAYOUTS[0];
const V8: Layout = LAYOUTS[2];

fn rows_of(records: &[Record], layout: Layout) -> (Vec<IoRecord>, Decoded) {
    decode_text("blktrace", file(records, layout), &Options::default()).unwrap()
}

/// Q, D and C of one I/O, 1 us apart.
fn whole(time_us: u64, category: u64, sector: u64, sectors: u32) -> Vec<Record> {
    [Q, D, C]
        .iter()
        .enumerate()
        .map(|(step, act)| {
            let time_ns = 5 * S + (time_us + step as u64) * 1000;
            Record::io(time_ns, *act, category, sector, sectors)
        })
        .collect()
}

#[test]
fn every_version_and_byte_order_gives_the_same_rows() {
    let mut records = vec![Record { category: NOTIFY, pdu: b"fio\0".to_vec(), ..Record::default() }];
    records.extend(whole(10, READ, 64, 8));
    records.extend(whole(20, WRITE | FUA | SYNC | META, 128, 16));
    // A trim carries the bits of a write too.
    records.extend(whole(30, WRITE | DISCARD, 4096, 2048));
    for layout in LAYOUTS {
        let (rows, decoded) = rows_of(&records, layout);
        let expected =
            [(Read, 64, 8, 10, 11, 1, 0), (Write, 128, 16, 20, 21, 1, 0), (Trim, 4096, 2048, 30, 31, 1, 0)];
        assert_eq!(briefs(&rows), expected, "{layout:?}");
        assert_eq!(rows[1].flags, Flags::FUA | Flags::SYNC | Flags::METADATA);
        assert_eq!(decoded.device, Device::parse("8:16"));
        assert_eq!(decoded.shift_ns, 5 * S as i64);
        assert!(decoded.dropped.is_empty());
    }
}

#[test]
fn flushes_are_reads_with_the_flush_bit_and_end_with_an_empty_completion() {
    let records = [
        Record::io(S, Q, WRITE | FLUSH | SYNC, 0, 0),
        Record::io(S + 10_000, D, READ | FLUSH, 0, 0),
        Record::io(S + 50_000, C, READ | FLUSH, 0, 0),
        Record::io(S + 51_000, C, READ | SYNC, 0, 0),
    ];
    let (rows, decoded) = rows_of(&records, V7);
    assert_eq!(briefs(&rows), [(Flush, 0, 0, 0, 10, 41, 0)]);
    assert!(decoded.dropped.is_empty());
    let (rows, _) = rows_of(&records[1..], V7);
    assert_eq!(briefs(&rows), [(Flush, 0, 0, 10, 10, 40, 0)]);
}

#[test]
fn version_8_tells_write_zeroes_and_zone_commands() {
    let mut records = whole(10, WRITE | WRITE_ZEROES, 0, 8);
    records.extend(whole(20, WRITE | ZONE_RESET, 0, 8));
    records.extend(whole(30, READ | PASSTHROUGH, 0, 0));
    let (rows, decoded) = rows_of(&records, V8);
    assert_eq!(briefs(&rows), [(WriteZeroes, 0, 8, 10, 11, 1, 0)]);
    assert_eq!(dropped(&decoded, "zone commands"), 1);
    assert_eq!(dropped(&decoded, "passed through"), 1);
}

#[test]
fn errors_are_errnos_and_cgroups_are_stepped_over() {
    let mut records = whole(10, READ, 64, 8);
    records[2].error = -5;
    let mut remap = Record::io(5 * S, A | CGROUP, READ, 64, 8);
    remap.pdu = vec![9; 8];
    remap.pdu.extend((8_u32 << 20 | 17).to_be_bytes());
    remap.pdu.extend((8_u32 << 20 | 16).to_be_bytes());
    remap.pdu.extend(0_u64.to_be_bytes());
    records.insert(0, remap);
    for record in &mut records[1..] {
        record.act |= CGROUP;
        record.pdu = vec![1; 8];
    }
    let (rows, _) = rows_of(&records, V7);
    assert_eq!(briefs(&rows), [(Read, 64, 8, 10, 11, 1, 5)]);
}

/// Writes the files of a trace of as many CPUs, round robin, and gives their paths.
fn per_cpu(folder: &std::path::Path, records: &[Record], cpus: usize) -> Vec<PathBuf> {
    (0..cpus)
        .map(|cpu| {
            let own: Vec<Record> = records.iter().skip(cpu).step_by(cpus).cloned().collect();
            let path = folder.join(format!("sdb.blktrace.{cpu}"));
            std::fs::write(&path, file(&own, V7)).unwrap();
            path
        })
        .collect()
}

#[test]
fn the_files_of_all_cpus_are_one_trace_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..500).flat_map(|index| whole(index * 10, READ, index * 8, 8)).collect();
    // Neither 4 nor 2 divides the three events of an I/O: they lie in different files.
    let paths = per_cpu(folder.path(), &records, 4);
    let expected = briefs(&rows_of(&records, V7).0);
    assert_eq!(expected.len(), 500);
    for inputs in [paths.clone(), vec![paths[2].clone()], vec![folder.path().to_path_buf()]] {
        assert_eq!(detect(&inputs).unwrap().name(), "blktrace");
        let (rows, decoded) = decode("blktrace", &inputs, &Options::default()).unwrap();
        assert_eq!(briefs(&rows), expected);
        assert_eq!(decoded.files, paths);
    }
}

#[test]
fn a_missing_cpu_is_said_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let records: Vec<Record> = (0..300).flat_map(|index| whole(index * 10, READ, index * 8, 8)).collect();
    let paths = per_cpu(folder.path(), &records, 4);
    std::fs::remove_file(&paths[1]).unwrap();
    let (rows, decoded) = decode("blktrace", &[paths[0].clone()], &Options::default()).unwrap();
    let unseen = rows.iter().filter(|row| row.latency_ns < 0).count();
    assert!(unseen > 50, "{unseen}");
    assert!(has_warning(&decoded, "cpu_files_missing") && has_warning(&decoded, "completions_missing"));
    let warning = decoded.warnings.iter().find(|warning| warning.code == "completions_missing").unwrap();
    assert!(warning.message.contains(&format!("{unseen} of {} I/Os", rows.len())), "{}", warning.message);
}

#[test]
fn a_record_cut_off_at_the_end_is_counted() {
    let mut records = whole(10, READ, 64, 8);
    records.push(Record { pdu: vec![0; 16], ..Record::io(6 * S, Q, READ, 0, 8) });
    let content = file(&records, V7);
    let whole_bytes = 3 * 48;
    for length in [whole_bytes + 1, whole_bytes + 5, whole_bytes + 47, whole_bytes + 48, content.len() - 1] {
        let (rows, decoded) = decode_text("blktrace", &content[..length], &Options::default()).unwrap();
        assert_eq!(rows.len(), 1, "{length}");
        assert_eq!(dropped(&decoded, "cut off"), 1, "{length}");
        assert!(has_warning(&decoded, "truncated"));
    }
}

#[test]
fn damage_is_an_error_at_its_byte() {
    let mut content = file(&whole(10, READ, 64, 8), V7);
    content[96] = b'?';
    let message = decode_text("blktrace", &content, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("byte 96") && message.contains("head -c 96"), "{message}");
    content[0] = 5;
    let message = decode_text("blktrace", &content, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("byte 0: 05 74 61 65 is no record of blktrace version 7 or 8"), "{message}");
}

#[test]
fn a_trace_of_notes_holds_no_io() {
    let records = [Record { category: NOTIFY, pdu: b"fio\0".to_vec(), ..Record::default() }];
    let error = decode_text("blktrace", file(&records, V7), &Options::default()).err().unwrap();
    assert!(matches!(error, TraceError::NoIos { .. }), "{error}");
}
