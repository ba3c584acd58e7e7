//! What became of every I/O of a phase's source.

use crate::gates::DepthMeter;
use serde::Serialize;
use serde_json::{Map, Value};
use testdrive_core::OpcodeCounts;

/// The accounting of a replay phase, as the manifest has it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Accounting {
    /// In the window of the source, over all loops.
    pub source: OpcodeCounts,
    /// Handed to the drive.
    pub issued: OpcodeCounts,
    /// Left out by `only` and `without`.
    pub filtered: OpcodeCounts,
    /// Left out because they end beyond the drive.
    pub skipped: OpcodeCounts,
    /// Left out because the drive's path cannot do them.
    pub unsupported: OpcodeCounts,
    /// Not issued because the run ended first.
    pub not_reached: OpcodeCounts,
    /// Issued with their offset taken modulo the capacity.
    pub wrapped: OpcodeCounts,
    /// Issued with their offset scaled.
    pub scaled: OpcodeCounts,
    /// Issued with their length cut at the drive's end.
    pub clipped: OpcodeCounts,
    /// Issued with offset or length widened to the drive's block.
    pub widened: OpcodeCounts,
    /// The source's in-flight depth, where it has completions.
    pub source_depth: Option<Depth>,
    /// The replay's.
    pub replay_depth: Option<Depth>,
    /// I/Os submitted before one that stands earlier in the source.
    pub order_inversions: u64,
    /// From the first scheduled time to the last.
    pub intended_span_ns: i64,
    /// From the first submission to the last.
    pub replayed_span_ns: i64,
}

/// In-flight depth, time-weighted.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Depth {
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: usize,
}

impl Depth {
    /// A meter's reading; `None` without a span.
    pub fn of(meter: &DepthMeter) -> Option<Depth> {
        Some(Depth { mean: meter.mean()?, max: meter.max() })
    }
}

impl Accounting {
    /// As the manifest's JSON.
    pub fn to_map(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(map)) => map,
            other => unreachable!("an accounting is a JSON object, not {other:?}"),
        }
    }

    /// What was issued, or left out for a reason.
    pub fn reached(&self) -> OpcodeCounts {
        let mut reached = self.issued;
        reached.merge(&self.filtered);
        reached.merge(&self.skipped);
        reached.merge(&self.unsupported);
        reached
    }

    /// Fills in `not_reached`: what of the source is neither issued nor accounted for.
    pub fn close(&mut self) {
        self.not_reached = self.source.minus(&self.reached());
    }
}
