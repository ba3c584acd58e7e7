//! Which files belong to one trace of which there is one for each CPU, or each queue.

use crate::format::Decoded;
use crate::input::size_bytes;
use crate::TraceError;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// How far beneath a folder that was named its files may be.
const FOLDERS_DEEP: usize = 2;
/// A folder with more beneath it is not one of traces.
const FOLDERS_MAX: usize = 1000;
/// How many folders a message names.
const FOLDERS_NAMED: usize = 8;

/// How the files of a trace are named: `sda.blktrace.3`, of which `.blktrace.` is the infix.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NumberedFiles {
    /// Between name and number.
    pub infix: &'static str,
    /// The only name that there is, where the tool has but one.
    pub name: Option<&'static str>,
    /// As messages show it.
    pub pattern: &'static str,
    /// What the numbers are of, as in `CPUs`.
    pub numbers: &'static str,
    /// The warning about numbers that are left out.
    pub missing_code: &'static str,
}

/// `sda` and 3 of `sda.blktrace.3`, with the folder before it.
type Name = (PathBuf, u32);

impl NumberedFiles {
    /// The files of the trace, in the order of names and numbers. A folder stands for all files in it, one file for all of its name.
    ///
    /// # Errors
    /// When a folder holds none, when all are empty, or when the system refuses.
    pub fn of_trace(&self, inputs: &[PathBuf], decoded: &mut Decoded) -> Result<Vec<PathBuf>, TraceError> {
        let mut files = Vec::new();
        for input in inputs {
            if input.is_dir() {
                files.extend(self.in_folder_or_beneath(input)?);
            } else {
                files.push(input.clone());
            }
        }
        if let ([one], [input]) = (&files[..], inputs) {
            if let (false, Some((name, _))) = (input.is_dir(), self.name_of(one)) {
                let siblings = self.siblings(one, &name)?;
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
        files.sort_by_key(|path| (self.name_of(path), path.clone()));
        files.dedup();
        self.warn_of_gaps(&files, decoded);
        let sizes: Result<Vec<u64>, TraceError> = files.iter().map(|path| size_bytes(path)).collect();
        match files.first() {
            Some(first) if sizes?.iter().all(|&size| size == 0) => {
                Err(TraceError::Empty { path: first.clone() })
            }
            Some(_) => Ok(files),
            None => Err(TraceError::Usage("no trace was named: give its file or files".into())),
        }
    }

    /// Whether a folder holds traces of files that are named so, itself or beneath.
    pub fn are_in(&self, folder: &Path) -> bool {
        !self.folders_beneath(folder).is_empty()
    }

    /// The number of a file.
    pub fn number_of(&self, path: &Path) -> Option<u32> {
        self.name_of(path).map(|(_, number)| number)
    }

    fn name_of(&self, path: &Path) -> Option<Name> {
        let (stem, number) = path.file_name()?.to_str()?.rsplit_once(self.infix)?;
        self.name.is_none_or(|name| name == stem).then_some(())?;
        Some((path.with_file_name(stem), number.parse().ok()?))
    }

    fn in_folder(&self, folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
        let entries = std::fs::read_dir(folder).map_err(TraceError::io("list", folder))?;
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(TraceError::io("list", folder))?.path();
            if self.name_of(&path).is_some() && path.is_file() {
                found.push(path);
            }
        }
        Ok(found)
    }

    /// The files in a folder; where it holds none itself, those in the one folder beneath it that does.
    fn in_folder_or_beneath(&self, folder: &Path) -> Result<Vec<PathBuf>, TraceError> {
        let folders = self.folders_beneath(folder);
        let message = match &folders[..] {
            [one] => return self.in_folder(one),
            [] => {
                format!("{} holds no {} file: give the trace's files by name", folder.display(), self.pattern)
            }
            several => {
                let names: Vec<String> =
                    several.iter().take(FOLDERS_NAMED).map(|path| path.display().to_string()).collect();
                format!(
                    "{} holds {} traces, in {}: import them one at a time",
                    folder.display(),
                    several.len(),
                    names.join(", ")
                )
            }
        };
        Err(TraceError::Usage(message))
    }

    /// The folder itself where it holds such files, else those beneath it that do: tools put a trace into a folder of its day.
    fn folders_beneath(&self, folder: &Path) -> Vec<PathBuf> {
        let (mut found, mut level, mut looked_at) = (Vec::new(), vec![folder.to_path_buf()], 0);
        for _ in 0..=FOLDERS_DEEP {
            let mut next = Vec::new();
            for folder in level {
                looked_at += 1;
                if looked_at > FOLDERS_MAX {
                    return found;
                }
                // A folder that may not be read is as good as none; the folder that was named is read again, and then is an error.
                if self.in_folder(&folder).is_ok_and(|files| !files.is_empty()) {
                    found.push(folder);
                } else if let Ok(entries) = std::fs::read_dir(&folder) {
                    let folders =
                        entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                    next.extend(folders.map(|entry| entry.path()));
                }
            }
            if !found.is_empty() {
                break;
            }
            level = next;
        }
        found.sort();
        found
    }

    fn siblings(&self, path: &Path, name: &Path) -> Result<Vec<PathBuf>, TraceError> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let same = |other: &PathBuf| {
            self.name_of(other).is_some_and(|(other, _)| other.file_name() == name.file_name())
        };
        Ok(self.in_folder(folder)?.into_iter().filter(same).collect())
    }

    /// The tools leave a file for every number, empty or not: one that is left out was lost.
    fn warn_of_gaps(&self, files: &[PathBuf], decoded: &mut Decoded) {
        let mut numbers: BTreeMap<PathBuf, BTreeSet<u32>> = BTreeMap::new();
        for (name, number) in files.iter().filter_map(|path| self.name_of(path)) {
            numbers.entry(name).or_default().insert(number);
        }
        for (name, numbers) in numbers {
            let last = numbers.last().copied().unwrap_or(0);
            let missing: Vec<String> = (0..last)
                .filter(|number| !numbers.contains(number))
                .take(16)
                .map(|number| number.to_string())
                .collect();
            if !missing.is_empty() {
                let message = format!(
                    "files of {}{} are missing for {} {}: their events, many completions among them, are not seen",
                    name.display(),
                    self.infix.trim_end_matches('.'),
                    self.numbers,
                    missing.join(", ")
                );
                decoded.warn(
                    self.missing_code,
                    message,
                    "put the missing files beside the others and import again",
                );
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUS: NumberedFiles = crate::blktrace::FILES;

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
        let files = CPUS.of_trace(&paths[1..2], &mut decoded).unwrap();
        assert_eq!(files, paths[..3]);
        assert!(decoded.notes[0].contains("2 more files"), "{:?}", decoded.notes);
        assert!(decoded.warnings[0].message.contains("CPUs 2, 3, 4"), "{:?}", decoded.warnings);
    }

    #[test]
    fn files_named_one_by_one_are_taken_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let paths = touch(folder.path(), &["sda.blktrace.0", "sda.blktrace.1", "sda.blktrace.2"]);
        let mut decoded = Decoded::default();
        assert_eq!(CPUS.of_trace(&paths[..2], &mut decoded).unwrap(), paths[..2]);
        assert_eq!((decoded.notes.len(), decoded.warnings.len()), (0, 0));
    }

    #[test]
    fn a_folder_stands_for_its_traces_and_an_empty_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let input = [folder.path().to_path_buf()];
        let message = CPUS.of_trace(&input, &mut Decoded::default()).err().unwrap().to_string();
        assert!(message.contains("no NAME.blktrace.CPU file"), "{message}");
        let paths = touch(folder.path(), &["a.blktrace.0", "a.blktrace.1", "b"]);
        assert_eq!(CPUS.of_trace(&input, &mut Decoded::default()).unwrap(), paths[..2]);
    }

    #[test]
    fn only_files_of_the_one_name_that_there_is_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let queues = NumberedFiles { infix: ".trace.", name: Some("octf"), ..CPUS };
        let paths = touch(folder.path(), &["octf.trace.0", "octf.trace.11", "my.trace.1", "octf.trace.x"]);
        let files = queues.of_trace(&[folder.path().to_path_buf()], &mut Decoded::default()).unwrap();
        assert_eq!(files, paths[..2]);
        assert_eq!((queues.number_of(&paths[1]), queues.number_of(&paths[2])), (Some(11), None));
        assert!(queues.are_in(folder.path()) && !CPUS.are_in(folder.path()));
    }

    #[test]
    fn the_one_folder_beneath_that_holds_a_trace_is_found_and_several_are_asked_about() {
        let folder = tempfile::tempdir().unwrap();
        let input = [folder.path().to_path_buf()];
        let (first, second) = (folder.path().join("kernel/monday"), folder.path().join("kernel/tuesday"));
        std::fs::create_dir_all(&first).unwrap();
        std::fs::create_dir_all(&second).unwrap();
        assert!(!CPUS.are_in(folder.path()));
        let paths = touch(&first, &["sda.blktrace.0", "sda.blktrace.1"]);
        assert!(CPUS.are_in(folder.path()));
        assert_eq!(CPUS.of_trace(&input, &mut Decoded::default()).unwrap(), paths);
        touch(&second, &["sda.blktrace.0"]);
        let message = CPUS.of_trace(&input, &mut Decoded::default()).err().unwrap().to_string();
        assert!(
            message.contains("2 traces") && message.contains("monday") && message.contains("one at a time"),
            "{message}"
        );
        // Much deeper, nothing is looked for.
        let (above, deep) = (folder.path().join("a"), folder.path().join("a/b/c/d"));
        std::fs::create_dir_all(&deep).unwrap();
        touch(&deep, &["sda.blktrace.0"]);
        assert!(!CPUS.are_in(&above));
    }

    #[test]
    fn files_that_are_all_empty_are_an_empty_trace() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sda.blktrace.0");
        std::fs::write(&path, "").unwrap();
        let result = CPUS.of_trace(&[path], &mut Decoded::default());
        assert!(matches!(result, Err(TraceError::Empty { .. })));
    }
}
