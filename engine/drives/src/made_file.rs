//! A file that was made to stand in for a drive, until a run makes use of it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Removes the file again when it is dropped, unless it is kept: a job that is refused after its drive was opened leaves nothing
/// behind.
#[derive(Debug)]
pub struct MadeFile {
    path: PathBuf,
    /// Its file system and its number there: by then the name may be another file's.
    id: Option<(u64, u64)>,
}

impl MadeFile {
    /// Watches over a file that was made a moment ago.
    ///
    /// # Errors
    /// When the system does not tell which file it is.
    pub(crate) fn new(path: &Path, file: &File) -> io::Result<MadeFile> {
        // The working directory may be another one later.
        let path = std::path::absolute(path)?;
        let metadata = file.metadata()?;
        Ok(MadeFile { path, id: Some((metadata.dev(), metadata.ino())) })
    }

    /// Leaves the file where it is: from now on it holds what a run wrote.
    pub fn keep(mut self) {
        self.id = None;
    }
}

impl Drop for MadeFile {
    fn drop(&mut self) {
        let Some(id) = self.id else { return };
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| (found.dev(), found.ino()) == id) {
            // Best effort: what remains is an empty file.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_goes_unless_it_is_kept_or_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drive.img");
        let make = || MadeFile::new(&path, &File::create(&path).unwrap()).unwrap();
        drop(make());
        assert!(!path.exists());
        make().keep();
        assert!(path.exists());
        let made = make();
        fs::rename(&path, folder.path().join("moved.img")).unwrap();
        fs::write(&path, "another").unwrap();
        drop(made);
        assert_eq!(fs::read_to_string(&path).unwrap(), "another");
    }
}
