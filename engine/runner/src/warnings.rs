//! What makes a run's figures less valid than they look, each with its remedy.

use crate::book::Totals;
use testdrive_drives::Target;
use testdrive_recording::{Manifest, Warning};

fn warning(code: &str, message: impl Into<String>, remedy: &str) -> Warning {
    Warning { code: code.into(), message: message.into(), remedy: remedy.into() }
}

/// What can be told before the run.
pub fn before(manifest: &Manifest, target: &Target) -> Vec<Warning> {
    let mut warnings = target.warnings().to_vec();
    if manifest.tool.build == "debug" {
        let message = "the engine is a debug build, which times I/O late";
        warnings.push(warning(
            "debug_build",
            message,
            "build it with 'make install', which makes a release build",
        ));
    }
    warnings
}

/// What the run itself showed.
pub fn after(totals: &Totals) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if totals.recorder_waits > 0 {
        let message =
            format!("the recorder was behind {} times, and submission waited for it", totals.recorder_waits);
        warnings.push(warning(
            "recorder_behind",
            message,
            "record to a faster disk, or give the run more CPUs",
        ));
    }
    if totals.starved > 0 {
        let message = format!("the source was decoded too slowly {} times", totals.starved);
        let remedy =
            "I/Os after such a moment are late: look at the certificate, and keep other work off the host";
        warnings.push(warning("source_starved", message, remedy));
    }
    if totals.issued.total().ios == 0 {
        let remedy = "look at the window (--from, --to) and the filters (--only, --without)";
        warnings.push(warning("nothing_issued", "no I/O was issued", remedy));
    }
    warnings
}
