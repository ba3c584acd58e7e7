//! What Linux 6.18 really prints, in excerpts small enough to be counted by hand.

use crate::support::{briefs, decode_text, dropped, FUA_PREFLUSH_SYNC_META};
use testdrive_core::{Flags, Opcode::*};
use testdrive_traces::{Events, Options};

const LOOP: &str = include_str!("fixtures/loop-trace.txt");
const PARTITION: &str = include_str!("fixtures/partition-perf-script.txt");

fn issued() -> Options {
    Options { events: Some(Events::Issued), ..Options::default() }
}

#[test]
fn a_loop_devices_trims_zeroes_and_flushes_are_all_there() {
    let (rows, decoded) = decode_text("trace-event", LOOP, &Options::default()).unwrap();
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
    let of = |opcode| rows.iter().filter(|row| row.opcode == opcode).count();
    assert_eq!((of(WriteZeroes), of(Trim), of(Write), of(Flush)), (1, 1, 5, 4));
    let fua: Vec<_> = rows.iter().filter(|row| row.flags.contains(Flags::FUA)).collect();
    assert_eq!(fua.len(), 3);
    // Queued at 180686, data issued at 180690, and the flush that makes it durable ended at 183069 us.
    assert_eq!(briefs(&rows)[2], (Write, 0, 8, 180_686, 180_690, 2379, 0));
    // Queued at 183077, issued at 183085, ended at 183221 us.
    assert_eq!(briefs(&rows)[3], (Flush, 0, 0, 183_077, 183_085, 136, 0));
    let (rows, _) = decode_text("trace-event", LOOP, &issued()).unwrap();
    let of = |opcode| rows.iter().filter(|row| row.opcode == opcode).count();
    assert_eq!((of(WriteZeroes), of(Trim), of(Write), of(Flush)), (1, 1, 5, 7));
}

#[test]
fn a_partitions_journal_commits_are_one_row_each() {
    let (rows, decoded) = decode_text("trace-event", PARTITION, &Options::default()).unwrap();
    let of = |opcode| rows.iter().filter(|row| row.opcode == opcode).count();
    assert_eq!((of(Read), of(Write), of(Flush)), (7, 5, 2));
    assert!(rows.iter().all(|row| row.latency_ns >= 0));
    assert_eq!(rows.iter().filter(|row| row.flags == FUA_PREFLUSH_SYNC_META).count(), 1);
    // The excerpt begins in the middle of a flush: its request and its end have no beginning.
    assert_eq!(dropped(&decoded, "completions whose I/O was not seen"), 2);
    let (rows, _) = decode_text("trace-event", PARTITION, &issued()).unwrap();
    let of = |opcode| rows.iter().filter(|row| row.opcode == opcode).count();
    assert_eq!((of(Read), of(Write), of(Flush)), (7, 5, 8));
}
