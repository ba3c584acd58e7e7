//! Binary blktrace of whole records in any order, of any layout, on several CPUs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testdrive_fuzz::encode::{file, Record, LAYOUTS};
use testdrive_fuzz::numbers::Numbers;
use testdrive_fuzz::{check, files, options};
use testdrive_traces::by_name;

fn record(numbers: &mut Numbers<'_>, time_ns: &mut u64) -> Record {
    *time_ns = time_ns.wrapping_add(numbers.wide());
    let pdu = (0..numbers.below(20)).map(|_| numbers.byte()).collect();
    Record {
        time_ns: *time_ns,
        sector: numbers.wide(),
        bytes: u32::from(numbers.byte()) * 512,
        // All that version 7 has; of the notes among them there are enough.
        category: u64::from(numbers.two()) & if numbers.below(8) == 0 { 0xffff } else { 0xf9ff },
        act: u64::from(numbers.below(20)),
        cpu: u32::from(numbers.below(4)),
        error: numbers.two() as i16,
        pdu,
    }
}

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let format = by_name("blktrace").expect("it is a format");
    let options = options::options(format, numbers.byte());
    let layout = LAYOUTS[usize::from(numbers.below(4))];
    let mut cpus: Vec<Vec<Record>> = vec![Vec::new(); usize::from(numbers.below(3)) + 1];
    let mut time_ns = 0;
    while numbers.any() {
        let cpu = usize::from(numbers.byte()) % cpus.len();
        cpus[cpu].push(record(&mut numbers, &mut time_ns));
    }
    let contents: Vec<Vec<u8>> = cpus.iter().map(|records| file(records, layout)).collect();
    let contents: Vec<&[u8]> = contents.iter().map(Vec::as_slice).collect();
    let paths = files::write(|index| files::name("blktrace", index), &contents);
    if let Ok((rows, _)) = check::decoded(format, &paths, &options) {
        // Each row has the sectors of one event at most.
        let events: u64 = cpus.iter().flatten().map(|record| u64::from(record.bytes)).sum();
        let bytes: u64 = rows.iter().map(|row| row.length_bytes as u64).sum();
        assert!(bytes <= events, "{bytes} bytes in rows of {events} in events");
    }
});
