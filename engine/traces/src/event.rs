//! What the block layer says happened, whichever way it was written down.

use crate::time_order::Timed;
use testdrive_core::{Flags, Opcode};

/// A block device by its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Device {
    /// Which driver.
    pub major: u32,
    /// Which of its devices.
    pub minor: u32,
}

impl Device {
    /// From the kernel's own packing: twelve bits of major above twenty of minor.
    pub fn from_kernel(number: u32) -> Device {
        Device { major: number >> 20, minor: number & 0xf_ffff }
    }

    /// From `8:16` or `8,16`.
    pub fn parse(text: &str) -> Option<Device> {
        let (major, minor) = text.split_once([':', ','])?;
        Some(Device { major: major.trim().parse().ok()?, minor: minor.trim().parse().ok()? })
    }
}

impl std::fmt::Display for Device {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.major, self.minor)
    }
}

/// What happened to an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A bio entered the block layer (Q): what the workload asked for.
    Queue,
    /// A request was handed to the driver (D).
    Issue,
    /// A request, or a part of it, was completed (C); or a bio of a device that has no requests.
    Complete,
    /// The driver gave a request back unserved (R).
    Requeue,
    /// A bio of another device was mapped onto this one (A).
    Remap {
        /// The device that it was queued on.
        from: Device,
        /// Where it started there.
        from_sector: u64,
    },
}

/// One event of the block layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockEvent {
    /// When, on the trace's clock.
    pub time_ns: i64,
    /// Where.
    pub device: Device,
    /// What happened.
    pub kind: EventKind,
    /// What the I/O does. An empty write with a preflush is a flush that was queued; an empty completion of anything but a
    /// flush is the end of a flush sequence.
    pub opcode: Opcode,
    /// How.
    pub flags: Flags,
    /// First sector of 512 bytes.
    pub sector: u64,
    /// Sectors of 512 bytes; 0 for flushes.
    pub sectors: u64,
    /// The CPU that said so; -1 where unknown.
    pub cpu: i32,
    /// 0, or a positive errno.
    pub status: i32,
}

impl BlockEvent {
    /// The sector after the last. Never overflows: positions are far below 2^64.
    pub fn end(&self) -> u64 {
        self.sector.saturating_add(self.sectors)
    }
}

impl Timed for BlockEvent {
    fn time_ns(&self) -> i64 {
        self.time_ns
    }
}
