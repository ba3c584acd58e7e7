//! What processes have in their memory by mmap(2): that lasts beyond the close of the descriptor that it was made by.

use crate::guard::openers::{what_is_open, FileId, Opened};
use crate::sysfs::DeviceNumber;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// How long the kernel may take to tell of one process.
pub(super) const MAPPED_LIMIT: Duration = Duration::from_secs(10);

/// What each of these processes has mapped, and whether it can write to it by that. Where one is not told of within the limit, it is named,
/// and those after it are left out: older kernels wait for a process that is changing its memory, and that may wait for a dead network server.
pub(super) fn mapped_by(
    proc_root: &Path,
    pids: Vec<u32>,
    limit: Duration,
) -> (Vec<(u32, Opened, bool)>, Option<u32>) {
    let (tell, told) = mpsc::channel();
    let (folder, asked) = (proc_root.to_path_buf(), pids.clone());
    let look = move || {
        let mut files = MappedFiles::default();
        for pid in asked {
            if tell.send(files.of_process(&folder.join(pid.to_string()))).is_err() {
                break;
            }
        }
    };
    // Nobody waits for its end: it may be held up until the process is gone.
    if thread::Builder::new().name("mapped".into()).spawn(look.clone()).is_err() {
        // A host that is short of threads is waited for.
        look();
    }
    let mut found = Vec::new();
    for pid in pids {
        match told.recv_timeout(limit) {
            Ok(mapped) => found.extend(mapped.into_iter().map(|(opened, writable)| (pid, opened, writable))),
            Err(_) => return (found, Some(pid)),
        }
    }
    (found, None)
}

/// A line of `/proc/PID/maps` that is of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Mapping<'a> {
    start: u64,
    end: u64,
    /// Whether what is written to the memory goes to the file.
    is_shared: bool,
    is_writable: bool,
    /// As the kernel has it: of a device it is that of the node.
    file: FileId,
    /// What tells the file from every other: its number alone does not, where file systems have parts that count for themselves.
    name: &'a str,
}

/// The files that processes have mapped, each looked at once however many have it: most are programs and libraries.
#[derive(Debug, Default)]
struct MappedFiles {
    known: HashMap<String, Option<Opened>>,
}

impl MappedFiles {
    /// What a process has mapped, and whether it can write to it by that.
    fn of_process(&mut self, folder: &Path) -> Vec<(Opened, bool)> {
        let text = fs::read(folder.join("maps")).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let mut found: Vec<(Opened, bool)> = Vec::new();
        for mapping in text.lines().filter_map(mapping_of) {
            let link = folder.join("map_files").join(format!("{:x}-{:x}", mapping.start, mapping.end));
            let known = self.known.get(mapping.name).copied();
            let opened = known.unwrap_or_else(|| {
                let opened = what_is_open(&link);
                // A mapping that ended meanwhile, or that only root may look through, says nothing of those of others.
                if opened.is_some() {
                    self.known.insert(mapping.name.to_string(), opened);
                }
                opened
            });
            // Without the right to look through it there is still its number, which tells files and not devices.
            let opened = opened.unwrap_or(Opened::File(mapping.file));
            let writable = mapping.is_shared && (mapping.is_writable || may_become_writable(&link));
            match found.iter_mut().find(|(other, _)| *other == opened) {
                Some((_, other)) => *other |= writable,
                None => found.push((opened, writable)),
            }
        }
        found
    }
}

/// Whether the file was opened for writing, so that the process may make the memory writable whenever it likes: the link's own mode says so.
fn may_become_writable(link: &Path) -> bool {
    fs::symlink_metadata(link).is_ok_and(|metadata| metadata.permissions().mode() & 0o200 != 0)
}

/// Reads a line: addresses, permissions, offset, the file system's number, the file's, and its path; `None` of one without a file.
fn mapping_of(line: &str) -> Option<Mapping<'_>> {
    let (addresses, rest) = line.split_once(' ')?;
    let (permissions, rest) = rest.split_once(' ')?;
    let (_offset, name) = rest.split_once(' ')?;
    let mut words = name.split_ascii_whitespace();
    let (device, inode) = (words.next()?, words.next()?);
    let (start, end) = addresses.split_once('-')?;
    let (major, minor) = device.split_once(':')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let device = DeviceNumber {
        major: u32::from_str_radix(major, 16).ok()?,
        minor: u32::from_str_radix(minor, 16).ok()?,
    };
    let inode = inode.parse().ok().filter(|inode| *inode != 0)?;
    let is = |index, letter| permissions.as_bytes().get(index) == Some(&letter);
    Some(Mapping {
        start: hex(start)?,
        end: hex(end)?,
        is_shared: is(3, b's'),
        is_writable: is(1, b'w'),
        file: FileId { device, inode },
        name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_line_says_which_file_is_mapped_and_how() {
        let line = "7f12a000-7f22a000 r--s 00001000 103:02 8193                       /srv/a b (deleted)";
        let file = FileId { device: DeviceNumber { major: 0x103, minor: 2 }, inode: 8193 };
        let mapping = mapping_of(line).unwrap();
        assert_eq!((mapping.start, mapping.end, mapping.file), (0x7f12_a000, 0x7f22_a000, file));
        assert!(mapping.is_shared && !mapping.is_writable);
        let private = mapping_of("00400000-00401000 rw-p 00000000 00:05 12 /dev/sda").unwrap();
        assert!(!private.is_shared && private.is_writable);
        for none in
            ["7ffd1000-7ffd2000 rw-p 00000000 00:00 0          [stack]", "", "7f12a000", "x-y r--s 0 0:0 1 /"]
        {
            assert_eq!(mapping_of(none), None, "{none}");
        }
    }

    /// What a process is found to have that has these lines, each of which leads there.
    fn found(lines: &[(&str, &str)]) -> Vec<(Opened, bool)> {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("map_files")).unwrap();
        let text: Vec<&str> = lines.iter().map(|(line, _)| *line).collect();
        fs::write(folder.path().join("maps"), text.join("\n")).unwrap();
        for (line, to) in lines {
            let mapping = mapping_of(line).unwrap();
            let name = format!("{:x}-{:x}", mapping.start, mapping.end);
            symlink(to, folder.path().join("map_files").join(name)).unwrap();
        }
        MappedFiles::default().of_process(folder.path())
    }

    #[test]
    fn a_device_is_told_by_what_the_mapping_leads_to() {
        let null = Opened::Character(DeviceNumber { major: 1, minor: 3 });
        let shared = "7f000000-7f001000 rw-s 00000000 00:05 4 /dev/null";
        let private = "00400000-00401000 rw-p 00000000 00:05 4 /dev/null";
        assert_eq!(found(&[(private, "/dev/null"), (shared, "/dev/null")]), [(null, true)]);
        assert_eq!(found(&[(private, "/dev/null")]), [(null, false)]);
    }

    #[test]
    fn a_process_that_the_kernel_does_not_tell_of_is_named_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        for pid in ["7", "8", "9"] {
            fs::create_dir(folder.path().join(pid)).unwrap();
        }
        let line = "7f000000-7f001000 rw-s 00000000 08:01 77 /srv/a";
        fs::write(folder.path().join("7/maps"), line).unwrap();
        // Nobody ever writes to the pipe: who opens it waits.
        let pipe = std::ffi::CString::new(folder.path().join("8/maps").to_str().unwrap()).unwrap();
        // SAFETY: the path ends with a zero byte.
        assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
        let (found, silent) = mapped_by(folder.path(), vec![7, 8, 9], Duration::from_secs(2));
        let file = FileId { device: DeviceNumber { major: 8, minor: 1 }, inode: 77 };
        assert_eq!((found, silent), (vec![(7, Opened::File(file), true)], Some(8)));
        assert_eq!(mapped_by(folder.path(), vec![9], MAPPED_LIMIT), (Vec::new(), None));
    }

    #[test]
    fn a_file_that_may_not_be_looked_through_is_told_by_its_number() {
        let line = "7f000000-7f001000 rw-s 00000000 08:01 77 /srv/a";
        let file = FileId { device: DeviceNumber { major: 8, minor: 1 }, inode: 77 };
        assert_eq!(found(&[(line, "/nowhere")]), [(Opened::File(file), true)]);
    }
}
