//! The note on the disk of this boot that says what to put back when a run with a function is over. It is locked for as long as the run
//! or its guardian lives.

use crate::pci::{PciFunction, VFIO_DRIVER};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use testdrive_guardian::Step;

/// What is put back: the driver, and what `driver_override` said before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) driver: String,
    pub(crate) driver_override: Option<String>,
}

impl Before {
    pub(crate) fn steps(&self, function: &PciFunction) -> Vec<Step> {
        let directory = function.directory();
        let override_text = format!("{}\n", self.driver_override.as_deref().unwrap_or(""));
        let bdf = function.bdf.to_string();
        vec![
            Step::Write { path: directory.join("driver_override"), text: override_text },
            Step::Write { path: function.unbind_file(VFIO_DRIVER), text: bdf.clone() },
            Step::Write { path: function.probe_file(), text: bdf },
        ]
    }

    fn note(&self) -> String {
        let kept = self.driver_override.as_deref().unwrap_or("");
        format!("pid {}\ndriver {}\ndriver_override {kept}\n", std::process::id(), self.driver)
    }
}

/// A note that is locked.
pub(crate) struct Note {
    pub(crate) file: File,
    pub(crate) path: PathBuf,
}

impl Note {
    pub(crate) fn path_of(function: &PciFunction) -> PathBuf {
        function.roots().notes.join(format!("pci-{}", function.bdf))
    }

    /// Opens the note, makes it where there is none, and locks it; `None` where somebody has the lock.
    pub(crate) fn lock(function: &PciFunction) -> io::Result<Option<Note>> {
        let path = Note::path_of(function);
        fs::create_dir_all(&function.roots().notes)?;
        loop {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(libc::O_NOFOLLOW).open(&path)?;
            // SAFETY: flock takes a descriptor, which is open, and an integer.
            if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } != 0 {
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
            }
            // Whoever had it before us may have removed it in between.
            let is_same = fs::metadata(&path).is_ok_and(|there| {
                file.metadata().is_ok_and(|ours| (there.dev(), there.ino()) == (ours.dev(), ours.ino()))
            });
            if is_same {
                return Ok(Some(Note { file, path }));
            }
        }
    }

    pub(crate) fn read(&mut self) -> io::Result<Option<Before>> {
        let mut text = String::new();
        self.file.read_to_string(&mut text)?;
        let value = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)).map(|rest| rest.trim().to_string())
        };
        Ok(value("driver ").map(|driver| Before {
            driver,
            driver_override: value("driver_override").filter(|text| !text.is_empty()),
        }))
    }

    pub(crate) fn write(&mut self, before: &Before) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.write_all(before.note().as_bytes())?;
        self.file.sync_all()
    }

    pub(crate) fn remove(self) {
        // An empty note that cannot be removed says nothing to anybody.
        let _ = self.file.set_len(0);
        let _ = fs::remove_file(&self.path);
    }
}
