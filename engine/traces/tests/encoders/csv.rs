//! CSV is read back without options, exactly.

use crate::support::{any_rows, decode, encode, encode_with, row, Memory};
use proptest::prelude::*;
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_traces::{detect, EncodeOptions, Times};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_row_comes_back_as_it_was(seed in any::<u64>(), count in 1_usize..400) {
        let rows = any_rows(seed, count);
        let (text, encoded) = encode("csv", &Memory::of(&rows));
        let (found, decoded) = decode("csv", &text);
        // The export shifted by whole seconds already, so that the import has nothing to shift.
        prop_assert_eq!(decoded.shift_ns, 0);
        let shifted: Vec<IoRecord> = found
            .iter()
            .map(|row| IoRecord {
                intended_ns: row.intended_ns + encoded.shift_ns,
                submit_ns: row.submit_ns + encoded.shift_ns,
                ..*row
            })
            .collect();
        prop_assert_eq!(shifted, rows);
        prop_assert_eq!(encoded.written.total().ios, count as u64);
        prop_assert!(encoded.dropped.is_empty() && encoded.not_carried.is_empty());
        prop_assert!(decoded.absent_columns.is_empty());
    }

    #[test]
    fn what_the_recording_lacks_the_text_lacks_too(mask in 0_u16..512) {
        let columns = [
            "intended_ns", "submit_ns", "latency_ns", "offset_bytes", "length_bytes", "opcode", "flags", "stream", "status",
        ];
        // Without any time there is no recording.
        let mask = if mask & 3 == 3 { mask & !1 } else { mask };
        let absent: Vec<&'static str> =
            columns.iter().enumerate().filter(|(bit, _)| mask & 1 << bit != 0).map(|(_, name)| *name).collect();
        let rows = [row(5, Opcode::Read), row(6, Opcode::Read)];
        let (text, _) = encode("csv", &Memory { absent: absent.clone(), ..Memory::of(&rows) });
        let (found, decoded) = decode("csv", &text);
        prop_assert_eq!(found.len(), 2);
        prop_assert_eq!(decoded.absent_columns, absent);
    }
}

#[test]
fn the_text_is_what_people_expect() {
    let mut rows = [row(7_000_000_123, Opcode::Read), row(7_000_000_124, Opcode::Trim)];
    rows[0].flags = Flags::FUA | Flags::SYNC;
    rows[1] =
        IoRecord { latency_ns: -1, stream: -1, status: 5, offset_bytes: -1, flags: Flags(64), ..rows[1] };
    let (text, encoded) = encode("csv", &Memory::of(&rows));
    assert_eq!(
        text,
        "intended_ns,submit_ns,latency_ns,op,offset_bytes,length_bytes,flags,stream,status\n\
         123,123,1000,read,8192,4096,fua|sync,0,0\n\
         124,124,,trim,-1,4096,64,,5\n"
    );
    assert_eq!(encoded.shift_ns, 7_000_000_000);
    assert_eq!(decode("csv", &text).0[1].flags, Flags(64));
}

#[test]
fn the_text_is_known_by_its_header_whatever_the_file_is_called() {
    let (text, _) = encode("csv", &Memory::of(&[row(1, Opcode::Read)]));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("workload");
    std::fs::write(&path, text).unwrap();
    assert_eq!(detect(&[path]).unwrap().name(), "csv");
}

#[test]
fn rows_of_several_phases_are_said_to_become_one() {
    let rows = [row(1, Opcode::Read), IoRecord { phase: 3, ..row(2, Opcode::Read) }];
    let (_, encoded) = encode("csv", &Memory::of(&rows));
    assert_eq!((encoded.not_carried[0].column, encoded.not_carried[0].ios), ("phase", 1));
}

#[test]
fn options_of_other_formats_and_empty_sources_are_refused() {
    let source = Memory::of(&[row(1, Opcode::Read)]);
    for options in [
        EncodeOptions { target: Some("x".into()), ..EncodeOptions::default() },
        EncodeOptions { times: Some(Times::Submit), ..EncodeOptions::default() },
    ] {
        let message = encode_with("csv", &source, &options).err().unwrap().to_string();
        assert!(message.contains("does not fit csv"), "{message}");
    }
    let message =
        encode_with("csv", &Memory::default(), &EncodeOptions::default()).err().unwrap().to_string();
    assert!(message.contains("--phases"), "{message}");
}
