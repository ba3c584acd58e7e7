//! Memory is bounded: what happens when a trace leaves more open than the limits hold.

use crate::support::{briefs, dropped, has_warning, Rows};
use std::path::Path;
use testdrive_core::{Flags, IoRecord, Opcode, Opcode::Read};
use testdrive_traces::{Assembler, AssemblerLimits, BlockEvent, Decoded, Device, EventKind, Options, Place};

fn read(time_us: i64, kind: EventKind, sector: u64) -> BlockEvent {
    BlockEvent {
        time_ns: time_us * 1000,
        device: Device { major: 8, minor: 0 },
        kind,
        opcode: Opcode::Read,
        flags: Flags::NONE,
        sector,
        sectors: 8,
        cpu: 0,
        status: 0,
    }
}

fn assemble(events: &[BlockEvent], limits: AssemblerLimits) -> (Vec<IoRecord>, Decoded) {
    let (mut sink, mut decoded) = (Rows::default(), Decoded::default());
    let mut assembler = Assembler::new(&Options::default(), limits, &mut sink);
    for (index, event) in events.iter().enumerate() {
        assembler.push(*event, Path::new("trace"), Place::Line(index as u64 + 1)).unwrap();
    }
    assembler.finish(Path::new("trace"), &mut decoded).unwrap();
    (sink.rows, decoded)
}

#[test]
fn an_io_that_stalls_past_the_window_keeps_its_times_and_comes_out_of_order() {
    let mut events = vec![read(1, EventKind::Queue, 0), read(2, EventKind::Issue, 0)];
    for index in 1..=50 {
        let (time_us, sector) = (index * 10, index as u64 * 8);
        events.push(read(time_us, EventKind::Queue, sector));
        events.push(read(time_us + 1, EventKind::Issue, sector));
        events.push(read(time_us + 2, EventKind::Complete, sector));
    }
    events.push(read(10_000, EventKind::Complete, 0));
    let limits = AssemblerLimits { row_window: 8, order_events: 1, ..AssemblerLimits::default() };
    let (rows, decoded) = assemble(&events, limits);
    assert_eq!(rows.len(), 51);
    assert_eq!(briefs(&rows)[50], (Read, 0, 8, 1, 2, 9998, 0));
    assert!(rows[..50].windows(2).all(|pair| pair[0].intended_ns < pair[1].intended_ns));
    assert!(decoded.warnings.is_empty(), "{:?}", decoded.warnings);
}

#[test]
fn a_trace_without_completions_does_not_fill_the_memory() {
    let limits =
        AssemblerLimits { pending_max: 100, row_window: 16, order_events: 1, ..AssemblerLimits::default() };
    for with_queue in [true, false] {
        let mut events = Vec::new();
        for index in 0..1000 {
            if with_queue {
                events.push(read(index * 10, EventKind::Queue, index as u64 * 8));
            }
            events.push(read(index * 10 + 1, EventKind::Issue, index as u64 * 8));
        }
        let (rows, decoded) = assemble(&events, limits);
        assert_eq!(rows.len(), 1000);
        assert!(rows.iter().all(|row| row.latency_ns == -1));
        assert!(has_warning(&decoded, "too_many_under_way"), "{:?}", decoded.warnings);
    }
}

#[test]
fn a_trace_whose_first_events_are_no_queue_events_is_decided_once_enough_were_seen() {
    let limits = AssemblerLimits { lookahead_events: 4, order_events: 1, ..AssemblerLimits::default() };
    let mut events = Vec::new();
    for index in 0..4 {
        events.push(read(index * 10, EventKind::Issue, index as u64 * 8));
        events.push(read(index * 10 + 5, EventKind::Complete, index as u64 * 8));
    }
    events.push(read(100, EventKind::Queue, 800));
    events.push(read(101, EventKind::Issue, 800));
    events.push(read(105, EventKind::Complete, 800));
    let (rows, decoded) = assemble(&events, limits);
    assert_eq!(rows.len(), 5);
    assert_eq!(decoded.events, Some(testdrive_traces::Events::Issued));
    assert_eq!(briefs(&rows)[4], (Read, 800, 8, 100, 101, 4, 0));
}

#[test]
fn issues_that_are_repeated_at_one_place_for_ever_do_not_slow_each_other_down() {
    let limits = AssemblerLimits { row_window: 16, order_events: 1, ..AssemblerLimits::default() };
    let ios = 60_000;
    let mut events = Vec::new();
    for index in 0..ios {
        events.push(read(index * 10, EventKind::Issue, 0));
        events.push(read(index * 10 + 1, EventKind::Issue, 0));
        events.push(read(index * 10 + 5, EventKind::Complete, 0));
    }
    // Looked through one by one at each of the events, those that were put aside would take minutes.
    let (rows, decoded) = assemble(&events, limits);
    assert_eq!(rows.len() as i64, ios);
    assert!(rows.iter().all(|row| row.latency_ns == 4000), "the last of two equal issues counts");
    assert_eq!(dropped(&decoded, "repeated before a completion"), ios as u64);
}
