//! The text of biosnoop: its kinds, lines that come when I/Os end, and what it is not.

use crate::support::{briefs, decode_text, dropped, has_warning};
use std::fmt::Write as _;
use testdrive_core::Opcode::{Flush, Read, Trim, Write};
use testdrive_core::{Flags, IoRecord};
use testdrive_traces::{detect, Decoded, Events, Options, TraceError};

const PYTHON: &str = "\
TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  LAT(ms)
0.000000    supervise      1950    xvda1     W 13092560   4096      0.74
0.000030    my prog        1950    xvda1     R 13092432   8192      0.61
0.013054    ?              0                 W 0          8192      0.77
";

const LIBBPF: &str = "\
TIME(s)     COMM           PID     DISK    T    SECTOR     BYTES   QUE(ms) LAT(ms)
0.000000    fio            4021    nvme0n1 WS   128        4096      0.250   0.750
0.000100    fio            4021    nvme0n1 RA   64         8192     -1.000   0.800
0.000200    kworker/0:1H   112     nvme0n1 DS   4096       1048576   0.100   0.500
0.000300    jbd2/nvme0n1   330     nvme0n1 FF   -1         0         0.000   0.200
";

fn decode(text: &str) -> Result<(Vec<IoRecord>, Decoded), TraceError> {
    decode_text("biosnoop", text, &Options::default())
}

#[test]
fn an_io_began_when_it_ended_less_its_latency() {
    let (rows, decoded) = decode(PYTHON).unwrap();
    // The first line ends at 0, so that it began before; times are shifted by a whole second.
    assert_eq!(decoded.shift_ns, -1_000_000_000);
    let expected =
        [(Write, 13_092_560, 8, 999_260, 999_260, 740, 0), (Read, 13_092_432, 16, 999_420, 999_420, 610, 0)];
    assert_eq!(briefs(&rows), expected);
    assert_eq!(decoded.events, Some(Events::Issued));
    assert_eq!(decoded.absent_columns, ["intended_ns", "flags", "stream", "status"]);
    assert_eq!(dropped(&decoded, "did not know"), 1);
    assert!(has_warning(&decoded, "trims_unknown"), "{:?}", decoded.warnings);
}

#[test]
fn queue_times_trims_flushes_and_flags_are_there_where_they_are_printed() {
    let (rows, decoded) = decode(LIBBPF).unwrap();
    let expected = [
        (Write, 128, 8, 999_000, 999_250, 750, 0),
        (Read, 64, 16, 999_300, 999_300, 800, 0),
        (Trim, 4096, 2048, 999_600, 999_700, 500, 0),
        (Flush, 0, 0, 1_000_100, 1_000_100, 200, 0),
    ];
    assert_eq!(briefs(&rows), expected);
    assert_eq!(rows[0].flags, Flags::SYNC);
    assert_eq!(decoded.absent_columns, ["stream", "status"]);
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
}

#[test]
fn it_is_known_by_its_lines_with_a_header_or_without() {
    let folder = tempfile::tempdir().unwrap();
    let path = [folder.path().join("x.csv")];
    for text in [PYTHON, LIBBPF, PYTHON.split_once('\n').unwrap().1] {
        std::fs::write(&path[0], text).unwrap();
        assert_eq!(detect(&path).unwrap().name(), "biosnoop");
    }
}

#[test]
fn what_is_said_between_the_lines_is_no_io_and_losses_are_counted() {
    let text = format!("Tracing block device I/O... Hit Ctrl-C to end.\n{LIBBPF}Possibly lost 12 samples\nlost 3 events on CPU #1\n^C\n");
    let (rows, decoded) = decode(&text).unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(dropped(&decoded, "events that biosnoop lost"), 15);
    assert!(has_warning(&decoded, "events_lost"));
}

/// `ios` reads of a disk that takes `latency_us` for each, a line when each ends.
fn lines(from_us: u64, ios: u64, latency_us: u64) -> String {
    let mut text = String::new();
    for at in 0..ios {
        let end_us = from_us + at * 10;
        let (seconds, fraction) = (end_us / 1_000_000, end_us % 1_000_000);
        let (ms, us) = (latency_us / 1000, latency_us % 1000);
        writeln!(text, "{seconds}.{fraction:06} fio 7 sda R {} 4096 {ms}.{us:03}", at * 8).unwrap();
    }
    text
}

#[test]
fn an_io_that_stalled_while_more_than_a_million_others_ended_is_taken_and_a_line_of_long_ago_is_not() {
    let ios = 1_200_000;
    let mut text = lines(1_000_000, ios, 90);
    // It began with the first, and ended after the last.
    text += "13.100000 fio 7 sda W 8 4096 12050.000\n";
    text += "1.000000 fio 7 sda W 8 4096 0.001\n";
    let error = decode(&text).err().unwrap();
    assert!(matches!(error, TraceError::OutOfOrder { .. }), "{error}");
    assert!(error.to_string().contains(&format!("line {}", ios + 2)), "{error}");
}

#[test]
fn outputs_that_were_joined_and_times_of_day_are_refused_at_their_line() {
    let message = decode(&format!("{LIBBPF}{LIBBPF}")).err().unwrap().to_string();
    assert!(message.contains("line 6: ") && message.contains("one at a time"), "{message}");
    let with_t = "TIMESTAMP    COMM           PID     DISK    T    SECTOR     BYTES   LAT(ms)\n\
                  14:23:45.123 mysqld         8912    sdb     W    12345678   4096      7.890\n";
    for text in [with_t, with_t.split_once('\n').unwrap().1] {
        let message = decode(text).err().unwrap().to_string();
        assert!(message.contains("line 1: ") && message.contains("without -t"), "{message}");
    }
}

#[test]
fn a_cut_line_is_counted_and_damage_is_an_error_at_its_line() {
    let (rows, decoded) = decode(&LIBBPF[..LIBBPF.len() - 20]).unwrap();
    assert_eq!((rows.len(), dropped(&decoded, "cut off")), (3, 1));
    assert!(has_warning(&decoded, "truncated"));
    let message = decode(&PYTHON.replace("13092432   8192", "13092432   xx")).err().unwrap().to_string();
    assert!(message.contains("line 3: BYTES is 'xx'"), "{message}");
    let message =
        decode(&PYTHON.replace("8192      0.61", "9223372036854775807 0.61")).err().unwrap().to_string();
    assert!(message.contains("line 3: the I/O would end 9223372036854775807 bytes after"), "{message}");
    let message = decode("time,op\n1,R\n").err().unwrap().to_string();
    assert!(message.contains("line 1: "), "{message}");
    assert!(matches!(decode(""), Err(TraceError::Empty { .. })));
    assert!(matches!(decode(LIBBPF.lines().next().unwrap()), Err(TraceError::NoIos { .. })));
}
