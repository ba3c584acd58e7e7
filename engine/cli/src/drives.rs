//! `testdrive-engine drives`: what can be tested on this host.

use crate::lines::tell_line;
use std::process::ExitCode;
use testdrive_runner::{Event, RunError};

/// Prints every block device as one JSON list.
pub fn main() -> ExitCode {
    match testdrive_drives::list_drives() {
        Ok(drives) => {
            tell_line(&drives);
            ExitCode::SUCCESS
        }
        Err(error) => {
            let error = RunError::drive(format!("cannot list the block devices of this host: {error}"));
            tell_line(&Event::from(&error));
            ExitCode::from(error.kind.exit_status())
        }
    }
}
