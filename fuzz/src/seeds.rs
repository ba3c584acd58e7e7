//! What the fuzzer begins with: the tests' samples of every format, and what our own encoders write. No line is from a real trace.

use crate::events::{self, Event};
use crate::numbers::Numbers;
use crate::pages;
use crate::samples::samples;
use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use testdrive_core::{Flags, IoRecord, Opcode, SplitMix64};
use testdrive_traces::{encoders, formats, Device, EncodeOptions, Order, Rows, Source};

/// Words that are longer are not worth a place in a dictionary.
const WORD_BYTES_MAX: usize = 32;
const WORDS_MAX: usize = 300;

/// Writes a folder of seeds and a dictionary for each format and target into `folder`.
///
/// # Errors
/// When the folder cannot be written.
pub fn write(folder: &Path) -> std::io::Result<()> {
    for format in formats() {
        let contents = of(format.name());
        if contents.is_empty() {
            eprintln!("warning: {} begins without a seed; give it one in samples.rs", format.name());
        }
        // The choice of options and the number of files: the usual ones, then some others.
        let prefixes = [[0, 0], [1, 1], [0x82, 2]];
        let prefixed =
            contents.iter().flat_map(|content| prefixes.map(|prefix| [&prefix[..], content].concat()));
        write_seeds(folder, &format!("decode-{}", format.name()), prefixed, &contents)?;
    }
    let layouts = [pages::PAGE_LAYOUT.as_bytes().to_vec(), pages::event_layout().into_bytes()];
    write_seeds(folder, "capture_layouts", layouts.iter().cloned(), &layouts)?;
    let all: Vec<Vec<u8>> = formats().iter().flat_map(|format| of(format.name())).collect();
    write_seeds(folder, "detect", all.iter().map(|content| [&[0], &content[..]].concat()), &all)
}

fn write_seeds(
    folder: &Path,
    target: &str,
    seeds: impl Iterator<Item = Vec<u8>>,
    words_of: &[Vec<u8>],
) -> std::io::Result<()> {
    let own = folder.join(target);
    std::fs::create_dir_all(&own)?;
    for (index, seed) in seeds.enumerate() {
        std::fs::write(own.join(format!("seed-{index}")), seed)?;
    }
    std::fs::write(folder.join(format!("{target}.dict")), dictionary(words_of))
}

/// Contents of files of a format.
fn of(format: &str) -> Vec<Vec<u8>> {
    let own = samples().into_iter().filter(|sample| sample.format == format);
    let mut contents: Vec<Vec<u8>> = own.map(|sample| sample.content).collect();
    let events = some_events();
    match format {
        "blktrace" => contents.extend([events::binary(&events, false), events::binary(&events, true)]),
        "blkparse" => contents.push(events::blkparse(&events).into_bytes()),
        "trace-event" => contents.push(events::trace_events(&events).into_bytes()),
        _ => {}
    }
    for encoder in encoders().iter().filter(|encoder| encoder.name() == format) {
        let mut text = Vec::new();
        let encoded = encoder.encode(&Few(some_rows()), &EncodeOptions::default(), &mut text);
        encoded.unwrap_or_else(|error| panic!("{format}: {error}"));
        contents.push(text);
    }
    contents
}

/// Events of all kinds, the same each time.
fn some_events() -> Vec<Event> {
    let mut random = SplitMix64::new(7);
    let bytes: Vec<u8> = (0..400).map(|_| random.next_u64() as u8).collect();
    events::events(&mut Numbers(&bytes))
}

fn some_rows() -> Vec<IoRecord> {
    (0..12)
        .map(|index| IoRecord {
            intended_ns: index * 1_000_000,
            submit_ns: index * 1_000_000 + 500,
            latency_ns: if index == 5 { -1 } else { 80_000 + index },
            offset_bytes: index * 4096,
            length_bytes: 4096,
            stream: index as i32 % 3,
            status: if index == 7 { 5 } else { 0 },
            phase: 0,
            opcode: Opcode::ALL[index as usize % 5],
            flags: Flags(index as u8),
        })
        .collect()
}

struct Few(Vec<IoRecord>);

impl Source for Few {
    fn rows(&self, _order: Order) -> Result<Rows<'_>, Box<dyn Error + Send + Sync>> {
        Ok(Box::new(self.0.iter().copied().map(Ok)))
    }
    fn began_ns(&self) -> Result<Option<i64>, Box<dyn Error + Send + Sync>> {
        Ok(self.0.first().map(|row| row.intended_ns))
    }
    fn lacks(&self, _column: &str) -> bool {
        false
    }
    fn device(&self) -> Option<Device> {
        None
    }
}

/// The words of texts, and what is at the edge of every number.
fn dictionary(contents: &[Vec<u8>]) -> String {
    let mut words: BTreeSet<&[u8]> = BTreeSet::new();
    for content in contents.iter().filter(|content| !content.contains(&0)) {
        let separated = content.split(|byte| b" ,;\t\n|".contains(byte));
        words.extend(separated.filter(|word| (2..=WORD_BYTES_MAX).contains(&word.len())));
    }
    let edges: [&[u8]; 10] = [
        b"9223372036854775807",
        b"9223372036854775808",
        b"18446744073709551615",
        b"18446744073709551616",
        b"4294967295",
        b"-1",
        b"1e308",
        b"0.000000001",
        b"\xef\xbb\xbf",
        b"\xff\xff\xff\xff\xff\xff\xff\x7f",
    ];
    let mut text = String::new();
    for word in words.into_iter().take(WORDS_MAX).chain(edges) {
        let hexadecimal: String = word.iter().map(|byte| format!("\\x{byte:02x}")).collect();
        writeln!(text, "\"{hexadecimal}\"").expect("a string takes all");
    }
    text
}
