//! Any rows as each trace that can be written: what is read back is what was written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::error::Error;
use testdrive_core::{Flags, IoRecord, Opcode};
use testdrive_fuzz::numbers::Numbers;
use testdrive_fuzz::{check, files};
use testdrive_traces::{by_name, encoders, Device, EncodeOptions, Encoded, Options, Order, Rows, Source};

struct Memory {
    rows: Vec<IoRecord>,
    absent: Vec<&'static str>,
}

impl Source for Memory {
    fn rows(&self, order: Order) -> Result<Rows<'_>, Box<dyn Error + Send + Sync>> {
        let mut rows = self.rows.clone();
        match order {
            Order::Intended => rows.sort_by_key(|row| row.intended_ns),
            Order::Submit => rows.sort_by_key(|row| row.submit_ns),
            Order::Began => rows.sort_by_key(|row| row.intended_ns.min(row.submit_ns)),
            Order::Completion => {
                rows.retain(|row| row.latency_ns >= 0);
                rows.sort_by_key(|row| (row.submit_ns.saturating_add(row.latency_ns), row.latency_ns == 0));
            }
        }
        Ok(Box::new(rows.into_iter().map(Ok)))
    }
    fn began_ns(&self) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        Ok(self.rows.iter().map(|row| row.intended_ns.min(row.submit_ns)).min())
    }
    fn lacks(&self, column: &str) -> bool {
        self.absent.contains(&column)
    }
    fn device(&self) -> Option<Device> {
        None
    }
}

/// A row that the recording format allows, with times and places up to a day and a pebibyte.
fn row(numbers: &mut Numbers<'_>, time_ns: &mut i64) -> IoRecord {
    *time_ns += (numbers.wide() % 1_000_000_000_000) as i64;
    let opcode = Opcode::ALL[usize::from(numbers.below(5))];
    let is_flush = opcode == Opcode::Flush;
    IoRecord {
        intended_ns: *time_ns,
        submit_ns: *time_ns + i64::from(numbers.two()) - if numbers.below(8) == 0 { 1000 } else { 0 },
        latency_ns: (numbers.wide() % 1_000_000_000_000) as i64 - 1,
        offset_bytes: if is_flush { 0 } else { (numbers.wide() % (1 << 50)) as i64 },
        length_bytes: if is_flush { 0 } else { (numbers.wide() % (1 << 35)) as i64 },
        stream: i32::from(numbers.byte()) - 1,
        status: if numbers.below(8) == 0 { i32::from(numbers.byte()) } else { 0 },
        phase: 0,
        opcode,
        flags: Flags(numbers.below(32)),
    }
}

fn check_csv(rows: &[IoRecord], encoded: &Encoded, source: &Memory) {
    let mut expected = source.rows.clone();
    expected.sort_by_key(|row| row.intended_ns);
    for row in &mut expected {
        row.intended_ns -= encoded.shift_ns;
        row.submit_ns -= encoded.shift_ns;
    }
    assert_eq!(rows, expected);
}

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let mut time_ns = i64::from(numbers.two()) * 100_000_000 + 1000;
    let mut source = Memory { rows: Vec::new(), absent: Vec::new() };
    while numbers.any() {
        source.rows.push(row(&mut numbers, &mut time_ns));
    }
    for encoder in encoders() {
        let mut text = Vec::new();
        let Ok(encoded) = encoder.encode(&source, &EncodeOptions::default(), &mut text) else {
            assert!(source.rows.is_empty(), "{} refuses rows", encoder.name());
            continue;
        };
        let dropped: u64 = encoded.dropped.iter().map(|dropped| dropped.count).sum();
        assert_eq!(encoded.written.total().ios + dropped, source.rows.len() as u64, "{}", encoder.name());
        let Ok(format) = by_name(encoder.name()) else { continue };
        let paths = files::write(|_| "exported".into(), &[&text]);
        let decoded = check::decoded(format, &paths, &Options::default());
        if encoded.written.total().ios == 0 {
            continue;
        }
        let (rows, _) = decoded.unwrap_or_else(|error| panic!("{}: {error}", encoder.name()));
        match encoder.name() {
            "csv" => check_csv(&rows, &encoded, &source),
            // Long I/Os are several lines.
            "fio-iolog" => assert!(rows.len() as u64 >= encoded.written.total().ios),
            name => assert_eq!(rows.len() as u64, encoded.written.total().ios, "{name}"),
        }
    }
});
