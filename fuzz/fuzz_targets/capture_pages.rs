//! Pages of the kernel's ring buffer, as a capture reads them: through records and events to rows.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::error::Error;
use std::path::Path;
use testdrive_core::IoRecord;
use testdrive_fuzz::decode::Decoded as Event;
use testdrive_fuzz::memory::peak_of;
use testdrive_fuzz::numbers::Numbers;
use testdrive_fuzz::page::{parse_header, Cursor};
use testdrive_fuzz::{check, pages};
use testdrive_traces::{Assembler, AssemblerLimits, BlockEvent, Decoded, Device, Options, Place, Sink};

#[derive(Default)]
struct Rows(Vec<IoRecord>);

impl Sink for Rows {
    fn rows(&mut self, rows: &[IoRecord]) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0.extend_from_slice(rows);
        Ok(())
    }
    fn progress(&mut self, _: u64, _: u64) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(())
    }
}

/// The events of a page. Its records stand inside it, one after the other.
fn events(page: &[u8], cpu: i32, events: &mut Vec<BlockEvent>) {
    let (layout, decoder) = (pages::page_layout(), pages::decoder());
    let Ok(header) = parse_header(page, &layout) else { return };
    let mut cursor = Cursor::new(&header, &layout);
    let mut after = layout.data_offset;
    while let Ok(Some(record)) = cursor.next(page) {
        assert!(record.place.start >= after + 4 && record.place.end <= header.end, "{record:?}");
        after = record.place.end;
        let time_ns = i64::try_from(record.time_ns).unwrap_or(i64::MAX);
        if let Event::Event(event) = decoder.decode(&page[record.place], time_ns, cpu) {
            events.push(event);
        }
    }
}

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let (mut time_ns, mut found) = (u64::from(numbers.two()) * 1_000_000_000, Vec::new());
    let raw = numbers.below(8) == 0;
    while numbers.any() {
        let cpu = i32::from(numbers.below(3));
        if raw {
            events(numbers.0, cpu, &mut found);
            break;
        }
        events(&pages::page(&mut numbers, &mut time_ns), cpu, &mut found);
    }
    let options = Options { device: Some(Device { major: 8, minor: 0 }), ..Options::default() };
    let mut rows = Rows::default();
    let (peak_bytes, result) = peak_of(|| {
        let mut assembler = Assembler::new(&options, AssemblerLimits::default(), &mut rows);
        for event in &found {
            assembler.push(*event, Path::new("live"), Place::Byte(0))?;
        }
        let mut decoded = Decoded { files: vec!["live".into()], ..Decoded::default() };
        assembler.finish(Path::new("live"), &mut decoded).map(|()| decoded)
    });
    assert!(peak_bytes <= 64 << 20, "{peak_bytes} bytes were held for {} events", found.len());
    if let Ok(decoded) = result {
        check::check(&rows.0, &decoded, &options);
    }
});
