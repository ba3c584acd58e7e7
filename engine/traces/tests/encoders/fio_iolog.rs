//! fio's iolog as fio expects it. That fio replays it is shown by the tests of the whole, in Python.

use crate::support::{encode, encode_with, row, Memory};
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_traces::{EncodeOptions, Times};

fn lost(encoded: &testdrive_traces::Encoded, column: &str) -> u64 {
    encoded.not_carried.iter().filter(|lost| lost.column == column).map(|lost| lost.ios).sum()
}

#[test]
fn each_opcode_has_its_word_and_what_has_none_is_counted() {
    let rows: Vec<IoRecord> = Opcode::ALL
        .into_iter()
        .zip([3_000_001_500, 3_000_002_000, 3_000_002_999, 3_000_003_000, 3_000_004_000])
        .map(|(opcode, time_ns)| row(time_ns, opcode))
        .collect();
    let (text, encoded) = encode("fio-iolog", &Memory::of(&rows));
    assert_eq!(
        text,
        "fio version 3 iolog\n\
         1 testdrive-target add\n\
         1 testdrive-target open\n\
         1 testdrive-target read 8192 4096\n\
         2 testdrive-target write 8192 4096\n\
         2 testdrive-target trim 8192 4096\n\
         3 testdrive-target sync 0 0\n\
         3 testdrive-target close\n"
    );
    assert_eq!((encoded.shift_ns, encoded.written.total().ios), (3_000_000_000, 4));
    assert_eq!((encoded.dropped.len(), encoded.dropped[0].count), (1, 1));
    assert!(encoded.dropped[0].what.contains("write_zeroes"));
    assert_eq!((lost(&encoded, "latency_ns"), lost(&encoded, "stream")), (4, 4));
    assert_eq!(
        (lost(&encoded, "intended_ns"), lost(&encoded, "submit_ns"), lost(&encoded, "flags")),
        (2, 0, 0)
    );
}

#[test]
fn the_time_written_is_the_one_that_was_asked_for_and_orders_the_lines() {
    let early = IoRecord { submit_ns: 9_000, flags: Flags::FUA, status: 5, ..row(5_000, Opcode::Read) };
    let late = IoRecord { submit_ns: 7_000, ..row(6_000, Opcode::Write) };
    let source = Memory::of(&[early, late]);
    let (text, encoded) = encode("fio-iolog", &source);
    let ios: Vec<&str> = text.lines().filter(|line| line.contains("8192")).collect();
    assert_eq!(ios, ["5 testdrive-target read 8192 4096", "6 testdrive-target write 8192 4096"]);
    assert_eq!((lost(&encoded, "submit_ns"), lost(&encoded, "flags"), lost(&encoded, "status")), (2, 1, 1));
    let options = EncodeOptions {
        times: Some(Times::Submit),
        target: Some("/dev/null".into()),
        ..EncodeOptions::default()
    };
    let (text, encoded) = encode_with("fio-iolog", &source, &options).unwrap();
    let ios: Vec<&str> = text.lines().filter(|line| line.contains("8192")).collect();
    assert_eq!(ios, ["7 /dev/null write 8192 4096", "9 /dev/null read 8192 4096"]);
    assert_eq!((lost(&encoded, "submit_ns"), lost(&encoded, "intended_ns")), (0, 2));
}

#[test]
fn a_first_time_of_zero_is_moved_a_second_on_since_fio_would_not_wait_after_it() {
    let (text, encoded) =
        encode("fio-iolog", &Memory::of(&[row(0, Opcode::Read), row(500_000, Opcode::Read)]));
    assert!(
        text.contains("\n1000000 testdrive-target read") && text.contains("\n1000500 testdrive-target read")
    );
    assert_eq!(encoded.shift_ns, -1_000_000_000);
}

#[test]
fn what_is_longer_than_fio_reads_is_written_in_pieces_that_cover_it() {
    let length_bytes = (11 << 30) + 4096;
    let long = IoRecord { offset_bytes: 1 << 20, length_bytes, ..row(5_000, Opcode::Trim) };
    let longest = IoRecord { length_bytes: i64::from(u32::MAX) - 511, ..long };
    let (text, encoded) = encode("fio-iolog", &Memory::of(&[long, longest]));
    let mut next = 1_i64 << 20;
    let trims: Vec<(i64, i64)> = text
        .lines()
        .filter_map(|line| line.split_once(" trim ")?.1.split_once(' '))
        .map(|(offset, length)| (offset.parse().unwrap(), length.parse().unwrap()))
        .collect();
    let (last, pieces) = trims.split_last().unwrap();
    for (offset, length) in pieces {
        assert_eq!(*offset, next);
        assert!(*length <= i64::from(u32::MAX) && length % 4096 == 0);
        next += length;
    }
    assert_eq!(next, (1 << 20) + length_bytes);
    assert_eq!(*last, (1 << 20, i64::from(u32::MAX) - 511));
    assert_eq!(encoded.written.of(Opcode::Trim).ios, 2);
    assert!(encoded.notes[1].contains(&format!("{} lines more", pieces.len() - 1)), "{:?}", encoded.notes);
}

#[test]
fn ios_without_place_or_length_are_left_out_and_counted() {
    let rows = [
        IoRecord { offset_bytes: -1, ..row(1_000, Opcode::Read) },
        IoRecord { length_bytes: 0, ..row(2_000, Opcode::Write) },
        row(3_000, Opcode::Write),
    ];
    let (text, encoded) = encode("fio-iolog", &Memory::of(&rows));
    assert_eq!(text.lines().count(), 5);
    assert_eq!((encoded.dropped[0].count, encoded.written.total().ios), (2, 1));
}

#[test]
fn names_that_fio_cannot_read_and_recordings_without_places_are_refused() {
    let source = Memory::of(&[row(1, Opcode::Read)]);
    for target in ["", "my disk", &"x".repeat(256)] {
        let options = EncodeOptions { target: Some(target.into()), ..EncodeOptions::default() };
        let message = encode_with("fio-iolog", &source, &options).err().unwrap().to_string();
        assert!(message.contains("--replay_redirect"), "{message}");
    }
    let without = Memory { absent: vec!["offset_bytes"], ..source };
    let message = encode_with("fio-iolog", &without, &EncodeOptions::default()).err().unwrap().to_string();
    assert!(message.contains("has no offset_bytes"), "{message}");
}
