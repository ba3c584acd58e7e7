//! Whether all that was recorded is still there: a segment that is gone must not make a shorter recording that looks whole.

use crate::error::RecordingError;
use crate::interval_segment;
use crate::manifest::{Status, Warning};
use crate::reader::{Recording, IOS_FOLDER, SLOWEST_FOLDER};
use std::fs;
use std::path::Path;

/// Behind the name of a segment that somebody decided to do without.
const LEFT_OUT: &str = ".parquet.damaged";

/// Refuses a recording whose segments hold other than its manifest counts, and warns of one some of whose segments are left out.
pub(crate) fn check(recording: &mut Recording, rows: u64) -> Result<(), RecordingError> {
    let directory = recording.directory().to_path_buf();
    let names = names_of(&directory);
    let left_out: Vec<&String> = names.iter().filter(|name| name.ends_with(LEFT_OUT)).collect();
    let counted = recording.manifest.counts.ios;
    if !left_out.is_empty() {
        recording.manifest.warnings.retain(|warning| warning.code != "segments_left_out");
        recording.manifest.warnings.push(Warning::new(
            "segments_left_out",
            format!("what was recorded in {} is left out: it is damaged or gone", listed(&left_out)),
            "restore it from a copy; without it, times and counts are of the rest only",
        ));
        return Ok(());
    }
    // What a failed disk left of a segment may hold the rest, and a writer at work has counted nothing yet.
    let unsettled = recording.manifest.status == Status::Running
        || recording.manifest.kept.is_some()
        || names.iter().any(|name| name.ends_with(".open"));
    if unsettled || rows == counted {
        return Ok(());
    }
    let remedy = if rows < counted {
        let missing = format!("{IOS_FOLDER}/{}", missing(&names));
        format!(
            "{missing} is missing: restore it from a copy, or make an empty file {missing}.damaged to do without its I/Os"
        )
    } else {
        "move segments away that are not its own, or restore manifest.json from a copy".into()
    };
    let reason = format!("its segments hold {rows} I/Os, and its manifest counts {counted}");
    Err(RecordingError::Damaged { path: directory, reason, remedy })
}

/// The files with segments, by folder and name, in order.
fn names_of(directory: &Path) -> Vec<String> {
    let mut names = Vec::new();
    for folder in [IOS_FOLDER, SLOWEST_FOLDER, interval_segment::FOLDER] {
        for entry in fs::read_dir(directory.join(folder)).into_iter().flatten().flatten() {
            names.push(format!("{folder}/{}", entry.file_name().display()));
        }
    }
    names.sort();
    names
}

/// The first segment in the order of their numbers that is not there.
fn missing(names: &[String]) -> String {
    let numbered = (0_u32..).map(|number| format!("{number:05}.parquet"));
    let absent = |name: &String| !names.contains(&format!("{IOS_FOLDER}/{name}"));
    numbered.into_iter().find(absent).expect("there are more numbers than segments")
}

fn listed(names: &[&String]) -> String {
    let first: Vec<&str> = names.iter().take(3).map(|name| name.as_str()).collect();
    let more = names.len().saturating_sub(first.len());
    let first = first.join(", ");
    if more == 0 {
        first
    } else {
        format!("{first} and {more} more")
    }
}
