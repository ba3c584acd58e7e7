//! Every format against the same damage: what comes of it is rows that were there, or one error that says where. The formats are
//! those that there are, so that a new one is tested by being one.

use crate::fuzz::check;
use crate::samples::{samples, Sample};
use crate::support::decode;
use std::io::Write as _;
use std::path::PathBuf;
use testdrive_core::IoRecord;
use testdrive_traces::{by_name, detect, formats, FoundBy, Options, TraceError};

thread_local! {
    static FOLDER: tempfile::TempDir = tempfile::tempdir().unwrap();
}

/// Decodes content as a format, and checks what every outcome must be.
fn outcome(format: &str, content: &[u8], options: &Options) -> Result<Vec<IoRecord>, String> {
    let path = FOLDER.with(|folder| folder.path().join("the-trace"));
    std::fs::write(&path, content).unwrap();
    let decoded = decode(format, std::slice::from_ref(&path), options);
    match decoded {
        Ok((rows, _)) => {
            check(&rows);
            Ok(rows)
        }
        Err(error) => {
            let message = error.to_string();
            // A defect would be an error of the sink; everything else names the file, or what to do with an option.
            assert!(!matches!(error, TraceError::Sink(_)), "{format}: {message}");
            let says_where =
                ["the-trace", "--", "the first line is", "there is no column", "a time is needed"];
            let says_where = says_where.iter().any(|words| message.contains(words));
            assert!(says_where, "{format}: {message}");
            assert!(message.len() < 1000 && !message.chars().any(|char| char == '\0'), "{format}: {message}");
            Err(message)
        }
    }
}

fn whole(sample: &Sample) -> Vec<IoRecord> {
    let rows = outcome(sample.format, &sample.content, &sample.options);
    rows.unwrap_or_else(|message| panic!("{}: {message}", sample.format))
}

fn changed(sample: &Sample, change: impl FnOnce(&str) -> String) -> Result<Vec<IoRecord>, String> {
    let text = std::str::from_utf8(&sample.content).unwrap();
    outcome(sample.format, change(text).as_bytes(), &sample.options)
}

fn texts() -> impl Iterator<Item = Sample> {
    samples().into_iter().filter(|sample| sample.is_text)
}

#[test]
fn every_format_has_a_sample_that_is_read_whole() {
    let samples = samples();
    for format in formats() {
        let own = samples.iter().filter(|sample| sample.format == format.name());
        assert!(own.count() > 0, "give {} a sample in samples.rs", format.name());
    }
    for sample in &samples {
        assert_eq!(whole(sample).len(), sample.rows, "{}", sample.format);
    }
}

#[test]
fn content_tells_the_format_where_it_can_and_packed_content_too() {
    for sample in samples() {
        let folder = tempfile::tempdir().unwrap();
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(&sample.content).unwrap();
        let packings = [
            ("trace", sample.content.clone()),
            ("trace.gz", encoder.finish().unwrap()),
            ("trace.zst", zstd::encode_all(&sample.content[..], 1).unwrap()),
        ];
        let expected = whole(&sample);
        for (name, content) in packings {
            let path: PathBuf = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            let found = detect(std::slice::from_ref(&path));
            match by_name(sample.format).unwrap().found_by() {
                FoundBy::Content => assert_eq!(found.map(|format| format.name()).ok(), Some(sample.format)),
                FoundBy::Name => assert!(found.is_err()),
                FoundBy::Asking if sample.format == "disksim" => {
                    assert_eq!(
                        found.map(|format| format.name()).ok(),
                        Some("disksim"),
                        "times have fractions"
                    );
                }
                FoundBy::Asking => {
                    assert!(matches!(found, Err(TraceError::Ambiguous { .. })), "{}", sample.format);
                }
            }
            let (rows, _) = decode(sample.format, &[path], &sample.options).unwrap();
            assert_eq!(rows, expected, "{} as {name}", sample.format);
        }
    }
}

#[test]
fn a_trace_that_is_cut_off_anywhere_ends_in_fewer_rows_or_an_error() {
    for sample in samples() {
        for end in 0..sample.content.len() {
            match outcome(sample.format, &sample.content[..end], &sample.options) {
                Ok(rows) => assert!(rows.len() <= sample.rows, "{} at {end}", sample.format),
                Err(message) => {
                    assert!(end > 0 || message.contains("is empty"), "{}: {message}", sample.format)
                }
            }
        }
    }
}

#[test]
fn an_empty_trace_is_said_to_be_empty() {
    for sample in samples() {
        let message = outcome(sample.format, b"", &sample.options).unwrap_err();
        assert!(message.contains("is empty"), "{}: {message}", sample.format);
    }
}

#[test]
fn a_trace_of_another_format_is_refused_or_holds_nothing() {
    // What looks alike is read as what it is said to be.
    let alike = ["disksim", "ssdsim", "mqsim", "csv", "oracle-general"];
    for sample in samples() {
        for format in formats().iter().map(|format| format.name()) {
            let is_alike =
                alike.contains(&format) && (format == "oracle-general" || alike.contains(&sample.format));
            if format == sample.format || is_alike || format == "csv" {
                let _ = outcome(format, &sample.content, &Options::default());
                continue;
            }
            let rows = outcome(format, &sample.content, &Options::default()).map_or(0, |rows| rows.len());
            assert_eq!(rows, 0, "{} read as {format}", sample.format);
        }
    }
}

#[test]
fn lines_in_another_order_are_put_in_order_or_refused() {
    for sample in texts() {
        let reversed = changed(&sample, |text| {
            let mut lines: Vec<&str> = text.lines().collect();
            // What stands first for all lines stays first.
            let first = lines
                .iter()
                .position(|line| line.starts_with(|first: char| first.is_ascii_digit()))
                .unwrap_or(1);
            lines[first.min(1)..].reverse();
            lines.join("\n") + "\n"
        });
        if let Ok(rows) = reversed {
            assert!(rows.len() <= sample.rows, "{}", sample.format);
        }
    }
}

#[test]
fn line_ends_of_windows_and_a_last_line_without_one_change_nothing() {
    for sample in texts() {
        let expected = whole(&sample);
        assert_eq!(
            changed(&sample, |text| text.replace('\n', "\r\n")).unwrap(),
            expected,
            "{}",
            sample.format
        );
        let without = changed(&sample, |text| text.strip_suffix('\n').unwrap_or(text).to_string());
        assert_eq!(without.unwrap(), expected, "{}", sample.format);
        let blank = changed(&sample, |text| text.to_string() + "\n\n");
        assert_eq!(blank.unwrap(), expected, "{}", sample.format);
        let marked = changed(&sample, |text| format!("\u{feff}{text}"));
        assert_eq!(marked.unwrap(), expected, "{} with a byte order mark", sample.format);
    }
}

#[test]
fn numbers_that_are_too_large_or_below_zero_are_named_or_counted() {
    for sample in texts() {
        let text = std::str::from_utf8(&sample.content).unwrap().to_string();
        let mut refused = 0;
        for number in
            ["99999999999999999999999999", "18446744073709551615", "9223372036854775807", "-5", "1e300", ""]
        {
            for (start, end) in numbers_of(&text) {
                let damaged = format!("{}{number}{}", &text[..start], &text[end..]);
                let outcome = outcome(sample.format, damaged.as_bytes(), &sample.options);
                refused += usize::from(outcome.is_err());
            }
        }
        // The formats of events count a line that they cannot read, and go on.
        let counts = ["blkparse", "trace-event"].contains(&sample.format);
        assert!(refused > 0 || counts, "{} minds no number", sample.format);
    }
}

/// Where the numbers of a text stand.
fn numbers_of(text: &str) -> Vec<(usize, usize)> {
    let mut found = Vec::new();
    let mut start = None;
    for (at, byte) in text.bytes().chain([b' ']).enumerate() {
        match (start, byte.is_ascii_digit()) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    found
}

#[test]
fn zero_bytes_anywhere_are_refused_or_counted() {
    for sample in texts() {
        for at in (0..sample.content.len()).step_by(3) {
            let mut damaged = sample.content.clone();
            damaged[at] = 0;
            let _ = outcome(sample.format, &damaged, &sample.options);
        }
    }
}

#[test]
fn binary_fields_at_their_largest_are_rows_or_errors() {
    for sample in samples().into_iter().filter(|sample| !sample.is_text) {
        for at in 0..sample.content.len() {
            for width in [1, 2, 4, 8] {
                let mut damaged = sample.content.clone();
                let end = (at + width).min(damaged.len());
                damaged[at..end].fill(0xff);
                let _ = outcome(sample.format, &damaged, &sample.options);
            }
        }
    }
}

#[test]
fn a_line_without_end_is_no_line_of_a_trace() {
    for sample in texts() {
        let long = format!("{}{}\n", std::str::from_utf8(&sample.content).unwrap(), "9".repeat(3 << 20));
        let _ = outcome(sample.format, long.as_bytes(), &sample.options);
        let only = outcome(sample.format, "x".repeat(3 << 20).as_bytes(), &sample.options);
        assert!(only.is_err(), "{}", sample.format);
    }
}

#[test]
fn headers_are_passed_over_where_a_format_has_none_of_its_own() {
    for format in ["msr", "spc", "alibaba", "tencent", "systor17", "disksim", "ssdsim", "mqsim"] {
        for sample in texts().filter(|sample| sample.format == format) {
            let expected = whole(&sample);
            let plain = |text: &str| {
                text.lines().filter(|line| !line.starts_with('T')).collect::<Vec<_>>().join("\n")
            };
            assert_eq!(changed(&sample, plain).unwrap(), expected, "{format} without a header");
            let named = changed(&sample, |text| format!("when,who,what,where\n{}", plain(text)));
            assert_eq!(named.unwrap(), expected, "{format} with a header");
            let twice = changed(&sample, |text| format!("when,who,what,where\nand,again\n{}", plain(text)));
            assert!(twice.unwrap_err().contains("line 2"), "{format} with two headers");
        }
    }
}
