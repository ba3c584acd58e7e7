//! Which files belong to one trace: one for each CPU.

use crate::format::Decoded;
use crate::input::size_bytes;
use crate::TraceError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The files of the trace, in the order of names and CPUs. A folder stands for all files in it, one file for all of its name.
pub(super) fn of_trace(inputs: &[PathBuf], decoded: &mut Decoded) -> Result<Vec<PathBuf>, TraceError> {
    let mut files = Vec::new();
    for input in inputs {
        if input.is_dir() {
            let found = in_folder(input)?;
            if found.is_empty() {
                let message = format!(
                    "{} holds no NAME.blktrace.CPU file: give the trace's files by name",
                    input.display()
                );
                return Err(TraceError::Usage(message));
            }
            files.extend(found);
        } else {
            files.push(input.clone());
        }
    }
    if let ([one], [input]) = (&files[..], inputs) {
        if let (false, Some((stem, _))) = (input.is_dir(), stem_and_cpu(one)) {
            let siblings = siblings(one, &stem)?;
            if siblings.len() > 1 {
                decoded.notes.push(format!(
                    "{} was read together with {} more files of the same trace",
                    one.display(),
                    siblings.len() - 1
                ));
                files = siblings;
            }
        }
    }
    files.sort_by_key(|path| (stem_and_cpu(path), path.clone()));
    files.dedup();
    warn_of_gaps(&files, decoded);
    let sizes: Result<Vec<u64>, TraceError> = files.iter().map(|path| size_bytes(path)).collect();
    match files.first() {
        Some(first) if sizes?.iter().all(|&size| size == 0) => Err(TraceError::Empty { path: first.clone() }),
        Some(_) => Ok(files),
        None => Err(TraceError::Usage("no trace was named: give its file or files".into())),
    }
}

/// `sda` and 3 of `sda.blktrace.3`, with the folder before it.
fn stem_and_cpu(path: &Path) -> Option<(PathBuf, u32)> {
    let name = path.file_name()?.to_str()?;
    let (stem, cpu) = name.rsplit_once(".blktrace.")?;
    Some((path.with_file_name(stem), cpu.parse().ok()?))
}

pub(super) fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let entries = std::fs::read_dir(folder).map_err(TraceError::io("list", folder))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(TraceError::io("list", folder))?.path();
        if stem_and_cpu(&path).is_some() && path.is_file() {
            found.push(path);
        }
    }
    Ok(found)
}

fn siblings(path: &Path, stem: &Path) -> Result<Vec<PathBuf>, TraceError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let same = |other: &PathBuf| {
        stem_and_cpu(other).is_some_and(|(other_stem, _)| other_stem.file_name() == stem.file_name())
    };
    Ok(in_folder(folder)?.into_iter().filter(same).collect())
}

/// blktrace leaves a file for every CPU, empty or not: a number that is left out is a file that was lost.
fn warn_of_gaps(files: &[PathBuf], decoded: &mut Decoded) {
    let mut cpus: BTreeMap<PathBuf, BTreeSet<u32>> = BTreeMap::new();
    for (stem, cpu) in files.iter().filter_map(|path| stem_and_cpu(path)) {
        cpus.entry(stem).or_default().insert(cpu);
    }
    for (stem, cpus) in cpus {
        let last = cpus.last().copied().unwrap_or(0);
        let missing: Vec<String> =
            (0..last).filter(|cpu| !cpus.contains(cpu)).take(16).map(|cpu| cpu.to_string()).collect();
        if !missing.is_empty() {
            let message = format!(
                "files of {}.blktrace are missing for CPUs {}: their events, many completions among them, are not seen",
                stem.display(),
                missing.join(", ")
            );
            decoded.warn(
                "cpu_files_missing",
                message,
                "put the missing files beside the others and import again",
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, names: &[&str]) -> Vec<PathBuf> {
        names
            .iter()
            .map(|name| folder.join(name))
            .inspect(|path| std::fs::write(path, "x").unwrap())
            .collect()
    }

    #[test]
    fn one_file_brings_its_siblings_and_only_those() {
        let folder = tempfile::tempdir().unwrap();
        let names = ["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.10", "sdb.blktrace.0", "notes"];
        let paths = touch(folder.path(), &names);
        let mut decoded = Decoded::default();
        let files = of_trace(&paths[1..2], &mut decoded).unwrap();
        assert_eq!(files, paths[..3]);
        assert!(decoded.notes[0].contains("2 more files"), "{:?}", decoded.notes);
        assert!(decoded.warnings[0].message.contains("CPUs 2, 3, 4"), "{:?}", decoded.warnings);
    }

    #[test]
    fn files_named_one_by_one_are_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let paths = touch(folder.path(), &["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.2"]);
        let mut decoded = Decoded::default();
        assert_eq!(of_trace(&paths[..2], &mut decoded).unwrap(), paths[..2]);
        assert_eq!((decoded.notes.len(), decoded.warnings.len()), (0, 0));
    }

    #[test]
    fn a_folder_stands_for_its_traces_and_an_empty_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let input = [folder.path().to_path_buf()];
        let message = of_trace(&input, &mut Decoded::default()).err().unwrap().to_string();
        assert!(message.contains("no NAME.blktrace.CPU file"), "{message}");
        let paths = touch(folder.path(), &["a.blktrace.0", "a.blktrace.1", "b"]);
        assert_eq!(of_trace(&input, &mut Decoded::default()).unwrap(), paths[..2]);
    }

    #[test]
    fn files_that_are_all_empty_are_an_empty_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sda.blktrace.0");
        std::fs::write(&path, "").unwrap();
        let result = of_trace(&[path], &mut Decoded::default());
        assert!(matches!(result, Err(TraceError::Empty { .. })));
    }
}
