//! A modelled drive's state in a file: whole, of this version and of this drive, or refused.
//!
//! The file is a line that says what it is and which version, and then the drive's bytes in one zstd frame with its checksum.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use testdrive_simulator::{Model, SimulatedDrive, StateError, STATE_VERSION};

/// How the first line begins; the version follows.
const MAGIC: &str = "testdrive-drive-state ";
/// Longer first lines are of other programs.
const FIRST_LINE_BYTES_MAX: u64 = 64;
/// Mappings compress little, and fast is what matters.
const COMPRESSION_LEVEL: i32 = 1;

/// Why a state could not be saved or restored: what failed, and what to do.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SimStateError(String);

/// Looks whether a state could be saved there, before a run that would end with it.
///
/// # Errors
/// When something is there already, or no directory to put it in.
pub fn check_state_path(path: &Path) -> Result<(), SimStateError> {
    if path.symlink_metadata().is_ok() {
        let text =
            format!("{} exists already: give another file for the state, or remove it", path.display());
        return Err(SimStateError(text));
    }
    let directory = directory_of(path);
    if !directory.is_dir() {
        let text = format!("{} is no directory to save a state in: make it first", directory.display());
        return Err(SimStateError(text));
    }
    Ok(())
}

/// Saves a drive as it is at a time. The file is there once it is whole.
///
/// # Errors
/// When the system refuses, or commands are in flight.
pub fn save_state(drive: &SimulatedDrive, now_ns: i64, path: &Path) -> Result<(), SimStateError> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let saved = write(drive, now_ns, &temporary).and_then(|()| {
        fs::rename(&temporary, path)?;
        File::open(directory_of(path))?.sync_all()
    });
    saved.map_err(|error| {
        let _ = fs::remove_file(&temporary);
        SimStateError(format!("the drive's state could not be saved in {}: {error}", path.display()))
    })
}

fn write(drive: &SimulatedDrive, now_ns: i64, path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(OpenOptions::new().write(true).create_new(true).open(path)?);
    writeln!(file, "{MAGIC}{STATE_VERSION}")?;
    let mut encoder = zstd::Encoder::new(file, COMPRESSION_LEVEL)?;
    encoder.include_checksum(true)?;
    drive.save(now_ns, &mut encoder).map_err(std::io::Error::other)?;
    let file = encoder.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    file.sync_all()
}

/// Restores a drive of this model, and the time at which it was saved.
///
/// # Errors
/// When the file cannot be read, is no state, is damaged, or is of another version or another drive.
pub fn restore_state(model: &Model, path: &Path) -> Result<(SimulatedDrive, i64), SimStateError> {
    let shown = path.display();
    let failed = |what: String| SimStateError(format!("the state {shown} {what}"));
    let file = File::open(path).map_err(|error| failed(format!("cannot be read: {error}")))?;
    let mut file = BufReader::new(file);
    let version =
        first_line(&mut file).and_then(|line| line.strip_prefix(MAGIC)?.trim_end().parse::<u32>().ok());
    match version {
        None => {
            let text = "is no saved state of a modelled drive: give a file that --save-state made";
            return Err(failed(text.into()));
        }
        Some(STATE_VERSION) => {}
        Some(version) => {
            let text = format!(
                "has version {version}, and this engine has version {STATE_VERSION}: prepare the drive and save it again"
            );
            return Err(failed(text));
        }
    }
    let decoder =
        zstd::Decoder::with_buffer(file).map_err(|error| failed(format!("cannot be read: {error}")))?;
    SimulatedDrive::restore(model, decoder).map_err(|error| {
        failed(match error {
            StateError::OtherDrive(difference) => {
                format!("cannot be used: {difference}; name the drive as it was when its state was saved")
            }
            other => format!("cannot be used: {other}; prepare the drive and save it again"),
        })
    })
}

fn first_line(file: &mut impl BufRead) -> Option<String> {
    let mut line = Vec::new();
    file.take(FIRST_LINE_BYTES_MAX).read_until(b'\n', &mut line).ok()?;
    String::from_utf8(line).ok()
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
