//! What keys of the job are where it does not say, of those keys that several of its parts have. Documented in `docs/job.md`.

use crate::job_generated::BlockBytes;

pub fn yes() -> bool {
    true
}

pub fn depth() -> u32 {
    32
}

pub fn max_in_flight() -> u32 {
    4096
}

pub fn seed() -> u64 {
    1
}

pub fn read_share() -> f64 {
    1.0
}

pub fn block_bytes() -> BlockBytes {
    BlockBytes::One(4 << 10)
}

pub fn threads() -> u32 {
    1
}

/// The most rounds of a search for a steady state.
pub fn rounds_max() -> u32 {
    25
}

/// Rounds that are judged together. It and the two shares are those of the SNIA's performance test specification.
pub fn window() -> u32 {
    5
}

pub fn range_share() -> f64 {
    0.20
}

pub fn slope_share() -> f64 {
    0.10
}
