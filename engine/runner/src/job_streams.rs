//! The streams of a `synthetic` phase: several workloads at once, each with its mix, its lengths and its times. Documented in
//! `docs/job.md`.

use crate::job_defaults;
use crate::job_generated::{ArrivalsJob, BlockBytes, HotSpot, Pattern, SyntheticJob};
use serde::{Deserialize, Serialize};

/// The most streams of a phase: a submitter keeps a limit for each.
pub const STREAMS_MAX: usize = 16;

/// One stream. What it does not say is the phase's: the span, the data, the rests and the end.
///
/// Its keys stand in [`SyntheticJob`] again: to share them, both would have to flatten a third structure, and serde does not refuse
/// unknown keys where fields are flattened, so that a misspelt key of a job would go unnoticed.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamJob {
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
    /// Offsets are multiples of it.
    #[serde(default)]
    pub alignment_bytes: Option<u64>,
    /// Parts of the span with a share of I/Os of their own.
    #[serde(default)]
    pub hot_spots: Vec<HotSpot>,
    /// When I/Os go.
    pub arrivals: ArrivalsJob,
    /// Threads that its I/Os are thought to come from.
    #[serde(default = "job_defaults::threads")]
    pub threads: u32,
    /// How late an I/O may be before the run is given up.
    #[serde(default)]
    pub max_lag_ns: Option<i64>,
}

impl StreamJob {
    /// The phase that the stream would be by itself.
    pub fn as_phase(&self, phase: &SyntheticJob) -> SyntheticJob {
        SyntheticJob {
            name: self.name.clone(),
            pattern: self.pattern,
            read_share: self.read_share,
            trim_share: self.trim_share,
            fua: self.fua,
            block_bytes: self.block_bytes.clone(),
            alignment_bytes: self.alignment_bytes,
            hot_spots: self.hot_spots.clone(),
            arrivals: Some(self.arrivals.clone()),
            threads: self.threads,
            max_lag_ns: self.max_lag_ns,
            streams: Vec::new(),
            ..phase.clone()
        }
    }
}

impl SyntheticJob {
    /// Whether its I/Os have times of their own.
    pub fn is_open(&self) -> bool {
        self.arrivals.is_some() || !self.streams.is_empty()
    }

    /// Its streams as phases of their own, or the phase itself where it has none.
    pub fn parts(&self) -> Vec<SyntheticJob> {
        match self.streams[..] {
            [] => vec![self.clone()],
            _ => self.streams.iter().map(|stream| stream.as_phase(self)).collect(),
        }
    }

    /// What people call its streams; none where it has none.
    pub fn stream_names(&self) -> Vec<String> {
        let names = self.streams.iter().enumerate();
        names.map(|(index, stream)| stream.name.clone().unwrap_or_else(|| index.to_string())).collect()
    }

    /// How far behind its time an I/O of each stream may be.
    pub fn max_lag(&self) -> MaxLag {
        if self.streams.is_empty() {
            return self.max_lag_ns.map_or(MaxLag::None, MaxLag::Same);
        }
        let mut lags_ns = [i64::MAX; STREAMS_MAX];
        for (lag_ns, stream) in lags_ns.iter_mut().zip(&self.streams) {
            *lag_ns = stream.max_lag_ns.unwrap_or(i64::MAX);
        }
        MaxLag::ByStream(lags_ns)
    }
}

/// How far behind its time an I/O may be.
#[derive(Clone, Copy, Debug)]
pub enum MaxLag {
    /// However far.
    None,
    /// So far, whatever its stream.
    Same(i64),
    /// So far for each stream.
    ByStream([i64; STREAMS_MAX]),
}

impl MaxLag {
    /// The most for an I/O of a stream.
    #[inline]
    pub fn of(&self, stream: i32) -> i64 {
        match self {
            MaxLag::None => i64::MAX,
            MaxLag::Same(lag_ns) => *lag_ns,
            MaxLag::ByStream(lags_ns) => usize::try_from(stream)
                .ok()
                .and_then(|stream| lags_ns.get(stream))
                .copied()
                .unwrap_or(i64::MAX),
        }
    }
}
