//! blkparse text as blkparse prints it.

use crate::support::{any_rows, encode, encode_with, row, Memory};
use proptest::prelude::*;
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_traces::{Device, EncodeOptions};

/// Lines without device, sequence number and process: CPU, time, action, letters and what follows.
fn brief(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(words.len() >= 8, "{line}");
            format!("{} {} {}", words[1], words[3], words[5..].join(" "))
        })
        .collect()
}

#[test]
fn every_io_has_its_three_events_in_the_order_of_time() {
    let write = IoRecord { submit_ns: 300, latency_ns: 2_000_000_000, stream: 3, ..row(100, Opcode::Write) };
    let read = IoRecord {
        submit_ns: 200,
        latency_ns: 50,
        status: 5,
        flags: Flags::READ_AHEAD,
        ..row(200, Opcode::Read)
    };
    let source = Memory { device: Some(Device { major: 259, minor: 2 }), ..Memory::of(&[write, read]) };
    let (text, encoded) = encode("blkparse", &source);
    assert_eq!(
        text.lines().next().unwrap(),
        "259,2    3        1     0.000000100     0  Q   W 16 + 8 [testdrive]"
    );
    assert_eq!(
        brief(&text),
        [
            "3 0.000000100 Q W 16 + 8 [testdrive]",
            "0 0.000000200 Q RA 16 + 8 [testdrive]",
            "0 0.000000200 D RA 16 + 8 [testdrive]",
            "0 0.000000250 C RA 16 + 8 [65531]",
            "3 0.000000300 D W 16 + 8 [testdrive]",
            "3 2.000000300 C W 16 + 8 [0]",
        ]
    );
    assert_eq!(encoded.written.total().ios, 2);
    assert!(encoded.not_carried.is_empty() && encoded.dropped.is_empty());
}

#[test]
fn a_flush_ends_twice_and_so_does_a_write_with_a_preflush() {
    let flush = IoRecord { flags: Flags::SYNC, ..row(100, Opcode::Flush) };
    let both = Flags::PREFLUSH | Flags::FUA | Flags::SYNC | Flags::METADATA;
    let journal = IoRecord { flags: both, ..row(5000, Opcode::Write) };
    let (text, _) = encode("blkparse", &Memory::of(&[flush, journal]));
    assert_eq!(
        brief(&text),
        [
            "0 0.000000100 Q FWS [testdrive]",
            "0 0.000000100 D FFS [testdrive]",
            "0 0.000001100 C FFS 0 [0]",
            "0 0.000001100 C WS 0 [0]",
            "0 0.000005000 Q FWFSM 16 + 8 [testdrive]",
            "0 0.000005000 D WFSM 16 + 8 [testdrive]",
            "0 0.000006000 C WFSM 16 + 8 [0]",
            "0 0.000006000 C WFSM 16 [0]",
        ]
    );
}

#[test]
fn what_completes_stands_before_what_is_submitted_then_but_after_its_own_issue() {
    let first = IoRecord { latency_ns: 100, ..row(100, Opcode::Write) };
    let second = IoRecord { latency_ns: 0, ..row(200, Opcode::Write) };
    let third = IoRecord { latency_ns: -1, ..row(200, Opcode::Write) };
    let (text, _) = encode("blkparse", &Memory::of(&[first, second, third]));
    let actions: Vec<String> =
        brief(&text).iter().map(|line| line.split(' ').nth(2).unwrap().to_string()).collect();
    assert_eq!(actions.concat(), "QDCQQDDC");
}

#[test]
fn events_that_the_recording_has_no_times_of_are_not_written() {
    let rows = [row(100, Opcode::Write), row(3000, Opcode::Flush)];
    for (absent, expected) in
        [("intended_ns", "D WC WD FFC FF"), ("submit_ns", "Q WC WQ FWC W"), ("latency_ns", "Q WD WQ FWD FF")]
    {
        let (text, _) = encode("blkparse", &Memory { absent: vec![absent], ..Memory::of(&rows) });
        let found: Vec<String> = brief(&text)
            .iter()
            .map(|line| line.split(' ').skip(2).take(2).collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(found.concat(), expected, "without {absent}");
    }
}

#[test]
fn places_within_sectors_are_widened_and_counted() {
    let odd = IoRecord { offset_bytes: 1000, length_bytes: 100, ..row(1, Opcode::Read) };
    let (text, encoded) = encode("blkparse", &Memory::of(&[odd]));
    assert!(text.contains("Q   R 1 + 2 ["), "{text}");
    let lost: Vec<(&str, u64)> = encoded.not_carried.iter().map(|lost| (lost.column, lost.ios)).collect();
    assert_eq!(lost, [("offset_bytes", 1), ("length_bytes", 1)]);
}

#[test]
fn the_device_is_the_one_asked_for() {
    let options = EncodeOptions { device: Device::parse("8:16"), ..EncodeOptions::default() };
    let (text, _) = encode_with("blkparse", &Memory::of(&[row(1, Opcode::Read)]), &options).unwrap();
    assert!(text.lines().all(|line| line.starts_with("8,16 ")), "{text}");
    let options = EncodeOptions { target: Some("x".into()), ..EncodeOptions::default() };
    assert!(encode_with("blkparse", &Memory::default(), &options)
        .err()
        .unwrap()
        .to_string()
        .contains("--device"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn time_never_goes_back(seed in any::<u64>(), count in 1_usize..300) {
        let (text, encoded) = encode("blkparse", &Memory::of(&any_rows(seed, count)));
        let times: Vec<f64> = brief(&text)
            .iter()
            .map(|line| line.split(' ').nth(1).unwrap().parse().unwrap())
            .collect();
        prop_assert!(times.is_sorted());
        prop_assert_eq!(encoded.written.total().ios, count as u64);
    }
}
