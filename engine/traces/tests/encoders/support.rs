//! What the tests share: rows in memory as a source, and rows read back.

use std::error::Error;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_traces::{
    by_name, encoder_by_name, Decoded, Device, EncodeError, EncodeOptions, Encoded, Options, Order, Rows,
    Sink, Source,
};

/// Rows in the order in which they were recorded.
#[derive(Clone, Default)]
pub struct Memory {
    pub rows: Vec<IoRecord>,
    pub absent: Vec<&'static str>,
    pub device: Option<Device>,
}

impl Memory {
    pub fn of(rows: &[IoRecord]) -> Memory {
        Memory { rows: rows.to_vec(), ..Memory::default() }
    }
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
                rows.sort_by_key(|row| (row.submit_ns + row.latency_ns, row.latency_ns == 0));
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
        self.device
    }
}

pub fn encode_with(
    format: &str,
    source: &Memory,
    options: &EncodeOptions,
) -> Result<(String, Encoded), EncodeError> {
    let mut output = Vec::new();
    let encoded = encoder_by_name(format).unwrap().encode(source, options, &mut output)?;
    Ok((String::from_utf8(output).unwrap(), encoded))
}

pub fn encode(format: &str, source: &Memory) -> (String, Encoded) {
    encode_with(format, source, &EncodeOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

#[derive(Default)]
struct Kept(Vec<IoRecord>);

impl Sink for Kept {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// What our own decoder makes of a text.
pub fn decode(format: &str, text: &str) -> (Vec<IoRecord>, Decoded) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("exported");
    std::fs::write(&path, text).unwrap();
    let mut kept = Kept::default();
    let decoded = by_name(format).unwrap().decode(&[path], &Options::default(), &mut kept);
    let decoded = decoded.unwrap_or_else(|error| panic!("{error}\n{}", &text[..text.len().min(2000)]));
    (kept.0, decoded)
}

/// An I/O of 4 KiB that does nothing special.
pub fn row(intended_ns: i64, opcode: Opcode) -> IoRecord {
    IoRecord {
        intended_ns,
        submit_ns: intended_ns,
        latency_ns: 1000,
        offset_bytes: if opcode == Opcode::Flush { 0 } else { 8192 },
        length_bytes: if opcode == Opcode::Flush { 0 } else { 4096 },
        stream: 0,
        status: 0,
        phase: 0,
        opcode,
        flags: Flags::NONE,
    }
}

/// Rows of every kind in the order of their intended times, each as valid as the recording's format allows.
pub fn any_rows(seed: u64, count: usize) -> Vec<IoRecord> {
    let mut random = SplitMix64::new(seed);
    let start_ns = random.below(1 << 40) as i64;
    let mut intended_ns = start_ns;
    (0..count)
        .map(|_| {
            intended_ns += random.below(3) as i64 * random.below(1 << 24) as i64;
            let opcode = Opcode::ALL[random.below(5) as usize];
            let is_flush = opcode == Opcode::Flush;
            IoRecord {
                intended_ns,
                submit_ns: intended_ns + random.below(1 << 22) as i64 * random.below(2) as i64,
                latency_ns: random.below(1 << 30) as i64 - 1,
                offset_bytes: if is_flush { 0 } else { random.below(1 << 50) as i64 },
                length_bytes: if is_flush { 0 } else { 1 + random.below(1 << 22) as i64 },
                stream: random.below(64) as i32 - 1,
                status: if random.below(10) == 0 { random.below(133) as i32 } else { 0 },
                phase: 0,
                opcode,
                flags: Flags(random.below(32) as u8),
            }
        })
        .collect()
}
