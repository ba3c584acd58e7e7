//! Files to decode: what the fuzzer made, under names that the formats give theirs.

use std::path::PathBuf;
use std::sync::OnceLock;

static FOLDER: OnceLock<PathBuf> = OnceLock::new();

/// The folder of this process, in the system's folder for temporary files.
fn folder() -> &'static PathBuf {
    FOLDER.get_or_init(|| std::env::temp_dir().join(format!("testdrive-fuzz-{}", std::process::id())))
}

/// Writes files that stand alone in a folder, and gives their paths.
///
/// Formats look for files beside the one that they are given: a number of files has a folder of its own, so that none of those of
/// the input before is found there.
pub fn write(name_of: impl Fn(usize) -> String, contents: &[&[u8]]) -> Vec<PathBuf> {
    let folder = folder().join(contents.len().to_string());
    std::fs::create_dir_all(&folder).expect("the folder for temporary files can be written");
    let paths: Vec<PathBuf> = (0..contents.len()).map(|index| folder.join(name_of(index))).collect();
    for (path, content) in paths.iter().zip(contents) {
        std::fs::write(path, content).expect("the folder for temporary files can be written");
    }
    paths
}

/// A name as the tool that writes the format gives it.
pub fn name(format: &str, index: usize) -> String {
    match format {
        "blktrace" => format!("sda.blktrace.{index}"),
        "octf" => format!("octf.trace.{index}"),
        "csv" => format!("trace{index}.csv"),
        _ => format!("trace{index}.txt"),
    }
}
