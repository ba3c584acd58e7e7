//! `testdrive-engine drives`: what can be tested on this host, and what a killed run left behind.

use crate::lines::{answer, tell_line};
use std::process::ExitCode;
use testdrive_runner::{Event, RunError};

/// Arguments of `drives`.
#[derive(clap::Args)]
pub struct DrivesArgs {
    /// Give a drive that a killed run left behind back to the kernel's driver, instead of listing
    #[arg(long, value_name = "ADDRESS")]
    release: Option<String>,
}

/// What `--release` found to do.
#[derive(serde::Serialize)]
struct Release {
    event: &'static str,
    address: String,
    driver: String,
    /// Whether anything was to be done.
    restored: bool,
}

/// Does what was asked.
pub fn main(args: &DrivesArgs) -> ExitCode {
    let done = match &args.release {
        Some(address) => give_back(address),
        None => return list(),
    };
    match done {
        Ok(release) => answer(&release),
        Err(error) => {
            tell_line(&Event::from(&error));
            ExitCode::from(error.kind.exit_status())
        }
    }
}

fn give_back(address: &str) -> Result<Release, RunError> {
    let address = address.strip_prefix("pci:").unwrap_or(address);
    let released = testdrive_drives::give_back(address)?;
    let (driver, restored) = (released.driver, released.restored);
    Ok(Release { event: "released", address: released.address, driver, restored })
}

/// Prints every block device as one JSON list.
fn list() -> ExitCode {
    match testdrive_drives::list_drives() {
        Ok(drives) => answer(&drives),
        Err(error) => {
            let error = RunError::drive(format!("cannot list the block devices of this host: {error}"));
            tell_line(&Event::from(&error));
            ExitCode::from(error.kind.exit_status())
        }
    }
}
