//! Whether a recording can be replayed as a job asks.

use crate::error::RunError;
use crate::job::{Pace, ReplayJob, TRANSFER_MAX_BYTES};
use testdrive_core::Opcode;
use testdrive_recording::Recording;

/// Refuses a source that cannot be replayed as the job asks.
///
/// # Errors
/// A usage error that says what the source lacks.
pub fn check_source(recording: &Recording, job: &ReplayJob) -> Result<(), RunError> {
    if let Some(reason) = recording.not_every_row() {
        return Err(RunError::usage(format!("it cannot be replayed: {reason}")));
    }
    let name = recording.directory().display();
    let absent = |column: &str| recording.manifest.absent_columns.iter().any(|absent| absent == column);
    for column in ["offset_bytes", "length_bytes", "opcode"] {
        if absent(column) {
            let message = format!(
                "{name} does not tell {column}, so it cannot be replayed: import it with that column"
            );
            return Err(RunError::usage(message));
        }
    }
    let counts = &recording.manifest.counts;
    if counts.ios == 0 {
        return Err(RunError::usage(format!("{name} holds no I/Os: there is nothing to replay")));
    }
    let kept = Opcode::ALL.into_iter().any(|opcode| counts.by_opcode.of(opcode).ios > 0 && job.keeps(opcode));
    if !kept {
        return Err(RunError::usage(format!(
            "'only' and 'without' leave no I/O of {name}: it has {}",
            names(recording)
        )));
    }
    if job.pace == Pace::Depth && counts.no_completion == counts.ios {
        let message =
            format!("{name} has no completions, which pace 'depth' needs: use pace 'timed' or 'asap'");
        return Err(RunError::usage(message));
    }
    let transfer_max_bytes =
        [Opcode::Read, Opcode::Write].map(|opcode| counts.by_opcode.of(opcode).length_max_bytes);
    if transfer_max_bytes.into_iter().any(|bytes| bytes > TRANSFER_MAX_BYTES) {
        let message = format!("{name} has a transfer of more than 256 MiB, which no drive takes: is the unit of its lengths right?");
        return Err(RunError::usage(message));
    }
    Ok(())
}

fn names(recording: &Recording) -> String {
    let counts = recording.manifest.counts.by_opcode;
    let seen = Opcode::ALL.into_iter().filter(|opcode| counts.of(*opcode).ios > 0);
    seen.map(Opcode::name).collect::<Vec<_>>().join(", ")
}
