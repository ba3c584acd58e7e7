//! How the block layer's events become I/Os.

use crate::support::{assemble, briefs, decode_text, dropped, events, has_warning, FUA_PREFLUSH_SYNC_META};
use testdrive_core::{Flags, Opcode::*};
use testdrive_traces::{Device, Events, Options, TraceError};

fn queued() -> Options {
    Options { events: Some(Events::Queued), ..Options::default() }
}

fn issued() -> Options {
    Options { events: Some(Events::Issued), ..Options::default() }
}

#[test]
fn merged_bios_are_rows_of_their_own_when_queued_and_one_when_issued() {
    let short = "
        100 Q W 8+8
        110 Q W 16+8
        115 Q W 0+8
        120 D W 0+24
        150 C W 0+24";
    let (rows, decoded) = assemble(short, &Options::default());
    let expected =
        [(Write, 8, 8, 100, 120, 30, 0), (Write, 16, 8, 110, 120, 30, 0), (Write, 0, 8, 115, 120, 30, 0)];
    assert_eq!(briefs(&rows), expected);
    assert_eq!(decoded.events, Some(Events::Queued));
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
    let (rows, _) = assemble(short, &issued());
    assert_eq!(briefs(&rows), [(Write, 0, 24, 100, 120, 30, 0)]);
}

#[test]
fn a_split_trim_completes_with_its_last_request() {
    let short = "
        100 Q DS 0+3000
        110 D DS 0+1000
        120 D DS 2000+1000
        130 D DS 1000+1000
        200 C DS 2000+1000
        300 C DS 0+1000
        400 C DS 1000+1000";
    let (rows, _) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Trim, 0, 3000, 100, 110, 290, 0)]);
    let (rows, _) = assemble(short, &issued());
    let expected = [
        (Trim, 0, 1000, 100, 110, 190, 0),
        (Trim, 2000, 1000, 100, 120, 80, 0),
        (Trim, 1000, 1000, 100, 130, 270, 0),
    ];
    assert_eq!(briefs(&rows), expected);
}

#[test]
fn a_request_may_complete_in_parts() {
    let short = "
        10 Q R 0+8
        11 Q R 8+8
        12 D R 0+16
        20 C R 0+8
        30 C R 8+8";
    let (rows, decoded) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Read, 0, 8, 10, 12, 8, 0), (Read, 8, 8, 11, 12, 18, 0)]);
    assert!(decoded.dropped.is_empty());
    let (rows, _) = assemble(short, &issued());
    assert_eq!(briefs(&rows), [(Read, 0, 16, 10, 12, 18, 0)]);
}

#[test]
fn a_requeued_request_counts_from_its_last_issue() {
    let short = "
        10 Q W 0+8
        12 D W 0+8
        14 R W 0+8
        20 D W 0+8
        30 C W 0+8";
    for options in [queued(), issued()] {
        let (rows, decoded) = assemble(short, &options);
        assert_eq!(briefs(&rows), [(Write, 0, 8, 10, 20, 10, 0)], "{options:?}");
        assert!(decoded.dropped.is_empty());
    }
}

#[test]
fn a_request_that_grew_while_it_was_requeued_is_still_one() {
    let short = "
        10 Q W 0+8
        12 D W 0+8
        14 R W 0+8
        16 Q W 8+8
        20 D W 0+16
        30 C W 0+16";
    let (rows, _) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Write, 0, 8, 10, 20, 10, 0), (Write, 8, 8, 16, 20, 10, 0)]);
    let (rows, _) = assemble(short, &issued());
    assert_eq!(briefs(&rows), [(Write, 0, 16, 10, 20, 10, 0)]);
}

#[test]
fn an_issue_repeated_without_a_requeue_event_is_one_io() {
    let short = "
        10 D DS 0+8
        20 D DS 0+8
        30 D DS 0+8
        50 C DS 0+8";
    let (rows, decoded) = assemble(short, &Options::default());
    assert_eq!(briefs(&rows), [(Trim, 0, 8, 30, 30, 20, 0)]);
    assert_eq!(dropped(&decoded, "repeated before a completion"), 2);
    assert_eq!(decoded.absent_columns, ["intended_ns"]);
    let with_queue = format!("5 Q DS 0+8\n{short}");
    let (rows, decoded) = assemble(&with_queue, &queued());
    assert_eq!(briefs(&rows), [(Trim, 0, 8, 5, 30, 20, 0)]);
    assert_eq!(dropped(&decoded, "repeated before a completion"), 2);
}

#[test]
fn two_equal_reads_under_way_are_two() {
    let without_queue = "
        10 D R 0+8
        20 D R 0+8
        50 C R 0+8
        60 C R 0+8";
    let (rows, decoded) = assemble(without_queue, &Options::default());
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row.latency_ns > 0));
    assert!(decoded.dropped.is_empty(), "{:?}", decoded.dropped);
    let with_queue = "
        8 Q R 0+8
        9 Q R 0+8
        10 D R 0+8
        20 D R 0+8
        50 C R 0+8
        60 C R 0+8";
    let (rows, _) = assemble(with_queue, &queued());
    assert_eq!(briefs(&rows), [(Read, 0, 8, 8, 10, 40, 0), (Read, 0, 8, 9, 20, 40, 0)]);
}

#[test]
fn an_empty_flush_is_one_row_though_the_kernel_issues_its_own() {
    let short = "
        100 Q FWS 0+0
        110 D FF 0+0
        150 C FF 18446744073709551615+0
        151 C WS 0+0";
    let (rows, decoded) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Flush, 0, 0, 100, 110, 41, 0)]);
    assert_eq!(rows[0].flags, Flags::SYNC);
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty());
    let (rows, decoded) = assemble(short, &issued());
    assert_eq!(briefs(&rows), [(Flush, 0, 0, 100, 110, 40, 0)]);
    assert!(decoded.dropped.is_empty());
}

#[test]
fn flushes_that_wait_share_one_request_and_a_later_one_waits_for_the_next() {
    let short = "
        100 Q FWS 0+0
        101 Q FWS 0+0
        110 D FF 0+0
        120 Q FWS 0+0
        150 C FF 0+0
        151 C WS 0+0
        152 C WS 0+0
        160 D FF 0+0
        190 C FF 0+0 err=-5
        191 C WS 0+0 err=-5";
    let (rows, _) = assemble(short, &queued());
    let expected =
        [(Flush, 0, 0, 100, 110, 41, 0), (Flush, 0, 0, 101, 110, 42, 0), (Flush, 0, 0, 120, 160, 31, 5)];
    assert_eq!(briefs(&rows), expected);
}

#[test]
fn a_write_with_preflush_and_fua_spans_its_whole_flush_sequence() {
    let short = "
        100 Q FWFSM 800+8
        110 D FF 0+0
        150 C FF 0+0
        160 D WSM 800+8
        180 C WSM 800+8
        185 D FF 0+0
        200 C FF 0+0
        201 C WSM 800+0";
    let (rows, decoded) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Write, 800, 8, 100, 110, 91, 0)]);
    assert_eq!(rows[0].flags, FUA_PREFLUSH_SYNC_META);
    assert!(decoded.dropped.is_empty());
    let (rows, _) = assemble(short, &issued());
    let expected =
        [(Flush, 0, 0, 110, 110, 40, 0), (Write, 800, 8, 100, 160, 20, 0), (Flush, 0, 0, 185, 185, 15, 0)];
    assert_eq!(briefs(&rows), expected);
}

#[test]
fn fua_ends_with_its_data_where_the_drive_can_do_it_and_with_a_flush_where_not() {
    let by_drive = "
        100 Q WFS 0+8
        110 D WFS 0+8
        150 C WFS 0+8";
    let (rows, _) = assemble(by_drive, &queued());
    assert_eq!(briefs(&rows), [(Write, 0, 8, 100, 110, 40, 0)]);
    assert_eq!(rows[0].flags, Flags::FUA | Flags::SYNC);
    let by_flush = "
        100 Q WFS 0+8
        110 D WS 0+8
        150 C WS 0+8
        152 D FF 0+0
        155 Q FWS 0+0
        190 C FF 0+0
        191 C WS 0+0
        195 D FF 0+0
        210 C FF 0+0
        211 C WS 0+0";
    let (rows, _) = assemble(by_flush, &queued());
    assert_eq!(briefs(&rows), [(Write, 0, 8, 100, 110, 81, 0), (Flush, 0, 0, 155, 195, 16, 0)]);
}

#[test]
fn write_zeroes_trims_and_writes_to_one_place_are_not_confused() {
    let short = "
        10 Q NS 0+8
        11 Q DS 0+8
        12 Q WS 0+8
        20 D DS 0+8
        21 D WS 0+8
        22 D NS 0+8
        30 C WS 0+8
        31 C NS 0+8
        32 C DS 0+8";
    let (rows, _) = assemble(short, &queued());
    let expected =
        [(WriteZeroes, 0, 8, 10, 22, 9, 0), (Trim, 0, 8, 11, 20, 12, 0), (Write, 0, 8, 12, 21, 9, 0)];
    assert_eq!(briefs(&rows), expected);
}

#[test]
fn rows_stand_in_the_order_in_which_they_were_queued() {
    let short = "
        10 Q R 0+8
        11 Q R 100+8
        12 Q R 200+8
        20 D R 200+8
        21 D R 100+8
        22 D R 0+8
        30 C R 200+8
        31 C R 0+8";
    let (rows, decoded) = assemble(short, &queued());
    let expected = [(Read, 0, 8, 10, 22, 9, 0), (Read, 100, 8, 11, 21, -1, 0), (Read, 200, 8, 12, 20, 10, 0)];
    assert_eq!(briefs(&rows), expected);
    assert!(has_warning(&decoded, "completions_missing"));
}

#[test]
fn errors_of_the_drive_are_recorded() {
    let (rows, _) = assemble("10 Q R 0+8\n11 D R 0+8\n12 C R 0+8 err=-5", &queued());
    assert_eq!(briefs(&rows), [(Read, 0, 8, 10, 11, 1, 5)]);
}

#[test]
fn a_device_without_requests_is_timed_from_the_queue_event() {
    let (rows, decoded) = assemble("10 Q W 0+8\n11 Q FWS 0+0\n25 B W 0+8\n40 B FWS 0+0", &Options::default());
    assert_eq!(briefs(&rows), [(Write, 0, 8, 10, 10, 15, 0), (Flush, 0, 0, 11, 11, 29, 0)]);
    assert_eq!(decoded.absent_columns, ["submit_ns"]);
    assert!(has_warning(&decoded, "no_issue_events"));
}

#[test]
fn a_trace_without_completions_says_that_latencies_are_absent() {
    let (rows, decoded) = assemble("10 Q W 0+8\n12 D W 0+8", &Options::default());
    assert_eq!(briefs(&rows), [(Write, 0, 8, 10, 12, -1, 0)]);
    assert_eq!(decoded.absent_columns, ["latency_ns", "status"]);
    assert!(has_warning(&decoded, "no_completions"));
}

#[test]
fn what_began_before_the_trace_is_counted_and_not_invented() {
    let short = "
        10 C R 0+8
        11 D W 800+8
        12 Q R 100+8
        13 D R 100+8
        14 C W 800+8
        15 C R 100+8";
    let (rows, decoded) = assemble(short, &queued());
    assert_eq!(briefs(&rows), [(Read, 100, 8, 12, 13, 2, 0)]);
    assert_eq!(dropped(&decoded, "completions whose I/O was not seen"), 1);
    assert_eq!(dropped(&decoded, "requests of which no queued I/O"), 1);
}

#[test]
fn a_remap_says_when_a_request_was_wanted_where_there_are_no_queue_events() {
    let trace = "
        11 A R 5000+8 from=(9,0)0
        12 D R 5000+8
        20 C R 5000+8
        30 D R 900+8
        40 C R 900+8";
    let on_disk = Options { device: Device::parse("7:0"), ..Options::default() };
    let issued = Options { events: Some(Events::Issued), ..on_disk.clone() };
    let (rows, decoded) = assemble(trace, &issued);
    assert_eq!(briefs(&rows), [(Read, 5000, 8, 11, 12, 8, 0), (Read, 900, 8, 30, 30, 10, 0)]);
    assert!(!decoded.absent_columns.contains(&"intended_ns") && !has_warning(&decoded, "no_queue_events"));
    let queued = Options { events: Some(Events::Queued), ..on_disk };
    assert_eq!(briefs(&assemble(trace, &queued).0), [(Read, 5000, 8, 11, 12, 8, 0)]);
}

#[test]
fn a_bio_remapped_onto_the_device_without_a_queue_event_is_followed() {
    let short = "
        10 Q R 0+8 dev=9,0
        11 A R 5000+8 from=(9,0)0
        12 D R 5000+8
        20 C R 5000+8";
    let on_disk = Options { device: Device::parse("7:0"), ..queued() };
    let (rows, _) = assemble(&format!("1 Q R 64+8\n2 D R 64+8\n3 C R 64+8\n{short}"), &on_disk);
    assert_eq!(briefs(&rows), [(Read, 64, 8, 1, 2, 1, 0), (Read, 5000, 8, 11, 12, 8, 0)]);
}

#[test]
fn a_partitions_bio_is_one_row_on_its_disk() {
    let short = "
        10 A R 2048+8 from=(7,1)0
        11 Q R 2048+8
        12 D R 2048+8
        20 C R 2048+8
        30 A R 2056+8 from=(7,1)8
        31 Q R 2056+8
        32 D R 2056+8
        40 C R 2056+8";
    let (rows, decoded) = assemble(short, &Options::default());
    assert_eq!(briefs(&rows), [(Read, 2048, 8, 11, 12, 8, 0), (Read, 2056, 8, 31, 32, 8, 0)]);
    assert_eq!(decoded.device, Device::parse("7:0"));
}

#[test]
fn a_request_that_comes_back_has_no_intended_time_where_there_are_no_queue_events() {
    let trace = "10 D R 0+8\n12 R R 0+8\n20 D R 0+8\n30 C R 0+8\n";
    let (rows, decoded) = assemble(trace, &Options::default());
    assert_eq!(briefs(&rows), [(Read, 0, 8, 20, 20, 10, 0)]);
    assert!(decoded.absent_columns.contains(&"intended_ns"));
    let issued = Options { events: Some(Events::Issued), ..Options::default() };
    let (rows, _) = assemble(&format!("5 Q R 0+8\n{trace}"), &issued);
    assert_eq!(briefs(&rows), [(Read, 0, 8, 5, 20, 10, 0)]);
}

#[test]
fn places_beyond_any_drive_are_counted_and_a_flush_has_none() {
    let last = u64::MAX;
    let trace = format!(
        "1 Q R 36028797018963968+8\n2 D R 36028797018963960+16\n3 C R {last}+8\n
         10 Q FWS {last}+0\n11 D FF {last}+0\n20 C FF {last}+0\n21 C WS {last}+0\n
         30 Q R 18014398509481976+7\n31 D R 18014398509481976+7\n40 C R 18014398509481976+7\n"
    );
    let (rows, decoded) = assemble(&trace, &Options::default());
    assert_eq!(
        briefs(&rows),
        [(Flush, 0, 0, 10, 11, 10, 0), (Read, 18_014_398_509_481_976, 7, 30, 31, 9, 0)]
    );
    assert_eq!(dropped(&decoded, "beyond the end of any drive"), 3);
}

#[test]
fn several_devices_need_a_choice_and_a_wrong_choice_names_them() {
    let short = "
        10 Q R 0+8
        11 Q W 0+8 dev=8,16
        12 Q W 8+8 dev=8,16
        13 D R 0+8
        14 C R 0+8";
    let decode = |options: &Options| decode_text("trace-event", events(short), options);
    let message = decode(&Options::default()).err().unwrap().to_string();
    assert!(
        message.contains("8:16 with 2 I/Os, 7:0 with 1 I/Os") && message.contains("--device"),
        "{message}"
    );
    let choice = Options { device: Device::parse("8:16"), ..Options::default() };
    assert_eq!(decode(&choice).unwrap().0.len(), 2);
    let wrong = Options { device: Device::parse("8:17"), ..Options::default() };
    let message = decode(&wrong).err().unwrap().to_string();
    assert!(message.contains("no I/O of device 8:17") && message.contains("8:16 with 2"), "{message}");
}

#[test]
fn queued_rows_cannot_be_had_without_queue_events() {
    let result = decode_text("trace-event", events("13 D R 0+8\n14 C R 0+8"), &queued());
    let message = result.err().unwrap().to_string();
    assert!(message.contains("no queue events") && message.contains("--events issued"), "{message}");
}

#[test]
fn times_are_shifted_by_whole_seconds_so_that_fractions_stay() {
    let short = "5999998 Q R 0+8\n6000002 D R 0+8\n7000005 C R 0+8";
    let (rows, decoded) = assemble(short, &Options::default());
    assert_eq!(decoded.shift_ns, 5_000_000_000);
    assert_eq!(briefs(&rows), [(Read, 0, 8, 999_998, 1_000_002, 1_000_003, 0)]);
    let (rows, decoded) = assemble(short, &issued());
    assert_eq!((decoded.shift_ns, rows[0].intended_ns), (5_000_000_000, 999_998_000));
}

#[test]
fn small_disorder_is_mended_and_large_disorder_is_an_error() {
    let (rows, _) = assemble("10 Q R 0+8\n12 C R 0+8\n11 D R 0+8", &Options::default());
    assert_eq!(briefs(&rows), [(Read, 0, 8, 10, 11, 1, 0)]);
    let mut short = String::new();
    for index in 0..3000 {
        short += &format!("{} Q R {}+8\n{0} C R {1}+8\n", 1000 + index, index * 8);
    }
    short += "5 Q R 0+8\n";
    let result = decode_text("trace-event", events(&short), &Options::default());
    let Err(error @ TraceError::OutOfOrder { .. }) = result else { panic!("{:?}", result.err()) };
    let message = error.to_string();
    assert!(message.contains("line 6003") && message.contains("sort the trace by time"), "{message}");
}
