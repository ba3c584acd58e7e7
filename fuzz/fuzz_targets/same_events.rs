//! The same events as binary blktrace, as blkparse prints them and as the kernel prints them are the same I/Os.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testdrive_fuzz::numbers::Numbers;
use testdrive_fuzz::{check, events, files, options};
use testdrive_traces::by_name;

fuzz_target!(|input: &[u8]| {
    let mut numbers = Numbers(input);
    let (choice, big_endian) = (numbers.byte(), numbers.below(2) == 1);
    let events = events::events(&mut numbers);
    if events.is_empty() {
        return;
    }
    let texts = [
        ("blktrace", events::binary(&events, big_endian)),
        ("blkparse", events::blkparse(&events).into_bytes()),
        ("trace-event", events::trace_events(&events).into_bytes()),
    ];
    let [binary, blkparse, kernel] = texts.map(|(name, text)| {
        let format = by_name(name).expect("it is a format");
        let paths = files::write(|index| files::name(name, index), &[&text]);
        check::decoded(format, &paths, &options::options(format, choice)).ok()
    });
    for (name, other) in [("blkparse", blkparse), ("trace-event", kernel)] {
        match (&binary, &other) {
            (Some((rows, decoded)), Some((other_rows, other_decoded))) => {
                assert_eq!(rows, other_rows, "{name}");
                assert_eq!(decoded.shift_ns, other_decoded.shift_ns, "{name}");
                assert_eq!(decoded.absent_columns, other_decoded.absent_columns, "{name}");
                assert_eq!(decoded.dropped, other_decoded.dropped, "{name}");
            }
            (None, None) => {}
            _ => panic!("{name} is {}, and binary is not", if other.is_some() { "read" } else { "refused" }),
        }
    }
});
