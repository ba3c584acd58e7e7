//! Units, I/O types, latency histogram and LBA mapping.
//!
//! Pure: this crate never reads a clock, a file or a device, so that every rule in it can be tested against plain numbers.

mod counts;
mod histogram;
mod interval_histogram;
mod io;
mod lba;
mod permutation;
mod random;

pub use counts::{IoCount, OpcodeCounts};
pub use histogram::Histogram;
pub use interval_histogram::{Bucket, IntervalHistogram};
pub use io::{Command, Completion, Flags, IoRecord, Opcode, NO_COMPLETION};
pub use lba::{LbaMap, LbaMode, Placement, PlacementChanges};
pub use permutation::Permutation;
pub use random::SplitMix64;

/// Nanoseconds in a second.
pub const NS_PER_S: i64 = 1_000_000_000;
/// Bytes in a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;
/// Bytes in a sector as the Linux block layer and its traces count them, whatever the drive's logical block.
pub const SECTOR_BYTES: u64 = 512;
