//! Any bytes under any usual name: finding out the format ends with one, or with a message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use testdrive_fuzz::{check, files};
use testdrive_traces::{detect, formats, Confidence, Options};

const NAMES: [&str; 8] = [
    "trace",
    "trace.csv",
    "trace.txt",
    "sda.blktrace.0",
    "octf.trace.0",
    "prod.load",
    "prod.load.gz",
    "trace.bin.zst",
];

fuzz_target!(|input: &[u8]| {
    let [name, content @ ..] = input else { return };
    let name = NAMES[usize::from(*name) % NAMES.len()];
    for format in formats() {
        let _ = (format.detect(content, name), format.reading(content));
    }
    let paths = files::write(|_| name.into(), &[content]);
    match detect(&paths) {
        Ok(format) => {
            // What unpacks a file looks at other bytes than those of the file.
            let packed = content.starts_with(b"\x1f\x8b") || content.starts_with(b"\x28\xb5\x2f\xfd");
            assert!(packed || format.detect(content, name) != Confidence::No, "{}", format.name());
            let _ = check::decoded(format, &paths, &Options::default());
        }
        Err(error) => {
            // Where several formats fit, each has a line that says what it would make of the file.
            let message = error.to_string();
            assert!(message.lines().count() <= 1 + formats().len() && message.len() < 4096, "{message}");
        }
    }
});
