//! How `manifest.json` is read, and how it is replaced so that a crash or a full disk leaves one that is whole.

use crate::error::RecordingError;
use crate::manifest::{Manifest, Status, FORMAT, VERSION};
use crate::opening::open_file;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;

pub(crate) const FILE_NAME: &str = "manifest.json";
/// Size of the manifest of a recording in progress: a full disk must not keep the last one from being written.
const RUNNING_BYTES: usize = 64 << 10;

impl Manifest {
    /// Reads and checks `manifest.json` of a recording's directory.
    pub(crate) fn read(directory: &Path) -> Result<Manifest, RecordingError> {
        let not_a_recording = |reason: &str| RecordingError::NotARecording {
            path: directory.to_path_buf(),
            reason: reason.into(),
        };
        if !directory.is_dir() {
            let reason = if directory.exists() {
                "it is a file, not a directory"
            } else {
                "there is no such directory"
            };
            return Err(not_a_recording(reason));
        }
        let path = directory.join(FILE_NAME);
        if !path.exists() {
            return Err(not_a_recording("it holds no manifest.json"));
        }
        let text = match std::io::read_to_string(open_file(&path)?) {
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                return Err(RecordingError::damaged(&path, "it is not text"));
            }
            text => text.map_err(RecordingError::io("read", &path))?,
        };
        let value: Value =
            serde_json::from_str(&text).map_err(|error| RecordingError::damaged(&path, error))?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(not_a_recording("its manifest.json is of another program"));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(version) if version > VERSION => {
                return Err(RecordingError::Newer {
                    path: directory.to_path_buf(),
                    version,
                    supported: VERSION,
                });
            }
            Some(_) => {}
            None => return Err(RecordingError::damaged(&path, "it has no version")),
        }
        serde_json::from_value(value).map_err(|error| RecordingError::damaged(&path, error))
    }

    /// The text, with white space up to a size that later versions of it fit in while the recording is written.
    fn padded_text(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("a manifest has only string keys");
        text.push(b'\n');
        if self.status == Status::Running && text.len() < RUNNING_BYTES {
            text.resize(RUNNING_BYTES - 1, b' ');
            text.push(b'\n');
        }
        text
    }

    /// Writes `manifest.json` so that a reader sees either the old or the new one, whatever happens meanwhile.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn write(&self, directory: &Path) -> Result<(), RecordingError> {
        let path = directory.join(FILE_NAME);
        let temporary = directory.join("manifest.json.new");
        let text = self.padded_text();
        let written = fs::File::create(&temporary).and_then(|mut file| {
            file.write_all(&text)?;
            file.sync_all()
        });
        match written {
            Err(error) if matches!(error.raw_os_error(), Some(libc::ENOSPC | libc::EDQUOT)) => {
                // The blocks of the old manifest are still there. Written over in place it is not safe against a crash at this very
                // moment, but the alternative is a manifest that is wrong for certain.
                let _ = fs::remove_file(&temporary);
                return overwrite(&path, &text).map_err(RecordingError::io("write", &path));
            }
            result => result.map_err(RecordingError::io("write", &temporary))?,
        }
        fs::rename(&temporary, &path).map_err(RecordingError::io("replace", &path))?;
        sync_folder(directory)
    }
}

/// Makes the names in a folder durable.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), RecordingError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let synced = fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(RecordingError::io("sync", folder))
}

/// Writes over a file, with white space up to the length that it had: whatever is cut off of this, no letter of what was there before
/// stands behind it.
fn overwrite(path: &Path, text: &[u8]) -> std::io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
    let mut text = text.to_vec();
    text.resize(text.len().max(length), b' ');
    file.write_all(&text)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RecordingKind;

    #[test]
    fn a_manifest_that_is_written_over_leaves_nothing_of_a_longer_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE_NAME);
        let mut manifest = Manifest::new(RecordingKind::Run, "tsc");
        manifest.status_reason = Some("long ".repeat(50_000));
        manifest.write(folder.path()).unwrap();
        let before = fs::metadata(&path).unwrap().len();
        manifest.status = Status::Failed;
        manifest.status_reason = None;
        overwrite(&path, &manifest.padded_text()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), before);
        assert_eq!(Manifest::read(folder.path()).unwrap(), manifest);
    }
}
