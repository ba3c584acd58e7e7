//! What the drive counts of itself, as a real one tells through SMART.

use crate::ftl::PARTS;
use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};
use testdrive_core::{Command, Opcode};

/// What the host asked for and got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounters {
    /// Bytes of reads.
    pub read_bytes: u64,
    /// Bytes of writes.
    pub written_bytes: u64,
    /// Trims.
    pub trims: u64,
    /// Bytes of trims.
    pub trimmed_bytes: u64,
}

impl HostCounters {
    /// Counts a command that was done.
    #[inline]
    pub(crate) fn count(&mut self, command: &Command) {
        match command.opcode {
            Opcode::Read => self.read_bytes += command.length_bytes,
            Opcode::Write => self.written_bytes += command.length_bytes,
            Opcode::Trim => {
                self.trims += 1;
                self.trimmed_bytes += command.length_bytes;
            }
            Opcode::Flush | Opcode::WriteZeroes => {}
        }
    }
}

/// What the drive's parts did so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// What the host asked for and got.
    pub host: HostCounters,
    /// NAND pages sensed for reads.
    pub nand_reads: u64,
    /// Pages that reads found in the write buffer.
    pub buffered_pages_read: u64,
    /// Pages that reads found to hold nothing.
    pub unmapped_pages_read: u64,
    /// Pages of the mapping that were found in memory.
    pub mapping_hits: u64,
    /// Pages of the mapping that had to be read.
    pub mapping_misses: u64,
    /// Units programmed, or waiting to be, for data of the host.
    pub host_programs: u64,
    /// The same into the SLC cache.
    pub cached_programs: u64,
    /// Units programmed, or waiting to be, for pages from the SLC cache.
    pub folded_programs: u64,
    /// Times that a read interrupted a program or an erase.
    pub suspends: u64,
    /// Units programmed, or waiting to be, for pages that reclaiming moved.
    pub moved_programs: u64,
    /// Units programmed, or waiting to be, for parity and what the drive keeps for itself.
    pub overhead_programs: u64,
    /// Blocks erased, or waiting to be.
    pub erases: u64,
    /// What the translation layer did.
    pub pages: crate::PageCounters,
    /// Energy drawn.
    pub energy_uj: u64,
    /// Work of trims that was accepted and is not yet done, in firmware time.
    pub trim_owed_ns: i64,
}

impl Counters {
    /// Bytes that the NAND was given to program: the host's, what reclaiming or folding moved, what units were filled up with, and what the
    /// drive programs for itself in units of so many bytes.
    pub fn nand_written_bytes(&self, program_unit_bytes: u64) -> u64 {
        let moved = self.pages.moved_pages + self.pages.folded_pages;
        let pages = self.pages.host_pages + moved + self.pages.unused_pages;
        pages * PAGE_BYTES - self.pages.saved_parts * (PAGE_BYTES / u64::from(PARTS))
            + self.overhead_programs * program_unit_bytes
    }
}
