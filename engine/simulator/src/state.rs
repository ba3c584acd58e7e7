//! A drive's whole state as bytes, to go on with later or elsewhere.
//!
//! Every part of the drive derives its encoding, so that none can be forgotten: a part without one does not compile. What the bytes
//! are wrapped in, and whether they are whole, is the caller's business.

use crate::{Model, SimulatedDrive};
use std::io::{BufReader, BufWriter, Read, Write};

/// The version of the encoding: raised when a part of the drive is added, removed or changed.
pub const STATE_VERSION: u32 = 3;

/// Room for the longest text of a model.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Why there is no state to be had.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Commands are still in flight, whose submitter cannot be saved with the drive.
    #[error("{0} commands are in flight: a drive is saved once all have completed")]
    InFlight(usize),
    /// The state could not be written.
    #[error("the state cannot be written: {0}")]
    Write(std::io::Error),
    /// The bytes are no state of this version.
    #[error("the state is damaged or of another version of the drive: {0}")]
    Malformed(String),
    /// It is the state of another drive.
    #[error("{0}")]
    OtherDrive(String),
}

impl SimulatedDrive {
    /// Writes everything that what the drive does from `now_ns` on depends on: a time that is not before its last completion.
    ///
    /// # Errors
    /// While commands are in flight, and when writing fails.
    pub fn save(&self, now_ns: i64, writer: impl Write) -> Result<(), StateError> {
        if self.in_flight() > 0 {
            return Err(StateError::InFlight(self.in_flight()));
        }
        let failed = |error: postcard::Error| StateError::Write(std::io::Error::other(error));
        let mut writer = postcard::to_io(&(now_ns, self), BufWriter::new(writer)).map_err(failed)?;
        writer.flush().map_err(StateError::Write)
    }

    /// The drive that was saved, and when: it goes on from then as if nothing had happened.
    ///
    /// Faults belong to a run and not to a drive: those of this model come at their times after the drive was saved.
    ///
    /// # Errors
    /// When the bytes are no state of this version, or of a drive that is not this model with these parameters.
    pub fn restore(model: &Model, reader: impl Read) -> Result<(SimulatedDrive, i64), StateError> {
        let malformed = |error: postcard::Error| StateError::Malformed(error.to_string());
        let mut text = vec![0; TEXT_BYTES_MAX];
        let reader = BufReader::new(reader);
        let ((now_ns, mut drive), (mut reader, _)) =
            postcard::from_io::<(i64, SimulatedDrive), _>((reader, &mut text)).map_err(malformed)?;
        let more = reader.read(&mut [0]).map_err(|error| StateError::Malformed(error.to_string()))?;
        if more > 0 {
            return Err(StateError::Malformed("there is more of it than a drive has".into()));
        }
        match drive.model().difference(model) {
            Some(difference) => Err(StateError::OtherDrive(difference)),
            None => {
                drive.change_faults(model, now_ns);
                Ok((drive, now_ns))
            }
        }
    }
}
