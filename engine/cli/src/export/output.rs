//! Where a trace goes: standard output, or a file that has its name only once it is whole.

use super::ExportError;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 20;

/// A trace being written. Dropped without [`Output::finish`] it leaves nothing behind.
pub(super) enum Output {
    /// Standard output.
    Stream(BufWriter<Stdout>),
    /// A file under another name.
    File(Unnamed),
}

/// A file that does not have its name yet.
pub(super) struct Unnamed {
    file: BufWriter<File>,
    path: PathBuf,
    temporary: PathBuf,
}

impl Output {
    /// Begins to write to `path`, which must not exist, or to standard output where it is `-`.
    pub fn create(path: &Path) -> Result<Output, ExportError> {
        if path.as_os_str() == "-" {
            return Ok(Output::Stream(BufWriter::with_capacity(BUFFER_BYTES, io::stdout())));
        }
        if path.symlink_metadata().is_ok() {
            return Err(exists(path));
        }
        let Some(name) = path.file_name() else {
            return Err(ExportError::Usage(format!(
                "{} is no name of a file: give one with -o",
                path.display()
            )));
        };
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.part", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = OpenOptions::new().write(true).create_new(true).open(&temporary).map_err(|error| {
            ExportError::Usage(format!("cannot create {}: {error}; give another output", path.display()))
        })?;
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        Ok(Output::File(Unnamed { file, path: path.to_path_buf(), temporary }))
    }

    /// Writes out what is left, and gives the file its name.
    pub fn finish(self) -> Result<(), ExportError> {
        match self {
            Output::Stream(mut stream) => {
                stream.flush().map_err(|error| ExportError::from(testdrive_traces::EncodeError::from(error)))
            }
            Output::File(mut unnamed) => {
                let synced = unnamed.file.flush().and_then(|()| unnamed.file.get_ref().sync_data());
                synced.and_then(|()| unnamed.name()).map_err(|error| match error.kind() {
                    io::ErrorKind::AlreadyExists => exists(&unnamed.path),
                    _ => ExportError::Disk(format!("cannot write {}: {error}", unnamed.path.display())),
                })
            }
        }
    }
}

impl Unnamed {
    /// Gives the file its name, never that of another that appeared meanwhile.
    fn name(&self) -> io::Result<()> {
        match fs::hard_link(&self.temporary, &self.path) {
            // A file system without hard links: an empty file takes the name first.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::PermissionDenied) =>
            {
                OpenOptions::new().write(true).create_new(true).open(&self.path)?;
                fs::rename(&self.temporary, &self.path)
            }
            result => result,
        }
    }
}

impl Drop for Unnamed {
    fn drop(&mut self) {
        // After `name` the file has two names, or this one is gone.
        let _ = fs::remove_file(&self.temporary);
    }
}

fn exists(path: &Path) -> ExportError {
    ExportError::Usage(format!(
        "{} exists already, and an export overwrites nothing: give another output, or remove it first",
        path.display()
    ))
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Stream(stream) => stream.write(bytes),
            Output::File(unnamed) => unnamed.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Stream(stream) => stream.flush(),
            Output::File(unnamed) => unnamed.file.flush(),
        }
    }
}
