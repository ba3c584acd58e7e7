//! What each format's lines and records become, value by value, with numbers worked out by hand.

use crate::samples::{self, samples, vscsi_record_v1};
use crate::support::{decode_text, dropped, has_warning};
use testdrive_core::{Flags, IoRecord, Opcode, Opcode::*};
use testdrive_traces::{Decoded, Events, Options, TimeUnit};

fn read(format: &str) -> (Vec<IoRecord>, Decoded) {
    let sample = samples().into_iter().find(|sample| sample.format == format).unwrap();
    decode(format, &sample.content)
}

fn decode(format: &str, content: &[u8]) -> (Vec<IoRecord>, Decoded) {
    decode_text(format, content, &Options::default()).unwrap_or_else(|error| panic!("{format}: {error}"))
}

fn message(format: &str, content: &str) -> String {
    match decode_text(format, content, &Options::default()) {
        Ok((rows, _)) => panic!("{format}: {} rows", rows.len()),
        Err(error) => error.to_string(),
    }
}

/// Opcode, offset and length in bytes, and times in ns: intended, submitted, latency.
fn brief(row: &IoRecord) -> (Opcode, i64, i64, i64, i64, i64) {
    (row.opcode, row.offset_bytes, row.length_bytes, row.intended_ns, row.submit_ns, row.latency_ns)
}

const PLAIN: [&str; 5] = ["submit_ns", "latency_ns", "flags", "stream", "status"];

#[test]
fn msr_ticks_are_100_ns_since_1601_and_times_are_of_submission() {
    let (mut rows, decoded) = read("msr");
    rows.sort_by_key(|row| row.submit_ns);
    // 128166372003061629 ticks are 1172163600.3061629 s since 1970.
    assert_eq!(decoded.shift_ns, 1_172_163_600_000_000_000);
    assert_eq!(brief(&rows[0]), (Read, 7_014_609_920, 24_576, 306_162_900, 306_162_900, 4_128_600));
    assert_eq!(brief(&rows[1]), (Write, 2_517_696_512, 4096, 1_638_215_400, 1_638_215_400, 700));
    assert_eq!(brief(&rows[3]), (Read, 0, 1024, 2_638_224_500, 2_638_224_500, 0));
    assert_eq!(decoded.absent_columns, ["intended_ns", "flags", "stream", "status"]);
    assert_eq!(decoded.events, None);
}

#[test]
fn msr_traces_that_were_shifted_to_their_start_count_from_there() {
    let (rows, decoded) = decode("msr", b"30000000,hm,0,READ,0,512,10\n30000005,hm,0,w,512,512,10\n");
    assert_eq!((decoded.shift_ns, rows[1].submit_ns, rows[1].opcode), (3_000_000_000, 500, Write));
    let both = "128166372003061629,hm,0,Read,0,512,10\n5,hm,0,Read,0,512,10\n";
    assert!(message("msr", both).contains("line 2: Timestamp is '5', which is before 1970"));
}

#[test]
fn spc_blocks_are_of_512_bytes_and_further_fields_are_passed_over() {
    let (rows, decoded) = read("spc");
    let mut briefs: Vec<_> = rows.iter().map(brief).collect();
    briefs.sort_by_key(|brief| brief.3);
    assert_eq!(briefs[0], (Write, 303_567 * 512, 3584, 0, 0, -1));
    assert_eq!(briefs[1], (Read, 55_590 * 512, 3072, 26_214_000, 26_214_000, -1));
    assert_eq!(briefs[2].3, 1_500_000_000);
    assert_eq!(decoded.absent_columns, PLAIN);
    assert!(message("spc", "0,1,512,x,0.5\n").contains("the opcode is 'x'"));
}

#[test]
fn alibaba_times_are_us_and_places_are_bytes() {
    let (rows, decoded) = read("alibaba");
    assert_eq!(decoded.shift_ns, 1_577_808_000_000_000_000);
    let first = rows.iter().find(|row| row.length_bytes == 16_384).unwrap();
    assert_eq!(brief(first), (Write, 8_792_731_648, 16_384, 46_000, 46_000, -1));
    assert_eq!(decoded.absent_columns, PLAIN);
}

#[test]
fn tencent_places_are_sectors_and_whole_seconds_are_warned_of() {
    let (rows, decoded) = read("tencent");
    assert_eq!(decoded.shift_ns, 1_538_323_200_000_000_000);
    let first = rows.iter().find(|row| row.offset_bytes == 12_910_952 * 512).unwrap();
    assert_eq!(brief(first), (Read, 12_910_952 * 512, 65_536, 0, 0, -1));
    assert_eq!(rows.iter().filter(|row| row.opcode == Write).count(), 1);
    assert!(has_warning(&decoded, "whole_seconds"));
}

#[test]
fn systor_responses_may_be_missing_and_rows_without_a_type_are_counted() {
    let (rows, decoded) = read("systor17");
    assert_eq!(decoded.shift_ns, 1_456_135_200_000_000_000);
    let briefs: Vec<_> = rows.iter().map(brief).collect();
    assert!(briefs.contains(&(Write, 4096, 8192, 13_118_000, 13_118_000, 1_500_000)));
    assert!(briefs.contains(&(Read, 8192, 4096, 113_118_000, 113_118_000, -1)));
    assert!(briefs.contains(&(Read, 899_056_122_368, 131_072, 3_013_118_000, 3_013_118_000, 806_000)));
    assert_eq!(dropped(&decoded, "not known whether they read or write"), 1);
    let (rows, decoded) = decode("systor17", b"1456135200.5,-0.25,R,0,0,512\n");
    assert_eq!((rows[0].latency_ns, dropped(&decoded, "below zero")), (-1, 1));
}

#[test]
fn blkreplay_loads_have_no_delays_and_its_results_do() {
    let (rows, decoded) = read("blkreplay");
    assert_eq!(brief(&rows[0]), (Write, 37_766_853 * 512, 64 * 512, 0, 0, -1));
    assert_eq!(brief(&rows[1]), (Read, 0, 512, 449_518_165, 449_518_165, -1));
    assert_eq!((rows[2].opcode, rows[2].flags), (Read, Flags::READ_AHEAD));
    assert_eq!(decoded.absent_columns, ["submit_ns", "latency_ns", "stream", "status"]);
    let result =
        "start ; sector; length ; op ;  replay_delay ; replay_duration\n 1.5 ; 8 ; 8 ; R ; 0.25 ; 0.001\n";
    let (rows, decoded) = decode("blkreplay", result.as_bytes());
    assert_eq!(brief(&rows[0]), (Read, 4096, 4096, 500_000_000, 750_000_000, 1_000_000));
    assert_eq!(decoded.absent_columns, ["stream", "status"]);
    assert!(message("blkreplay", "Some text.\n\nAnd more of it.\n").contains("no I/O"));
}

#[test]
fn rows_of_blkreplay_that_repeat_are_kept_and_warned_of() {
    let mut load = String::from("start ; sector; length ; op ;  replay_delay=0 ; replay_duration=0\n");
    for index in 0..20 {
        load += &format!("{index}.000000 ; {index} ; 8 ; R ; 0.0 ; 0.0\n");
    }
    assert!(!has_warning(&decode("blkreplay", load.as_bytes()).1, "repeated_ios"));
    load += "19.000400 ; 19 ; 8 ; R ; 0.0 ; 0.0\n19.000500 ; 19 ; 8 ; R ; 0.0 ; 0.0\n";
    let (rows, decoded) = decode("blkreplay", load.as_bytes());
    assert_eq!(rows.len(), 22);
    assert!(decoded.warnings[0].message.starts_with("2 of 22 I/Os repeat"), "{:?}", decoded.warnings);
}

#[test]
fn fio_logs_of_version_3_have_times_in_us_and_syncs_are_flushes() {
    let (rows, decoded) = read("fio-iolog");
    assert_eq!(brief(&rows[0]), (Write, 0, 4096, 40_000, 40_000, -1));
    assert_eq!(brief(&rows[1]), (Trim, 4096, 2_147_483_648, 1_000_043_000, 1_000_043_000, -1));
    assert_eq!(brief(&rows[2]), (Flush, 0, 0, 1_000_043_000, 1_000_043_000, -1));
    assert_eq!(decoded.absent_columns, PLAIN);
    assert!(message("fio-iolog", "fio version 3 iolog\n5 /a wait 100 0\n").contains("the action is 'wait'"));
    assert!(message("fio-iolog", "fio version 1 iolog\n0, 1, 2\n").contains("line 1"));
    let twice = "fio version 3 iolog\n5 /a read 0 512\nfio version 3 iolog\n";
    assert!(message("fio-iolog", twice).contains("line 3: another log begins here"));
}

#[test]
fn fio_logs_of_version_2_have_the_times_of_their_waits_or_none() {
    let (rows, decoded) = decode("fio-iolog", samples::FIO_V2.as_bytes());
    let times: Vec<_> = rows.iter().map(|row| (row.opcode, row.intended_ns)).collect();
    // Each wait is relative to the one before.
    assert_eq!(times, [(Write, 0), (Read, 1_500_000), (Flush, 2_500_000)]);
    assert_eq!(decoded.absent_columns, PLAIN);
    let (rows, decoded) =
        decode("fio-iolog", b"fio version 2 iolog\n/a open\n/a read 0 512\n/a write 0 512\n");
    assert_eq!(rows.iter().map(|row| row.opcode).collect::<Vec<_>>(), [Read, Write]);
    assert!(decoded.absent_columns.contains(&"intended_ns") && decoded.absent_columns.contains(&"submit_ns"));
    assert!(has_warning(&decoded, "no_times"));
}

#[test]
fn hfplayer_pairs_what_came_in_with_what_went_out() {
    let (rows, decoded) = read("hfplayer");
    let mut briefs: Vec<_> = rows.iter().map(brief).collect();
    briefs.sort_by_key(|brief| brief.3);
    // The first line's time stands as 0; its ticks say 999.5 us, at 2 ticks a ns.
    assert_eq!(briefs[0], (Read, 64 * 512, 4096, 999_500, 999_500, 3500));
    assert_eq!(briefs[1], (Write, 72 * 512, 8192, 1_000_500, 1_000_500, 500));
    assert_eq!(briefs[2], (Write, 128 * 512, 4096, 1_002_250, 1_002_250, -1));
    assert_eq!(decoded.absent_columns, ["intended_ns", "flags", "stream", "status"]);
    assert_eq!(decoded.events, Some(Events::Issued));
    let paired = "ELAPSED_USECS.D,CMD.S,SEQID.I,LUN_SSID.I,LBA.I,NBLKS.I,LATENCY_USECS.D,CORENUM.I\n\
                  50,RD,1,6,0,2,200,3\n100.5,WR_IN,2,6,2,2,56.91,1\n";
    let (rows, decoded) = decode("hfplayer", paired.as_bytes());
    assert_eq!(
        rows.iter().map(|row| (row.latency_ns, row.stream)).collect::<Vec<_>>(),
        [(200_000, 3), (56_910, 1)]
    );
    assert_eq!(decoded.absent_columns, ["intended_ns", "flags", "status"]);
    let late = samples::HFPLAYER.replace("RD_OUT,5,10", "RD_OUT,5,99");
    assert_eq!(dropped(&decode("hfplayer", late.as_bytes()).1, "not seen to come in"), 1);
}

#[test]
fn disksim_times_are_ms_and_the_lowest_flag_is_a_read() {
    let (mut rows, decoded) = read("disksim");
    rows.sort_by_key(|row| row.intended_ns);
    assert_eq!(decoded.shift_ns, 5_000_000_000);
    assert_eq!(brief(&rows[0]), (Write, 6_357_144 * 512, 4096, 265_313_000, 265_313_000, -1));
    assert_eq!(rows.iter().map(|row| row.opcode).collect::<Vec<_>>(), [Write, Read, Write]);
    assert_eq!(decode("disksim", b"1 0 8 8 41\n").0[0].opcode, Read);
    assert!(message("disksim", "1 0 8 8 g\n").contains("the flags is 'g'"));
}

#[test]
fn ssdsim_and_mqsim_times_are_ns_unless_the_workload_says_otherwise() {
    for format in ["ssdsim", "mqsim"] {
        let (mut rows, _) = read(format);
        rows.sort_by_key(|row| row.intended_ns);
        assert_eq!(brief(&rows[2]), (Read, 55_596 * 512, 3072, 1_078_643_005, 1_078_643_005, -1));
        assert!(message(format, "1.5 0 8 8 0\n").contains("has a fraction"));
        assert!(message(format, "1 0 8 8 2\n").contains("neither 1 (read) nor 0 (write)"));
    }
    let options = Options { time_unit: Some(TimeUnit::Us), ..Options::default() };
    let (rows, _) = decode_text("mqsim", "7 0 8 8 1\n", &options).unwrap();
    assert_eq!(rows[0].intended_ns, 7000);
    let refused = decode_text("ssdsim", "7 0 8 8 1\n", &options).err().unwrap().to_string();
    assert!(
        refused.contains("--time-unit does not fit traces of format ssdsim: it takes --volume"),
        "{refused}"
    );
}

#[test]
fn vscsi_commands_that_have_no_place_are_counted_and_not_guessed() {
    let (rows, decoded) = decode("vscsi", &samples::vscsi_v1());
    assert_eq!(decoded.shift_ns, 1_000_000_000);
    assert_eq!(brief(&rows[0]), (Write, 42_932_745 * 512, 512, 0, 0, -1));
    assert_eq!(brief(&rows[1]), (Read, 4096, 6656, 250_000, 250_000, -1));
    assert_eq!(decoded.absent_columns, PLAIN);
    let (rows, decoded) = decode("vscsi", &samples::vscsi_v2());
    assert_eq!(rows.iter().map(|row| row.opcode).collect::<Vec<_>>(), [Write, Read, Flush]);
    assert_eq!((rows[1].intended_ns, rows[1].latency_ns), (100_000, -1));
    assert!(has_warning(&decoded, "response_times_left_out"));
    let codes = [0x28, 0x42, 0x12, 0x42, 0x93].map(|code| vscsi_record_v1(code, 512, 8, 5));
    let (rows, decoded) = decode("vscsi", &codes.concat());
    assert_eq!((rows.len(), dropped(&decoded, "UNMAP"), dropped(&decoded, "WRITE SAME")), (1, 2, 1));
    assert_eq!(dropped(&decoded, "no reads, writes or flushes"), 1);
    let mut damaged = samples::vscsi_v1();
    damaged[32 + 15] = 9;
    let error = decode_text("vscsi", &damaged, &Options::default()).err().unwrap().to_string();
    assert!(error.contains("byte 32: the record's version is 9"), "{error}");
}

#[test]
fn oracle_general_has_neither_operations_nor_places_unless_objects_are_blocks() {
    let (rows, decoded) = read("oracle-general");
    assert_eq!(brief(&rows[0]), (Read, -1, 512, 0, 0, -1));
    assert_eq!((decoded.shift_ns, rows[2].intended_ns), (5_000_000_000, 2_000_000_000));
    for column in ["opcode", "offset_bytes", "submit_ns", "latency_ns"] {
        assert!(decoded.absent_columns.contains(&column), "{column}");
    }
    let options = Options { object_bytes: Some(512), ..Options::default() };
    let (rows, decoded) = decode_text("oracle-general", samples::oracle_general(), &options).unwrap();
    assert_eq!(rows[1].offset_bytes, 99 * 512);
    assert!(!decoded.absent_columns.contains(&"offset_bytes"));
}

#[test]
fn libcachesim_csv_is_read_by_its_header() {
    let (rows, decoded) = read("libcachesim-csv");
    assert_eq!(brief(&rows[0]), (Write, 42_932_745 * 512, 512, 0, 0, -1));
    assert_eq!((rows[1].opcode, rows[2].intended_ns), (Read, 1_000_000_000));
    assert!(has_warning(&decoded, "whole_seconds"));
    let (rows, decoded) = decode("libcachesim-csv", b"lbn,op,time,size,x\n8,0x28,1.5,512,y\n");
    assert_eq!((rows[0].offset_bytes, rows[0].intended_ns), (4096, 500_000_000));
    assert!(decoded.warnings.is_empty());
    assert!(message("libcachesim-csv", "time,size,lbn\n1,2,3\n").contains("does not name the columns"));
}

#[test]
fn ios_that_move_nothing_or_end_beyond_all_numbers_are_no_rows() {
    let (rows, decoded) = decode("alibaba", b"1,R,0,0,5\n1,R,0,512,5\n");
    assert_eq!((rows.len(), dropped(&decoded, "without a length")), (1, 1));
    assert!(message("alibaba", "1,R,9223372036854775807,512,5\n").contains("too large"));
    assert!(message("spc", "0,9223372036854775807,512,R,5\n").contains("the LBA is '9223372036854775807'"));
}
