//! What came of a phase, added up over its submitters.

use crate::accounting::{Accounting, Depth};
use crate::error::RunError;
use crate::gates::DepthMeter;
use crate::orders::GaveUp;
use crate::rounds::Tally;
use crate::submission::Submitted;
use crate::submitters::RowProducers;
use serde_json::{Map, Value};
use testdrive_core::Histogram;

/// What a phase did.
#[derive(Default)]
pub struct PhaseOutcome {
    /// When it began.
    pub start_ns: i64,
    /// When it ended.
    pub end_ns: i64,
    /// What became of its source.
    pub accounting: Accounting,
    /// What completed without an error.
    pub completed: Tally,
    /// Why the source could not be read to its end.
    pub error: Option<RunError>,
    /// I/Os of an open loop that did not go before the phase ended, though their time came.
    pub overdue: u64,
    /// That the drive cannot keep up, as the first submitter found it.
    pub gave_up: Option<GaveUp>,
    /// Times that a submitter found nothing decoded.
    pub starved: u64,
    /// Times that a submitter waited for the recorder.
    pub recorder_waits: u64,
    /// The greatest share of its time that a submitter's thread took of a CPU.
    pub submitter_cpu_share: f64,
    /// Latencies, of a run that keeps no rows.
    pub latencies: Histogram,
    /// What the drive's path did, as its queues found.
    pub settings: Map<String, Value>,
    /// What the phase found out, beside what was issued: the accounting has it.
    pub findings: Map<String, Value>,
}

/// Adds up what the submitters did, and takes their ends of the recorder's queues back for the next phase.
pub fn merge(
    submitted: Vec<Submitted<'_>>,
    accounting: Accounting,
    error: Option<RunError>,
    start_ns: i64,
    producers: &mut RowProducers,
) -> PhaseOutcome {
    let mut outcome =
        PhaseOutcome { start_ns, end_ns: start_ns, accounting, error, ..PhaseOutcome::default() };
    let mut depth = DepthMeter::default();
    let (mut intended, mut submissions) = (None, None);
    for (index, submitted) in submitted.into_iter().enumerate() {
        let Submitted { report, rows, histogram, end_ns, cpu_ns, settings } = submitted;
        let cpu_share = cpu_ns as f64 / (end_ns - start_ns).max(1) as f64;
        outcome.submitter_cpu_share = outcome.submitter_cpu_share.max(cpu_share);
        outcome.accounting.issued.merge(&report.issued);
        outcome.accounting.order_inversions += report.order_inversions;
        outcome.completed.merge(&report.completed);
        depth.add(&report.depth);
        intended = join_spans(intended, report.intended_ns);
        submissions = join_spans(submissions, report.submitted_ns);
        outcome.overdue += report.overdue;
        let found = outcome.gave_up.into_iter().chain(report.gave_up);
        outcome.gave_up = found.min_by_key(|gave_up| gave_up.at_ns);
        outcome.starved += report.starved;
        outcome.recorder_waits += report.recorder_waits;
        outcome.end_ns = outcome.end_ns.max(end_ns);
        if let Some(histogram) = &histogram {
            outcome.latencies.merge(histogram);
        }
        outcome.settings = settings;
        if let Some(place) = producers.get_mut(index) {
            *place = rows.into_producer();
        }
    }
    let span_ns = |span: Option<(i64, i64)>| span.map_or(0, |(first_ns, last_ns)| last_ns - first_ns);
    outcome.accounting.replay_depth = Depth::of(&depth);
    outcome.accounting.intended_span_ns = span_ns(intended);
    outcome.accounting.replayed_span_ns = span_ns(submissions);
    outcome
}

fn join_spans(own: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (own, other) {
        (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
        (own, other) => own.or(other),
    }
}
