//! What the drive tells of itself: what it counted, and what it logged.

use super::SimulatedDrive;
use crate::counts::Counters;
use crate::log::{DriveEvent, DroppedEvents, EventKind};
use crate::telemetry::microjoules;

impl SimulatedDrive {
    /// What the drive's parts did so far.
    pub fn counters(&self) -> Counters {
        let nand = &self.nand.counters;
        Counters {
            host: self.host,
            nand_reads: nand.reads,
            buffered_pages_read: self.buffered_pages_read,
            unmapped_pages_read: self.unmapped_pages_read,
            mapping_hits: self.mapping_cache.as_ref().map_or(0, |cache| cache.hits),
            mapping_misses: self.mapping_cache.as_ref().map_or(0, |cache| cache.misses),
            host_programs: nand.host_programs,
            cached_programs: nand.cached_programs,
            folded_programs: nand.folded_programs,
            suspends: nand.suspends,
            moved_programs: nand.moved_programs,
            overhead_programs: nand.overhead_programs,
            erases: nand.erases,
            pages: self.translation.counters(),
            energy_uj: microjoules(self.nand.power.energy_pj()),
            trim_owed_ns: self.firmware.owed_ns(),
        }
    }

    /// Bytes that the NAND was given to program so far.
    pub fn nand_written_bytes(&self) -> u64 {
        self.counters().nand_written_bytes(self.model.parameters().program_unit_bytes)
    }

    /// Takes what the drive logged of its own work until now, and what the log had to drop of each kind.
    ///
    /// What the drive would do until then without a further command is in it after [`SimulatedDrive::advance`] only.
    pub fn take_events(&mut self, now_ns: i64) -> (Vec<DriveEvent>, Vec<(EventKind, DroppedEvents)>) {
        self.log.take(now_ns)
    }
}
