//! The `synthetic` phases of the job. Documented in `docs/job.md`.

use crate::job::Data;
use crate::job_defaults;
use crate::job_streams::StreamJob;
use crate::throttle::OnOff;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where generated I/Os go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Uniformly anywhere.
    #[default]
    Random,
    /// One after the other, from the start again at the end.
    Sequential,
    /// Anywhere, but nowhere twice before every block had its turn.
    RandomOnce,
}

/// One length among several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockShare {
    /// The length.
    pub bytes: u64,
    /// The share of I/Os that have it.
    pub share: f64,
}

/// Lengths that a drive's blocks make of records: every step from the least to the greatest is as likely.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockRange {
    /// The smallest record, which is rounded up to a step.
    pub from: u64,
    /// The largest.
    pub to: u64,
    /// A step; the drive's block where that is larger.
    #[serde(default)]
    pub step: u64,
}

/// How long I/Os are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "block_bytes is an integer, or a list of {\"bytes\": integer, \"share\": number}, or {\"from\": integer, \"to\": integer}"
)]
pub enum BlockBytes {
    /// All as long.
    One(u64),
    /// A distribution.
    Several(Vec<BlockShare>),
    /// A range.
    Range(BlockRange),
}

impl BlockBytes {
    /// As a distribution, on a drive with such blocks.
    pub fn shares(&self, logical_block_bytes: u64) -> Vec<BlockShare> {
        match self {
            BlockBytes::One(bytes) => vec![BlockShare { bytes: *bytes, share: 1.0 }],
            BlockBytes::Several(shares) => shares.clone(),
            BlockBytes::Range(BlockRange { from, to, step }) => {
                let step_bytes = (*step).max(logical_block_bytes).max(1);
                let (first, last) = (from.div_ceil(step_bytes), to.div_ceil(step_bytes));
                let share = 1.0 / (last.saturating_sub(first) + 1) as f64;
                (first..=last).map(|steps| BlockShare { bytes: steps * step_bytes, share }).collect()
            }
        }
    }

    /// The longest, on a drive with such blocks.
    pub fn longest_bytes(&self, logical_block_bytes: u64) -> u64 {
        match self {
            BlockBytes::Range(BlockRange { to, step, .. }) => {
                to.next_multiple_of((*step).max(logical_block_bytes).max(1))
            }
            _ => self.shares(logical_block_bytes).iter().map(|block| block.bytes).max().unwrap_or(0),
        }
    }

    /// What offsets are multiples of where the job does not say: of a range its step, else each I/O's own length.
    pub fn alignment_bytes(&self, logical_block_bytes: u64) -> Option<u64> {
        match self {
            BlockBytes::Range(BlockRange { step, .. }) => Some((*step).max(logical_block_bytes)),
            _ => None,
        }
    }
}

/// A part of the span that gets more I/Os, or fewer, than its size tells.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HotSpot {
    /// Its size as a share of the span's.
    pub span_share: f64,
    /// The share of I/Os that go there.
    pub access_share: f64,
}

/// What is judged for a steady state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Throughput,
    /// Mean latency.
    Latency,
}

/// Rounds, and when the last of them are steady: docs/job.md defines it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadyStateJob {
    /// What is judged.
    pub measure: Measure,
    /// How long a round is.
    pub round_ns: i64,
    /// How many rounds there are at most.
    #[serde(default = "job_defaults::rounds_max")]
    pub rounds_max: u32,
    /// How many rounds are judged.
    #[serde(default = "job_defaults::window")]
    pub window: u32,
    /// The most that they may range, as a share of their mean.
    #[serde(default = "job_defaults::range_share")]
    pub range_share: f64,
    /// The most that their line may climb or fall, as a share of their mean.
    #[serde(default = "job_defaults::slope_share")]
    pub slope_share: f64,
}

/// An open loop: I/Os go at their times, whether those before have completed or not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "process", rename_all = "snake_case", deny_unknown_fields)]
pub enum ArrivalsJob {
    /// Evenly spread.
    Constant {
        /// How many a second.
        rate_iops: f64,
    },
    /// Independent of each other.
    Poisson {
        /// How many a second on average.
        rate_iops: f64,
    },
    /// From threads that all begin at once, each with its share of the rate.
    Act {
        /// How many a second of all threads together.
        rate_iops: f64,
    },
    /// Of a stream: each thread's next I/O goes so long after its last one completed.
    AfterCompletion {
        /// How long.
        #[serde(default)]
        think_ns: i64,
    },
    /// As in a recording, whose places and opcodes are not taken.
    Recording {
        /// Which.
        recording: PathBuf,
    },
}

/// A `synthetic` phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SyntheticJob {
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// Where.
    #[serde(default)]
    pub pattern: Pattern,
    /// Share of reads.
    #[serde(default = "job_defaults::read_share")]
    pub read_share: f64,
    /// Share of trims; the rest are writes.
    #[serde(default)]
    pub trim_share: f64,
    /// Whether writes are forced through the drive's volatile cache.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fua: bool,
    /// Length of each I/O.
    #[serde(default = "job_defaults::block_bytes")]
    pub block_bytes: BlockBytes,
    /// Offsets are multiples of it, counted from `offset_bytes`; each I/O's own length by default.
    #[serde(default)]
    pub alignment_bytes: Option<u64>,
    /// I/Os in flight, of all threads together.
    #[serde(default = "job_defaults::depth")]
    pub depth: u32,
    /// Submitting threads.
    #[serde(default = "job_defaults::threads")]
    pub threads: u32,
    /// The CPUs that the submitters are kept on, in turn; any where empty.
    #[serde(default)]
    pub cpus: Vec<usize>,
    /// When I/Os go, of an open loop.
    #[serde(default)]
    pub arrivals: Option<ArrivalsJob>,
    /// Outstanding I/Os of an open loop beyond which further ones wait.
    #[serde(default = "job_defaults::max_in_flight")]
    pub max_in_flight: u32,
    /// How late an open loop may be before the run is given up.
    #[serde(default)]
    pub max_lag_ns: Option<i64>,
    /// Several workloads at once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub streams: Vec<StreamJob>,
    /// At most so many I/Os per second of a closed loop.
    #[serde(default)]
    pub rate_limit_iops: Option<f64>,
    /// At most so many bytes per second of a closed loop.
    #[serde(default)]
    pub rate_limit_bytes_per_s: Option<f64>,
    /// I/Os are submitted for so long,
    #[serde(default)]
    pub on_ns: Option<i64>,
    /// then none for so long.
    #[serde(default)]
    pub off_ns: Option<i64>,
    /// Ends the phase: so many turns of both.
    #[serde(default)]
    pub cycles: Option<u32>,
    /// Ends the phase: so many I/Os.
    #[serde(default)]
    pub ios: Option<u64>,
    /// Ends the phase: so many bytes.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Ends the phase: so long.
    #[serde(default)]
    pub duration_ns: Option<i64>,
    /// Ends the phase: so many times the drive's capacity written.
    #[serde(default)]
    pub drive_fills: Option<f64>,
    /// Ends the phase: steady, or out of rounds.
    #[serde(default)]
    pub steady_state: Option<SteadyStateJob>,
    /// Where the span begins.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Its size; what is left of the drive by default.
    #[serde(default)]
    pub span_bytes: Option<u64>,
    /// Its size as a share of the drive's.
    #[serde(default)]
    pub span_share: Option<f64>,
    /// Parts of the span with a share of I/Os of their own, from its start on.
    #[serde(default)]
    pub hot_spots: Vec<HotSpot>,
    /// Of the offsets and the mix.
    #[serde(default = "job_defaults::seed")]
    pub seed: u64,
    /// What writes carry.
    #[serde(default)]
    pub data: Data,
    /// Whether each write gets fresh data.
    #[serde(default)]
    pub refill: bool,
    /// Whether metrics are over its rows.
    #[serde(default = "job_defaults::yes")]
    pub measured: bool,
}

/// Shares that come closer than this to a whole are meant to be one: decimals are not exact in binary.
pub const SHARE_TOLERANCE: f64 = 1e-9;

impl SyntheticJob {
    /// When the phase rests.
    pub fn on_off(&self) -> Option<OnOff> {
        let (on_ns, off_ns) = self.on_ns.zip(self.off_ns)?;
        Some(OnOff { on_ns, off_ns })
    }

    /// How long the phase is at most.
    pub fn duration_ns(&self) -> Option<i64> {
        self.duration_ns.into_iter().chain(self.cycles_ns()).min()
    }

    /// How long its cycles are together.
    pub fn cycles_ns(&self) -> Option<i64> {
        let OnOff { on_ns, off_ns } = self.on_off()?;
        Some((on_ns + off_ns).saturating_mul(self.cycles?.into()))
    }

    /// Share of writes: what reads and trims leave.
    pub fn write_share(&self) -> f64 {
        let share = 1.0 - self.read_share - self.trim_share;
        if share < SHARE_TOLERANCE {
            0.0
        } else {
            share
        }
    }
}
