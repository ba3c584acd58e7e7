//! What the formats whose lines are whole I/Os share: volumes, several files, the time zero, the order of rows.

use crate::samples;
use crate::support::{decode, decode_text, dropped, has_warning, Rows};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use testdrive_core::IoRecord;
use testdrive_traces::{by_name, decode as decode_into, detect, Options, TraceError};

fn by_volume(
    format: &str,
    files: &[(&str, &str)],
    volume: Option<&str>,
) -> Result<BTreeMap<String, Vec<IoRecord>>, TraceError> {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<PathBuf> = files.iter().map(|(name, _)| folder.path().join(name)).collect();
    for (path, (_, content)) in paths.iter().zip(files) {
        std::fs::write(path, content).unwrap();
    }
    let options = Options { volume: volume.map(String::from), ..Options::default() };
    let mut sink = Rows::default();
    decode_into(by_name(format)?, &paths, &options, &mut sink)?;
    Ok(sink.volumes)
}

/// A line of the MSR format, at a time in us.
fn line(time_us: u64, host: &str, offset: u64) -> String {
    format!("{},{host},0,Read,{offset},512,10\n", 128_166_372_000_000_000 + time_us * 10)
}

fn times_us(rows: &[IoRecord]) -> Vec<i64> {
    rows.iter().map(|row| row.submit_ns / 1000).collect()
}

#[test]
fn volumes_are_kept_apart_with_one_time_zero() {
    let volumes = by_volume("msr", &[("t.csv", samples::MSR)], None).unwrap();
    let names: Vec<&str> = volumes.keys().map(String::as_str).collect();
    assert_eq!(names, ["src2_12", "usr_0", "usr_1"]);
    assert_eq!(volumes["usr_0"].len(), 2);
    assert_eq!(volumes["src2_12"][0].submit_ns, 2_638_224_500, "counted from the first I/O of all volumes");
}

#[test]
fn one_volume_is_chosen_by_its_name_and_keeps_the_times_of_all() {
    let volumes = by_volume("msr", &[("t.csv", samples::MSR)], Some("src2_12")).unwrap();
    assert_eq!(volumes.len(), 1);
    assert_eq!(volumes["src2_12"][0].submit_ns, 2_638_224_500);
    let error = by_volume("msr", &[("t.csv", samples::MSR)], Some("hm_0")).unwrap_err().to_string();
    assert!(
        error.contains("no I/O of volume 'hm_0'; the busiest of its 3 volumes are 'usr_0' with 2 I/Os"),
        "{error}"
    );
}

#[test]
fn more_volumes_than_are_written_at_once_end_in_a_choice() {
    let mut text = String::new();
    for index in 0..1000 {
        write!(text, "{}", line(index, &format!("host{}", index % 65), index * 512)).unwrap();
        write!(text, "{}", line(index, "busy", index * 512)).unwrap();
    }
    let error = by_volume("msr", &[("t.csv", &text)], None).unwrap_err().to_string();
    for words in
        ["more than 64 volumes", "first 2000 I/Os are 'busy_0' with 1000 I/Os, 'host0_0' with 16", "--volume"]
    {
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(by_volume("msr", &[("t.csv", &text)], Some("host64_0")).unwrap()["host64_0"].len(), 15);
    let few: String =
        text.lines().filter(|line| !line.contains("host64")).map(|line| format!("{line}\n")).collect();
    let error = by_volume("msr", &[("t.csv", &few)], None).unwrap_err().to_string();
    assert!(error.contains("more than 64 volumes"), "{error}");
    let fewer: String =
        few.lines().filter(|line| !line.contains("busy")).map(|line| format!("{line}\n")).collect();
    assert_eq!(by_volume("msr", &[("t.csv", &fewer)], None).unwrap().len(), 64);
}

#[test]
fn files_are_merged_by_time_whichever_order_they_are_named_in() {
    let first: String = (0..10_000).map(|index| line(index * 10, "a", index)).collect();
    let second: String = (0..10_000).map(|index| line(index * 10 + 5, "a", index)).collect();
    let third: String = (0..10).map(|index| line(1_000_000 + index, "a", index)).collect();
    let files = [("3.csv", &third[..]), ("2.csv", &second), ("1.csv", &first), ("empty.csv", "")];
    let volumes = by_volume("msr", &files, None).unwrap();
    let times = times_us(&volumes["a_0"]);
    let expected: Vec<i64> = (0..20_000).map(|index| index * 5).chain(1_000_000..1_000_010).collect();
    assert_eq!(times, expected);
}

#[test]
fn a_file_without_a_row_is_read_and_what_it_drops_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let empty_ios = line(7, "hm", 0).replace(",512,10", ",0,10").repeat(3);
    let contents = [line(5, "hm", 0), empty_ios, "# nothing but this\n".into()];
    let paths: Vec<PathBuf> = (0..3).map(|index| folder.path().join(index.to_string())).collect();
    for (path, content) in paths.iter().zip(&contents) {
        std::fs::write(path, content).unwrap();
    }
    // The helper checks that the last progress is the whole input.
    let (rows, decoded) = decode("msr", &paths, &Options::default()).unwrap();
    assert_eq!((rows.len(), dropped(&decoded, "without a length")), (1, 3));
}

#[test]
fn a_column_that_some_files_have_is_there_and_a_warning_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let names = "start ; sector; length ; op ; delay ; duration\n";
    let contents = [
        format!("{}1.0 ; 8 ; 8 ; R ; 0.25 ; 0.001\n", names),
        format!("{}2.0 ; 8 ; 8 ; R ; 0.0 ; 0.0\n", names.replace("delay", "replay_delay=0")),
    ];
    let paths: Vec<PathBuf> = (0..2).map(|index| folder.path().join(index.to_string())).collect();
    for (path, content) in paths.iter().zip(&contents) {
        std::fs::write(path, content).unwrap();
    }
    let (rows, decoded) = decode("blkreplay", &paths, &Options::default()).unwrap();
    assert_eq!(rows.iter().map(|row| row.latency_ns).collect::<Vec<_>>(), [1_000_000, -1]);
    assert_eq!(decoded.absent_columns, ["stream", "status"]);
    let warned: Vec<&str> = decoded.warnings.iter().map(|warning| warning.message.as_str()).collect();
    assert!(warned[0].starts_with("1 of 2 files have no submit_ns") && warned.len() == 2, "{warned:?}");
    let (_, decoded) = decode("blkreplay", &paths[1..], &Options::default()).unwrap();
    assert!(decoded.absent_columns.contains(&"latency_ns") && decoded.warnings.is_empty());
}

#[test]
fn many_files_one_after_the_other_are_one_trace_and_too_many_at_once_are_refused() {
    let contents: Vec<String> =
        (0..300).map(|index| line(index * 1000, "a", 0) + &line(index * 1000 + 10, "a", 0)).collect();
    let names: Vec<String> = (0..300).map(|index| format!("{index}.csv")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&contents).map(|(name, content)| (&name[..], &content[..])).collect();
    let volumes = by_volume("msr", &files, None).unwrap();
    assert_eq!(volumes["a_0"].len(), 600);
    assert!(times_us(&volumes["a_0"]).is_sorted());
    let overlapping: Vec<String> =
        (0..300).map(|index| line(index, "a", 0) + &line(900_000, "a", 0)).collect();
    let files: Vec<(&str, &str)> =
        names.iter().zip(&overlapping).map(|(name, content)| (&name[..], &content[..])).collect();
    let error = by_volume("msr", &files, None).unwrap_err().to_string();
    assert!(error.contains("more than 128 of the files"), "{error}");
}

#[test]
fn rows_may_come_late_and_the_earliest_of_the_first_sets_the_time_zero() {
    let mut text: String = (0..200_000).map(|index| line(5_000_000 + index, "a", index)).collect();
    text += &line(1_500_000, "a", 7);
    let (rows, decoded) = decode_text("msr", &text, &Options::default()).unwrap();
    assert_eq!(decoded.shift_ns % 1_000_000_000_000, 601_000_000_000);
    assert_eq!(
        (rows.len(), rows[200_000].submit_ns, rows[0].submit_ns),
        (200_001, 500_000_000, 4_000_000_000)
    );
}

#[test]
fn rows_before_the_time_zero_that_was_set_are_refused_with_their_line() {
    let mut text: String = (0..300_000).map(|index| line(5_000_000 + index, "a", index)).collect();
    // Late, but not before the first second.
    text += &line(5_000_001, "a", 7);
    assert_eq!(decode_text("msr", &text, &Options::default()).unwrap().0.len(), 300_001);
    text += &line(4_999_999, "a", 7);
    let error = decode_text("msr", &text, &Options::default()).err().unwrap();
    assert!(matches!(error, TraceError::OutOfOrder { back_ns: 300_000_000, .. }), "{error}");
    assert!(error.to_string().contains("line 300002: time goes back by 300000000 ns"), "{error}");
}

#[test]
fn rows_that_come_later_than_a_recording_bears_are_refused() {
    // Beyond eight groups of 131,072 rows.
    let mut text: String = (0..1_300_000).map(|index| line(5_000_000 + index / 2, "a", index)).collect();
    text += &line(5_200_000, "a", 7);
    assert_eq!(decode_text("msr", &text, &Options::default()).unwrap().0.len(), 1_300_001);
    text += &line(5_020_000, "a", 7);
    let error = decode_text("msr", &text, &Options::default()).err().unwrap().to_string();
    assert!(
        error.contains("line 1300002: time goes back") && error.contains("sort the trace by time"),
        "{error}"
    );
}

#[test]
fn a_last_line_that_is_cut_off_is_counted_and_any_other_is_an_error() {
    let text = line(1, "a", 0) + "1281663720";
    let (rows, decoded) = decode_text("msr", &text, &Options::default()).unwrap();
    assert_eq!((rows.len(), dropped(&decoded, "cut off")), (1, 1));
    assert!(has_warning(&decoded, "truncated"));
    let error = decode_text("msr", text + "\n", &Options::default()).err().unwrap().to_string();
    assert!(error.contains("trace.csv, line 2: there is no Hostname"), "{error}");
}

#[test]
fn comments_and_empty_lines_count_in_the_places_of_errors() {
    let text = format!("# made for a test\n\n{}\n  \nx\n", line(1, "a", 0));
    let error = decode_text("msr", text, &Options::default()).err().unwrap().to_string();
    assert!(error.contains("line 6: Timestamp is 'x'"), "{error}");
}

#[test]
fn what_looks_alike_is_not_guessed_and_the_message_helps_to_decide() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.trace");
    std::fs::write(&path, samples::SSDSIM).unwrap();
    let error = detect(&[path]).err().unwrap().to_string();
    for words in [
        "in several formats, so say which it is with --format NAME:\n",
        "\n  disksim: times in ms; the first is a write of 3584 bytes at byte 155426304 at 0 ns, the first 3 take 12.5 days\n",
        "\n  ssdsim: times in ns; the first is a write of 3584 bytes at byte 155426304 at 0 ns, the first 3 take 1.079 s\n",
        "\n  mqsim: times in ns, or as --time-unit says; ",
    ] {
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn options_that_a_format_has_no_use_for_are_refused() {
    let volume = Options { volume: Some("a".into()), ..Options::default() };
    for (format, advice) in
        [("vscsi", "it takes no options of its own"), ("blktrace", "it takes --events, --device")]
    {
        let error = decode(format, &["x".into()], &volume).err().unwrap().to_string();
        assert!(error.contains("--volume does not fit") && error.contains(advice), "{error}");
    }
}
