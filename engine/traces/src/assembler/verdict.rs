//! Says what became of the events: what was lost, and what to beware of.

use super::pairing::Pairing;
use crate::format::{Decoded, Events};
use crate::TraceError;
use std::path::Path;

/// Fills in all that the pairing knows of a trace.
pub(crate) fn describe(
    pairing: &Pairing<'_>,
    first_path: &Path,
    decoded: &mut Decoded,
) -> Result<(), TraceError> {
    let tally = &pairing.tally;
    if pairing.rows.rows == 0 {
        let reason = format!(
            "of {} queue, {} issue and {} completion events none is of a read, write, trim or flush; record the trace with \
             queue, issue and complete events",
            tally.queue_events, tally.issue_events, tally.completion_events
        );
        return Err(TraceError::NoIos { path: first_path.to_path_buf(), reason });
    }
    decoded.events = Some(pairing.events());
    decoded.shift_ns = pairing.rows.shift_ns();
    decoded.turned_away = tally.turned_away;
    decoded.drop(
        tally.completions_without_issue,
        "completions whose I/O was not seen to begin (begun before the trace, or its event was lost)",
    );
    decoded.drop(
        tally.issues_without_queue,
        "requests of which no queued I/O was seen (queued before the trace, or its event was lost)",
    );
    decoded.drop(tally.issued_again, "issues that were repeated before a completion (the last one counts)");
    decoded.drop(tally.empty_ios, "queued I/Os without length that are no flush");
    decoded.drop(tally.beyond_drives, "events of places beyond the end of any drive");
    absent_columns(pairing, decoded);
    warn(pairing, decoded);
    Ok(())
}

fn absent_columns(pairing: &Pairing<'_>, decoded: &mut Decoded) {
    let tally = &pairing.tally;
    if tally.queue_events == 0 && pairing.events() == Events::Issued {
        decoded.absent_columns.push("intended_ns");
    }
    if tally.issue_events == 0 {
        decoded.absent_columns.push("submit_ns");
    }
    if tally.completion_events == 0 {
        decoded.absent_columns.extend(["latency_ns", "status"]);
    }
    if !pairing.cpus_known() {
        decoded.absent_columns.push("stream");
    }
}

fn warn(pairing: &Pairing<'_>, decoded: &mut Decoded) {
    let (tally, rows) = (&pairing.tally, &pairing.rows);
    if tally.queue_events == 0 && pairing.events() == Events::Issued {
        decoded.warn(
            "no_queue_events",
            "the trace has no queue events: rows are requests as they were issued, so that merged I/Os are one and the wait \
             before the issue is not seen"
                .into(),
            "record queue events too (blktrace -a queue, or block:block_bio_queue)",
        );
    }
    if tally.issue_events == 0 {
        decoded.warn(
            "no_issue_events",
            "the trace has no issue events: latencies count from the queue event and hold the wait in the kernel".into(),
            "record issue events too, or trace the device below if this one has no requests of its own (md, dm)",
        );
    } else if tally.completed_from_queue > 0 {
        decoded.warn(
            "some_issue_events_missing",
            format!(
                "{} of {} I/Os have no issue event: their latency counts from the queue event",
                tally.completed_from_queue, rows.rows
            ),
            "give the files of all CPUs, and record with larger buffers",
        );
    }
    decoded.warn_of_completions(
        tally.completion_events,
        (rows.no_completion, rows.rows),
        (
            "record completion events too (blktrace -a complete, or block:block_rq_complete)",
            "give the files of all CPUs: completions stand in the file of the CPU that took the interrupt",
        ),
    );
    if tally.given_up > 0 {
        decoded.warn(
            "too_many_under_way",
            format!("{} I/Os were given up as not completed since too many were under way", tally.given_up),
            "give the files of all CPUs, so that completions are found",
        );
    }
}
