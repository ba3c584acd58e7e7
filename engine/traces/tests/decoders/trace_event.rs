//! Trace-event text: the tools' headings, what they lose, and what cannot be read.

use crate::support::{briefs, decode, decode_text, dropped, events, has_warning};
use testdrive_core::Opcode::Read;
use testdrive_traces::{detect, Options, TraceError};

const PERF: &str = "\
fio 4021 [002] 12.000010: block:block_bio_queue: 259,0 R 64 + 8 [fio]
fio 4021 [002] 12.000012:  block:block_rq_issue: 259,0 R 4096 () 64 + 8 none,0,0 [fio]
swapper     0 [003] 12.000090: block:block_rq_complete: 259,0 R () 64 + 8 none,0,0 [0]
";

const TRACE_CMD: &str = "\
cpus=4
             fio-4021  [002]    12.000010000: block_bio_queue:      259,0 R 64 + 8 [fio]
             fio-4021  [002]    12.000012000: block_rq_issue:       259,0 R 4096 () 64 + 8 0x0,0,0 [fio]
          <idle>-0     [003]    12.000090000: block_rq_complete:    259,0 R () 64 + 8 0x0,0,0 [0]
";

#[test]
fn perf_script_and_trace_cmd_give_the_same_rows() {
    let expected = [(Read, 64, 8, 10, 12, 78, 0)];
    for text in [PERF, TRACE_CMD] {
        let (rows, decoded) = decode_text("trace-event", text, &Options::default()).unwrap();
        assert_eq!(briefs(&rows), expected);
        assert_eq!(rows[0].stream, 2, "the CPU that submitted");
        assert_eq!(decoded.shift_ns, 12_000_000_000);
    }
}

#[test]
fn lost_events_are_counted_and_warned_of() {
    let text = format!("{TRACE_CMD}CPU:1 [LOST 40 EVENTS]\nCPU:2 [LOST 2 EVENTS]\nCPU:3 [EVENTS DROPPED]\n");
    let (_, decoded) = decode_text("trace-event", text, &Options::default()).unwrap();
    assert_eq!(dropped(&decoded, "events that the tracer lost"), 42);
    assert_eq!(dropped(&decoded, "without saying how many"), 1);
    assert!(has_warning(&decoded, "events_lost"));
}

#[test]
fn a_cut_last_line_is_dropped_and_said_to_be() {
    let whole = events("10 Q R 0+8\n11 D R 0+8\n12 C R 0+8\n13 Q R 8+8000");
    let cut = &whole[..whole.len() - 10];
    let (rows, decoded) = decode_text("trace-event", cut, &Options::default()).unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(dropped(&decoded, "lines cut off"), 1);
    assert!(has_warning(&decoded, "truncated"));
}

#[test]
fn a_line_that_cannot_be_read_is_counted_with_the_first_one_shown() {
    let text = format!("{TRACE_CMD}  fio-1 [000] 12.1: block_rq_issue: 259,0 R garbage [fio]\n{TRACE_CMD}")
        .replacen("cpus=4\n", "", 1);
    let (_, decoded) = decode_text("trace-event", text, &Options::default()).unwrap();
    assert_eq!(dropped(&decoded, "could not be read"), 1);
    let warning = decoded.warnings.iter().find(|warning| warning.code == "unreadable_lines").unwrap();
    assert!(warning.message.contains("line 4") && warning.message.contains("garbage"), "{}", warning.message);
}

#[test]
fn a_trace_of_lines_that_cannot_be_read_is_an_error_at_the_first() {
    let text = "# tracer: nop\n x-1 [000] 12: block_rq_issue: 259,0 R 4096 () 64 + 8 [x]\n";
    let message = decode_text("trace-event", text, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("line 2") && message.contains("perf script"), "{message}");
}

#[test]
fn text_without_times_is_known_and_refused_with_what_to_print() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.txt");
    std::fs::write(&path, "   block:block_rq_issue: 254,0 RA 4096 () 12579312 + 8 0x2,0,4 [sh]\n").unwrap();
    assert_eq!(detect(std::slice::from_ref(&path)).unwrap().name(), "trace-event");
    let message = decode("trace-event", &[path], &Options::default()).err().unwrap().to_string();
    assert!(message.contains("line 1") && message.contains("perf script"), "{message}");
    // As `trace-cmd report -R` prints it.
    let raw = "cpus=2\n  sh-3585  [001] 12189.713895: block_bio_queue:   dev=266338304 sector=12579288 nr_sector=8 rwbs=RA\n";
    let message = decode_text("trace-event", raw, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("line 2") && message.contains("trace-cmd report"), "{message}");
}

#[test]
fn events_that_others_need_are_passed_over() {
    // What Linux 6.18 printed of one read with all block events on.
    let text = "\
              dd-2666    [001] ..... 12125.676192: block_bio_queue: 254,0 RA 12580536 + 144 [dd]
              dd-2666    [001] ..... 12125.676194: block_getrq: 254,0 RA 12580536 + 144 [dd]
              dd-2666    [001] ..... 12125.676194: block_io_start: 254,0 RA 73728 () 12580536 + 144 be,0,4 [dd]
              dd-2666    [001] ..... 12125.676194: block_plug: [dd]
              dd-2666    [001] ..... 12125.676194: block_unplug: [dd] 1
              dd-2666    [001] ...1. 12125.676195: block_rq_insert: 254,0 RA 73728 () 12580536 + 144 be,0,4 [dd]
              dd-2666    [001] ..... 12125.676196: block_rq_issue: 254,0 RA 73728 () 12580536 + 144 be,0,4 [dd]
          <idle>-0       [001] ..s1. 12125.676371: block_rq_complete: 254,0 RA () 12580536 + 144 be,0,4 [0]
          <idle>-0       [001] .Ns1. 12125.676373: block_io_done: 254,0 RA 0 () 12580536 + 0 none,0,0 [swapper/1]
";
    let (rows, decoded) = decode_text("trace-event", text, &Options::default()).unwrap();
    assert_eq!(briefs(&rows), [(Read, 12_580_536, 144, 676_192, 676_196, 175, 0)]);
    assert!(decoded.dropped.is_empty() && decoded.warnings.is_empty(), "{decoded:?}");
    let only: String = text
        .lines()
        .filter(|line| line.contains("block_io_"))
        .fold(String::new(), |all, line| all + line + "\n");
    let message = decode_text("trace-event", only, &Options::default()).err().unwrap().to_string();
    assert!(message.contains("only block_io_start and block_io_done"), "{message}");
}

#[test]
fn a_trace_of_other_events_holds_no_io() {
    let text = "# tracer: nop\n  sh-1 [000] ..... 1.000000: sched_switch: prev_comm=sh\n";
    let error = decode_text("trace-event", text, &Options::default()).err().unwrap();
    assert!(matches!(error, TraceError::NoIos { .. }), "{error}");
    assert!(matches!(decode_text("trace-event", "", &Options::default()), Err(TraceError::Empty { .. })));
}
