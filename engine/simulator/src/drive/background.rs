//! What the drive does on its own account: folding of the SLC cache, housekeeping.

use super::SimulatedDrive;
use crate::events::Action;
use crate::ftl::ReclaimStep;
use crate::log::EventKind;
use crate::nand::Work;
use serde::{Deserialize, Serialize};

/// What is scheduled of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Background {
    fold_scheduled: bool,
    last_write_ns: i64,
    housekeeping_scheduled: bool,
    pub(super) temperature_scheduled: bool,
}

impl SimulatedDrive {
    /// Lets the NAND do what the translation layer asks for.
    pub(super) fn do_reclaim_steps(&mut self) {
        let now_ns = self.now_ns;
        let (nand, events) = (&mut self.nand, &mut self.events);
        for step in self.translation.steps() {
            match step {
                ReclaimStep::Program(unit) => {
                    nand.work(now_ns, self.placement.die_of(unit.unit), Work::Moved, events);
                    self.overhead.owe_for_moved();
                    self.log.begin(EventKind::GarbageCollection, now_ns);
                    self.log.extend(EventKind::GarbageCollection, now_ns, u64::from(unit.pages));
                }
                ReclaimStep::Fold(unit) => {
                    nand.work(now_ns, self.placement.die_of(unit.unit), Work::Folded, events);
                    self.overhead.owe_for_folded();
                    self.log.begin(EventKind::SlcFolding, now_ns);
                    self.log.extend(EventKind::SlcFolding, now_ns, u64::from(unit.pages));
                }
                ReclaimStep::Erase => self.overhead.owe_for_erase(),
                ReclaimStep::EraseCached => self.overhead.owe_for_cached_erase(),
            }
        }
        if let Some(die) = self.overhead.next_erase(nand.dies()) {
            nand.work(now_ns, die, Work::Erase, events);
        }
        while let Some(die) = self.overhead.next_program(nand.dies()) {
            nand.work(now_ns, die, Work::Overhead, events);
        }
    }

    /// Notes that the host wrote: the cache is left alone for a while.
    pub(super) fn note_write(&mut self) {
        self.background.last_write_ns = self.now_ns;
        if !self.background.fold_scheduled && self.translation.cached_units() > 0 {
            self.background.fold_scheduled = true;
            self.events.schedule(self.now_ns + self.model.parameters().slc_idle_ns, Action::Fold);
        }
    }

    /// Empties some of the cache if the host leaves time for it.
    pub(super) fn fold(&mut self) {
        let parameters = self.model.parameters();
        let idle_from_ns = self.background.last_write_ns + parameters.slc_idle_ns;
        if self.now_ns < idle_from_ns {
            return self.events.schedule(idle_from_ns, Action::Fold);
        }
        let unit_ns = parameters.program_ns as f64 * parameters.programs_per_folded_page;
        let period_ns = unit_ns / (f64::from(self.nand.dies()) * parameters.slc_fold_share);
        let cached_units = (parameters.program_unit_bytes / parameters.slc_unit_bytes).max(1);
        let mut folded = false;
        for _ in 0..cached_units {
            folded = self.translation.fold_unit();
        }
        self.do_reclaim_steps();
        if folded {
            self.events.schedule(self.now_ns + (period_ns as i64).max(1), Action::Fold);
        } else {
            self.background.fold_scheduled = false;
        }
    }

    /// Schedules the first housekeeping, once a time is known.
    pub(super) fn begin_background(&mut self) {
        self.schedule_faults();
        let period_ns = self.model.parameters().housekeeping_period_ns;
        if period_ns > 0 && !self.background.housekeeping_scheduled {
            self.background.housekeeping_scheduled = true;
            let next_ns = (self.now_ns.div_euclid(period_ns) + 1) * period_ns;
            self.events.schedule(next_ns, Action::Housekeeping);
        }
    }

    /// Occupies every die.
    pub(super) fn housekeeping(&mut self) {
        let parameters = self.model.parameters();
        let end_ns = self.now_ns + parameters.housekeeping_ns;
        self.events.schedule(self.now_ns + parameters.housekeeping_period_ns, Action::Housekeeping);
        for die in 0..self.nand.dies() {
            self.nand.work(self.now_ns, die, Work::Housekeeping, &mut self.events);
        }
        self.log.note(EventKind::Housekeeping, self.now_ns, end_ns, 1);
    }
}
