//! The text of blkparse: what it prints of a made-up trace, and what it does not print.

use crate::support::{briefs, decode_text, dropped, has_warning};
use std::fmt::Write as _;
use testdrive_core::Opcode::{Flush, Read, Trim};
use testdrive_traces::{detect, Device, Options, TraceError};

/// As blkparse 1.2.0 printed it of records that were made for this test.
const PRINTED: &str = "\
  8,16   0        0     0.000000000     0  m   N hello world 8,0 C
  8,16   0        1     0.000001000    77  Q FWS [my proc] [x]
  8,16   0        2     0.000002000    77  D  FN [my proc] [x]
  8,16   0        3     0.000012000    77  C  FN 18446744073709551615 [65531]
  8,16   0        4     0.000013000    77  C  NS 0 [0]
  8,16   0        5     0.000015000    77  Q  DS 100 + 100 [my proc] [x]
  8,16   0        6     0.000016000    77  D  DS 100 + 100 [my proc] [x]
  8,16   0        7     0.000018000    77  C  DS 100 + 100 [65531]
  8,16   0        8     0.000019000    77  D   R 36 (12 00 00 00 24 00 ..) [my proc] [x]
  8,16   0        9     0.000020000    77  C   R (12 00 00 00 24 00 ..) [0]
  8,16   0       10     0.000021000    77  D   R 36 [my proc] [x]
  8,16   0       11     0.000022000    77  C   N [65531]
  8,16   0       13     0.000030000    77  A   R 900 + 8 <- (8,17) 850
  8,16   0       14     0.000031000    77  Q   R 900 + 8 [my proc] [x]
  8,16   0       16     0.000032000    77  X   R 900 / 904 [my proc] [x]
  8,16   0       17     0.000033000    77  P   N [my proc] [x]
  8,16   0       18     0.000034000    77  U   N [my proc] [x] 3
  8,16   0       54     0.000041000    77  D   R 900 + 8 [my proc] [x]
  8,16   1       55     0.000050000     0  C   R 900 + 8 [0]
CPU0 (q):
 Reads Queued:           0,        0KiB\t Writes Queued:           2,       50KiB
 PC Reads Compl.:        2\t\t PC Writes Compl.:        0

Throughput (R/W): 0KiB/s / 0KiB/s
Events (q): 18 entries
Skips: 0 forward (0 -   0.0%)
Input file q.blktrace.0 added
";

fn decode(text: &str) -> Result<Vec<testdrive_core::IoRecord>, TraceError> {
    decode_text("blkparse", text, &Options::default()).map(|(rows, _)| rows)
}

#[test]
fn ios_flushes_errors_and_remaps_become_rows_and_commands_are_counted() {
    let (rows, decoded) = decode_text("blkparse", PRINTED, &Options::default()).unwrap();
    let expected = [(Flush, 0, 0, 1, 2, 11, 5), (Trim, 100, 100, 15, 16, 2, 5), (Read, 900, 8, 31, 41, 9, 0)];
    assert_eq!(briefs(&rows), expected);
    assert_eq!(decoded.device, Device::parse("8:16"));
    assert_eq!(dropped(&decoded, "passed through"), 2);
    assert!(decoded.warnings.is_empty() && decoded.absent_columns.is_empty(), "{decoded:?}");
}

#[test]
fn it_is_known_by_its_lines_and_not_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("whatever.csv");
    std::fs::write(&path, PRINTED).unwrap();
    assert_eq!(detect(&[path]).unwrap().name(), "blkparse");
}

#[test]
fn a_format_of_ones_own_is_refused_with_what_to_do() {
    for text in [
        "Q R 1024 4096 0 5\nD R 1024 4096 0 6\nC R 1024 4096 0 7\n",
        "  8,16   0        1     0.000001000    77  Q   R 1024 8\n  8,16   0        2     0.000002000    77  C   R 1024 8\n",
    ] {
        let message = decode(text).err().unwrap().to_string();
        assert!(message.contains("line 1: ") && message.contains("without -f and -F"), "{message}");
    }
    // With -F, one action is printed in another way.
    let text = PRINTED.replace(" 0  C   R 900 + 8 [0]", " finished 900");
    let (_, decoded) = decode_text("blkparse", text, &Options::default()).unwrap();
    assert_eq!(dropped(&decoded, "could not be read"), 1);
    let mut text = String::new();
    for at in 0..100 {
        writeln!(text, "  8,16   0  1 0.0000{at:02}000  77  Q   R 1024 + 8 [x]").unwrap();
        writeln!(text, "C 1024 + 8").unwrap();
    }
    let message = decode(&text).err().unwrap().to_string();
    assert!(message.contains("line 2: ") && message.contains("100 of 200 lines"), "{message}");
}

#[test]
fn a_cut_last_line_is_dropped_and_said_to_be() {
    let whole = PRINTED.split("CPU0").next().unwrap();
    let (rows, decoded) = decode_text("blkparse", &whole[..whole.len() - 4], &Options::default()).unwrap();
    assert_eq!(rows.len(), 3);
    assert_eq!(dropped(&decoded, "lines cut off"), 1);
    assert!(has_warning(&decoded, "truncated") && has_warning(&decoded, "completions_missing"));
}

#[test]
fn what_blktrace_dropped_is_counted_and_warned_of() {
    let text = PRINTED.replace("Skips: 0 forward (0 -   0.0%)", "Skips: 2 forward (1,234 -  98.6%)");
    let (_, decoded) = decode_text("blkparse", text, &Options::default()).unwrap();
    assert_eq!(dropped(&decoded, "events that the tracer lost"), 1234);
    assert!(has_warning(&decoded, "events_lost"));
}

#[test]
fn lines_in_disorder_are_put_in_order_or_refused_at_their_line() {
    let (mut near, mut far) = (String::new(), String::new());
    for at in 0..5000_u64 {
        // Each pair of lines is swapped.
        let swapped = at ^ 1;
        let line =
            |at: u64| format!("  8,0 0 {at} {}.{:09}  7  D   R {} + 8 [x]\n", at / 1000, at % 1000, at * 8);
        near += &line(swapped);
        far += &line(4999 - at);
    }
    assert_eq!(decode(&near).unwrap().len(), 5000);
    let error = decode(&far).err().unwrap();
    assert!(matches!(error, TraceError::OutOfOrder { .. }), "{error}");
    assert!(error.to_string().contains("line 4098"), "{error}");
}

#[test]
fn an_empty_text_and_one_of_a_summary_alone_hold_no_io() {
    assert!(matches!(decode(""), Err(TraceError::Empty { .. })));
    let summary = &PRINTED[PRINTED.find("CPU0").unwrap()..];
    assert!(matches!(decode(summary), Err(TraceError::NoIos { .. })));
}
