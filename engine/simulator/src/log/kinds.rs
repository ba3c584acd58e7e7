//! The kinds of what a drive logs, with their names in recordings and what their amounts count.

use serde::{Deserialize, Serialize};

/// What a drive can be busy with by itself, or held up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// Valid pages are moved out of superblocks that are reclaimed. Amount: pages moved.
    GarbageCollection,
    /// The firmware works on trims. Amount: pages trimmed.
    TrimService,
    /// The cache of single-level cells is emptied to where data stays. Amount: pages moved.
    SlcFolding,
    /// Writes go past the cache of single-level cells, which is full. Amount: pages written.
    SlcFull,
    /// The mapping is read from the NAND, since what is asked for is not in memory. Amount: reads of it.
    MappingMisses,
    /// The drive looks after its NAND. Amount: how often.
    Housekeeping,
    /// Writes wait for the write buffer. Amount: writes.
    WriteBufferFull,
    /// Work waits for the power budget. Amount: nanoseconds waited, over all that waited.
    PowerLimit,
    /// The drive is slowed down since it is hot. Amount: how often it began.
    ThermalThrottle,
    /// A fault that was asked for: the drive stood still. Amount: commands that waited.
    Stall,
    /// A fault that was asked for: power was lost. Amount: pages lost.
    PowerLoss,
}

/// The name of each kind in recordings, and what its amount counts; in the order of the kinds.
pub(super) const KINDS: &[(EventKind, &str, &str)] = &[
    (EventKind::GarbageCollection, "garbage_collection", "pages"),
    (EventKind::TrimService, "trim_service", "pages"),
    (EventKind::SlcFolding, "slc_folding", "pages"),
    (EventKind::SlcFull, "slc_full", "pages"),
    (EventKind::MappingMisses, "mapping_misses", "reads"),
    (EventKind::Housekeeping, "housekeeping", "times"),
    (EventKind::WriteBufferFull, "write_buffer_full", "writes"),
    (EventKind::PowerLimit, "power_limit", "ns"),
    (EventKind::ThermalThrottle, "thermal_throttle", "times"),
    (EventKind::Stall, "stall", "commands"),
    (EventKind::PowerLoss, "power_loss", "pages"),
];

impl EventKind {
    /// Its name in recordings.
    pub fn name(self) -> &'static str {
        KINDS[self as usize].1
    }

    /// What its amount counts.
    pub fn unit(self) -> &'static str {
        KINDS[self as usize].2
    }
}
