//! Any bytes as the file, or files, of one format, which `TESTDRIVE_FUZZ_FORMAT` names.
//!
//! With `TESTDRIVE_FUZZ_SEEDS` it writes the seeds of all formats into that folder instead, and ends.
//!
//! The first byte of the input chooses the options, the second the number of files that the rest is cut into.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use testdrive_fuzz::{check, files, options, seeds};
use testdrive_traces::{by_name, Format};

static FORMAT: OnceLock<&'static dyn Format> = OnceLock::new();

fn format() -> &'static dyn Format {
    *FORMAT.get_or_init(|| {
        let name = std::env::var("TESTDRIVE_FUZZ_FORMAT").expect("TESTDRIVE_FUZZ_FORMAT names a format");
        by_name(&name).unwrap_or_else(|error| panic!("{error}"))
    })
}

fn write_seeds() {
    if let Some(folder) = std::env::var_os("TESTDRIVE_FUZZ_SEEDS") {
        seeds::write(folder.as_ref()).unwrap_or_else(|error| panic!("cannot write seeds: {error}"));
        std::process::exit(0);
    }
}

fuzz_target!(init: write_seeds(), |input: &[u8]| {
    let [choice, parts, content @ ..] = input else { return };
    let format = format();
    let options = options::options(format, *choice);
    let count = usize::from(parts % 3) + 1;
    let length = content.len().div_ceil(count).max(1);
    let parts: Vec<&[u8]> = (0..count)
        .map(|part| &content[(part * length).min(content.len())..((part + 1) * length).min(content.len())])
        .collect();
    let paths = files::write(|index| files::name(format.name(), index), &parts);
    let first = check::decoded(format, &paths, &options);
    // Files are read by several threads, which must not show.
    if choice & 0x80 != 0 {
        let second = check::decoded(format, &paths, &options);
        assert_eq!(first.ok(), second.ok(), "decoding the same files again gives something else");
    }
});
