//! The `prepare` phases of the job. Documented in `docs/job.md`.

use crate::job::Data;
use crate::job_defaults;
use serde::{Deserialize, Serialize};

/// How a drive is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrepareMethod {
    /// Nothing that was written is left: by trimming every byte once, in order, or by the drive as a whole.
    Purge,
    /// Every byte is written, in order.
    Sequential,
    /// Blocks anywhere are written.
    Random,
    /// The drive is formatted, with blocks of another size where that is asked for.
    Format,
}

/// How a purge is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PurgeHow {
    /// Every byte is trimmed; nothing is done where the drive takes no trims.
    #[default]
    Trim,
    /// By NVMe format, with its user data erase.
    Format,
    /// By NVMe sanitize, of the whole drive.
    Sanitize,
}

impl PurgeHow {
    fn is_trim(&self) -> bool {
        *self == PurgeHow::Trim
    }
}

/// A `prepare` phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrepareJob {
    /// For people.
    #[serde(default)]
    pub name: Option<String>,
    /// How.
    pub method: PrepareMethod,
    /// How, of a purge.
    #[serde(default, skip_serializing_if = "PurgeHow::is_trim")]
    pub how: PurgeHow,
    /// The size of a format's blocks; the present one by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub logical_block_bytes: Option<u64>,
    /// Length of each I/O; the method's own by default.
    #[serde(default)]
    pub block_bytes: Option<u64>,
    /// I/Os in flight.
    #[serde(default = "job_defaults::depth")]
    pub depth: u32,
    /// How often the span's size is written.
    #[serde(default = "default_fills")]
    pub fills: f64,
    /// Where the span begins.
    #[serde(default)]
    pub offset_bytes: u64,
    /// Its size; what is left of the drive by default.
    #[serde(default)]
    pub span_bytes: Option<u64>,
    /// Its size as a share of the drive's.
    #[serde(default)]
    pub span_share: Option<f64>,
    /// Of the places.
    #[serde(default = "job_defaults::seed")]
    pub seed: u64,
    /// What writes carry.
    #[serde(default)]
    pub data: Data,
    /// Whether each write gets fresh data.
    #[serde(default)]
    pub refill: bool,
    /// Whether metrics are over its rows.
    #[serde(default)]
    pub measured: bool,
}

impl PrepareJob {
    /// Length of each I/O.
    pub fn block_bytes(&self) -> u64 {
        self.block_bytes.unwrap_or(match self.method {
            PrepareMethod::Purge | PrepareMethod::Format => 64 << 20,
            PrepareMethod::Sequential => 128 << 10,
            PrepareMethod::Random => 4 << 10,
        })
    }
}

fn default_fills() -> f64 {
    1.0
}
