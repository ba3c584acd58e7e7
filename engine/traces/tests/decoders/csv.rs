//! CSV with a map of its columns.

use crate::support::{brief, decode_text};
use testdrive_core::{Opcode, Opcode::*};
use testdrive_traces::{Events, Options, TraceError};

fn with(columns: &str) -> Options {
    let pair = |item: &str| item.split_once('=').map(|(key, value)| (key.into(), value.into()));
    Options { columns: columns.split(',').filter_map(pair).collect(), ..Options::default() }
}

fn message(text: &str, columns: &str) -> String {
    match decode_text("csv", text, &with(columns)) {
        Ok((rows, _)) => panic!("{} rows", rows.len()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_column_is_read_by_name() {
    let text = "id,op,start,done,where,size,cpu,rc,wanted\n\
                7,read,1000.000001,1000.5,4096,8192,3,0,999.9999995\n\
                8,Discard,1001,,0,4096,1,5,1000\n";
    let map = "submit_s=start,complete_s=done,intended_s=wanted,op=op,offset_bytes=where,length_bytes=size,stream=cpu,status=rc";
    let (rows, decoded) = decode_text("csv", text, &with(map)).unwrap();
    assert_eq!(decoded.shift_ns, 999_000_000_000);
    assert_eq!(rows[0].intended_ns, 999_999_500);
    assert_eq!((rows[0].submit_ns, rows[0].latency_ns), (1_000_001_000, 499_999_000));
    assert_eq!(
        (rows[0].offset_bytes, rows[0].length_bytes, rows[0].stream, rows[0].status),
        (4096, 8192, 3, 0)
    );
    assert_eq!((rows[1].opcode, rows[1].latency_ns, rows[1].status), (Trim, -1, 5));
    assert_eq!(decoded.absent_columns, ["flags"]);
}

#[test]
fn indices_count_from_zero_and_what_is_not_there_is_absent() {
    // The order of the published Alibaba block traces: device, opcode, offset, length, timestamp in us.
    let text = "419,W,8792731648,16384,1577808000000046\n725,R,123,4096,1577808000000053\n";
    let map = "op=1,offset_bytes=2,length_bytes=3,time_us=4";
    let (rows, decoded) = decode_text("csv", text, &with(map)).unwrap();
    assert_eq!(decoded.shift_ns, 1_577_808_000_000_000_000);
    assert_eq!(brief(&rows[0]), (Write, 8_792_731_648 / 512, 32, 46, 46, -1, 0));
    assert_eq!(rows[1].intended_ns, 53_000);
    assert_eq!(decoded.absent_columns, ["submit_ns", "latency_ns", "flags", "stream", "status"]);
    assert_eq!(decoded.events, None);
}

#[test]
fn the_columns_of_a_series_of_latencies_alone_suffice() {
    let text = "submit_us,latency_us\n0,1\n2,1.5\n";
    let (rows, decoded) = decode_text("csv", text, &Options::default()).unwrap();
    assert_eq!((rows[1].submit_ns, rows[1].intended_ns, rows[1].latency_ns), (2000, 2000, 1500));
    let absent = ["intended_ns", "offset_bytes", "length_bytes", "opcode", "flags", "stream", "status"];
    assert_eq!(decoded.absent_columns, absent);
    assert_eq!((rows[0].offset_bytes, rows[0].length_bytes, rows[0].stream), (-1, 0, -1));
}

#[test]
fn opcodes_are_understood_in_any_case_and_other_words_are_not() {
    let words = [
        ("R", Read),
        ("read", Read),
        ("WRITE", Write),
        ("w", Write),
        ("Trim", Trim),
        ("T", Trim),
        ("D", Trim),
        ("discard", Trim),
        ("F", Flush),
        ("flush", Flush),
        ("write_zeroes", WriteZeroes),
        ("WZ", WriteZeroes),
    ];
    let mut text = String::from("t,op\n");
    for (word, _) in words {
        text += &format!("1,{word}\n");
    }
    let (rows, _) = decode_text("csv", &text, &with("time_ns=t,op=op")).unwrap();
    let opcodes: Vec<Opcode> = rows.iter().map(|row| row.opcode).collect();
    assert_eq!(opcodes, words.map(|(_, opcode)| opcode));
    let error = message("t,op\n1,R\n2,0\n", "time_ns=t,op=op");
    assert!(error.contains("line 3") && error.contains("op (column 'op') is '0'"), "{error}");
}

#[test]
fn sectors_response_times_and_other_delimiters_are_converted() {
    let text = "# comment\nt;sub;resp;lba;n\n1.5;2;3;10;8\n";
    let map = "intended_ms=t,submit_ms=sub,response_ms=resp,offset_sectors=lba,length_sectors=n";
    let (rows, _) = decode_text("csv", text, &with(map)).unwrap();
    assert_eq!(rows[0].latency_ns, 2_500_000, "completion at 1.5 + 3 ms, submission at 2 ms");
    assert_eq!((rows[0].offset_bytes, rows[0].length_bytes), (5120, 4096));
}

#[test]
fn rows_may_stand_in_any_order() {
    let (rows, decoded) = decode_text("csv", "9.5\n3.25\n7\n", &with("time_s=0")).unwrap();
    assert_eq!(decoded.shift_ns, 3_000_000_000);
    let times: Vec<i64> = rows.iter().map(|row| row.intended_ns).collect();
    assert_eq!(times, [6_500_000_000, 250_000_000, 4_000_000_000]);
}

#[test]
fn a_flush_needs_neither_place_nor_length() {
    let text = "t,op,o,l\n1,F,,\n2,W,0,512\n";
    let map = "time_us=t,op=op,offset_bytes=o,length_bytes=l";
    let (rows, _) = decode_text("csv", text, &with(map)).unwrap();
    assert_eq!((rows[0].offset_bytes, rows[0].length_bytes), (0, 0));
    let error = message(&text.replace('F', "R"), map);
    assert!(error.contains("line 2") && error.contains("offset_bytes (column 'o') is ''"), "{error}");
}

#[test]
fn flags_are_names_or_the_number_of_a_recording() {
    let text = "time_us,flags\n1,fua|Sync\n2,\n3,17\n4,preflush + metadata read_ahead\n";
    let (rows, decoded) = decode_text("csv", text, &Options::default()).unwrap();
    let flags: Vec<u8> = rows.iter().map(|row| row.flags.0).collect();
    assert_eq!(flags, [1 | 4, 0, 17, 2 | 8 | 16]);
    assert!(!decoded.absent_columns.contains(&"flags"));
    for cell in ["fua|atomic", "256", "1x", "fua,"] {
        let error = message(&format!("time_us,flags\n1,\"{cell}\"\n"), "");
        assert!(
            error.contains("line 2: flags (column 'flags') is '") && error.contains("read_ahead"),
            "{error}"
        );
    }
}

#[test]
fn a_place_that_is_not_known_is_minus_one_and_no_other_number_is_negative() {
    let text = "time_us,op,offset_bytes\n1,R,-1\n2,F,-1\n3,F,\n";
    let (rows, _) = decode_text("csv", text, &Options::default()).unwrap();
    assert_eq!(rows.iter().map(|row| row.offset_bytes).collect::<Vec<_>>(), [-1, -1, 0]);
    assert!(message("time_us,offset_bytes\n1,-2\n", "").contains("negative"));
    assert!(message("time_us,length_bytes\n1,-1\n", "").contains("negative"));
}

#[test]
fn damaged_cells_are_named_with_line_column_and_value() {
    for (cells, expected) in [
        ("-5,R,1", "time_us (column 't') is '-5', which is negative"),
        ("5x,R,1", "time_us (column 't') is '5x', which is no number"),
        ("5,R,1.5", "latency_ns (column 'lat') is '1.5'"),
        ("5,R,-1", "leave the cell empty"),
        ("5", "there are 1 cells, and none for op"),
        ("99999999999999999999,R,1", "is too large"),
    ] {
        let text = format!("t,op,lat\n1,R,1\n{cells}\n");
        if cells == "5,R,1.5" {
            // Finer than a nanosecond is rounded, not refused.
            assert_eq!(
                decode_text("csv", &text, &with("time_us=t,op=op,latency_ns=lat")).unwrap().0[1].latency_ns,
                2
            );
            continue;
        }
        let error = message(&text, "time_us=t,op=op,latency_ns=lat");
        assert!(error.contains("trace.csv, line 3: ") && error.contains(expected), "{cells}: {error}");
    }
    let error = message("s,c\n10,9\n", "submit_us=s,complete_us=c");
    assert!(error.contains("c') is '9', which lies before the submission"), "{error}");
}

#[test]
fn a_quotation_mark_that_is_never_closed_does_not_make_one_record_of_the_rest() {
    let mut text = String::from("time_us,op\n1,R\n2,\"R\n");
    text.push_str(&"3,R\n".repeat(1 << 19));
    let error = message(&text, "");
    assert!(
        error.contains("line 3: there is no end of the record") && error.contains("quotation"),
        "{error}"
    );
    // A long record that ends is read.
    let text = format!("time_us,op,note\n1,R,\"{}\"\n2,W,x\n", "long\n".repeat(1 << 17));
    assert_eq!(decode_text("csv", &text, &with("time_us=time_us,op=op")).unwrap().0.len(), 2);
}

#[test]
fn missing_columns_and_rows_are_errors() {
    let error = message("t,op\n1,R\n", "time_us=t,op=kind");
    assert!(error.contains("no column 'kind' for op") && error.contains("t, op"), "{error}");
    let error = message("a,b\n1,R\n", "");
    assert!(error.contains("--columns") && error.contains("a, b"), "{error}");
    assert!(message("t,op\n", "time_us=t").contains("no line after the header"));
    assert!(matches!(decode_text("csv", "", &with("time_us=0")), Err(TraceError::Empty { .. })));
    let options = Options { events: Some(Events::Queued), ..with("time_us=0") };
    assert!(decode_text("csv", "1\n", &options).err().unwrap().to_string().contains("--events"));
}
