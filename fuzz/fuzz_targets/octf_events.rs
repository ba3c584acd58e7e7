//! Queues of Open CAS telemetry whose messages are whole, with any content.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testdrive_fuzz::numbers::Numbers;
use testdrive_fuzz::{check, files, octf, options};
use testdrive_traces::by_name;

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let format = by_name("octf").expect("it is a format");
    let options = options::options(format, numbers.byte());
    let mut queues: Vec<Vec<u8>> = vec![Vec::new(); usize::from(numbers.below(3)) + 1];
    let (mut sequence, mut time_ns) = (0, 7_000_000_000);
    while numbers.any() {
        let queue = usize::from(numbers.byte()) % queues.len();
        let event = octf::event(&mut numbers, &mut sequence, &mut time_ns);
        queues[queue].extend_from_slice(&event);
    }
    let contents: Vec<&[u8]> = queues.iter().map(Vec::as_slice).collect();
    let paths = files::write(|index| files::name("octf", index), &contents);
    let _ = check::decoded(format, &paths, &options);
});
