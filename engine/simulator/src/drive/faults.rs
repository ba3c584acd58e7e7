//! Faults that were asked for: what goes wrong with the drive, and when.

use super::{SimulatedDrive, Stage};
use crate::contents::Contents;
use crate::events::{Action, Events};
use crate::log::EventKind;
use crate::model::Model;
use crate::parameters::Parameters;
use serde::{Deserialize, Serialize};
use testdrive_core::{Command, SplitMix64};

/// Status of what could not be read, and of what was in flight when power was lost: EIO.
const STATUS_FAILED: i32 = 5;
/// Status of what is asked of a drive that is no longer there: ENODEV.
const STATUS_GONE: i32 = 19;

/// What is known of faults.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Faults {
    scheduled: bool,
    /// What the times of faults count from.
    origin_ns: i64,
    pub(super) gone: bool,
    random: SplitMix64,
}

impl Faults {
    pub(super) fn new(parameters: &Parameters) -> Faults {
        Faults {
            scheduled: false,
            origin_ns: 0,
            gone: false,
            random: SplitMix64::new(parameters.seed ^ 0x6661_756c),
        }
    }

    /// Whether something of this rate happens now. A rate of 0 draws no number, so that it changes nothing else.
    fn happens(&mut self, rate: f64) -> bool {
        rate > 0.0 && (self.random.next_u64() >> 11) as f64 / ((1_u64 << 53) as f64) < rate
    }
}

fn is_fault(action: &Action) -> bool {
    matches!(action, Action::Stall | Action::PowerLoss | Action::Gone)
}

impl SimulatedDrive {
    /// Whether the drive is no longer there, as a fault that was asked for has it.
    pub fn is_gone(&self) -> bool {
        self.faults.gone
    }

    /// Which write of a page a read would return now: versions count up with each page that is written to the drive. 0 is what was
    /// there before the first command, or what a trim left. `None` where the model does not keep contents.
    pub fn version_of(&self, page: u32) -> Option<u32> {
        self.contents.as_ref().map(|contents| contents.version_of(page))
    }

    /// Schedules what goes wrong at a time of its own, once.
    pub(super) fn schedule_faults(&mut self) {
        if std::mem::replace(&mut self.faults.scheduled, true) {
            return;
        }
        let parameters = self.model.parameters();
        for (at_ns, action) in [
            (parameters.fault_stall_at_ns, Action::Stall),
            (parameters.fault_power_loss_at_ns, Action::PowerLoss),
            (parameters.fault_gone_at_ns, Action::Gone),
        ] {
            let due_ns = self.faults.origin_ns + at_ns;
            if at_ns > 0 && due_ns >= self.now_ns {
                self.events.schedule(due_ns, action);
            }
        }
    }

    /// Lets the faults of this model, which is otherwise the drive's own, take the place of those before, with times from now on.
    pub(crate) fn change_faults(&mut self, model: &Model, now_ns: i64) {
        self.events.retain(|action| !is_fault(action));
        self.model = model.clone();
        let parameters = self.model.parameters();
        self.faults = Faults { origin_ns: now_ns, ..Faults::new(parameters) };
        if !parameters.keeps_contents() {
            self.contents = None;
        } else if self.contents.is_none() {
            let buffered = self.buffer.durable_units()..self.buffer.closed_units();
            self.contents = Some(Contents::with_units(parameters.pages(), buffered));
        }
    }

    /// The status of a read that has reached its data.
    pub(super) fn read_status(&mut self, command: &Command) -> i32 {
        let parameters = self.model.parameters();
        let start = parameters.fault_read_error_offset_bytes;
        let end = start.saturating_add(parameters.fault_read_error_length_bytes);
        let hit = command.offset_bytes < end && command.offset_bytes + command.length_bytes > start;
        if hit && self.faults.happens(parameters.fault_read_error_rate) {
            STATUS_FAILED
        } else {
            0
        }
    }

    /// What a completion is late by.
    #[inline]
    pub(super) fn outlier_ns(&mut self) -> i64 {
        let parameters = self.model.parameters();
        if self.faults.happens(parameters.fault_outlier_rate) {
            parameters.fault_outlier_ns
        } else {
            0
        }
    }

    /// The firmware does nothing for a while.
    pub(super) fn stall(&mut self) {
        let parameters = self.model.parameters();
        let (length_ns, every_ns) = (parameters.fault_stall_ns, parameters.fault_stall_every_ns);
        if every_ns > 0 {
            self.events.schedule(self.now_ns + every_ns, Action::Stall);
        }
        self.firmware.stall(self.now_ns, length_ns);
        self.log.note(EventKind::Stall, self.now_ns, self.now_ns + length_ns, self.in_flight as u64);
    }

    /// The drive is no longer there: what is in flight fails, and so does what comes.
    pub(super) fn disappear(&mut self) {
        self.faults.gone = true;
        self.fail_all_in_flight(STATUS_GONE);
    }

    /// Refuses a command of a drive that is no longer there.
    pub(super) fn refuse(&mut self, slot: u32) {
        self.command_mut(slot).status = STATUS_GONE;
        self.in_drive += 1;
        self.events.schedule(self.now_ns + 1, Action::Completed(slot));
    }

    /// What is in flight fails, what was not durable is lost, and the drive starts again.
    pub(super) fn lose_power(&mut self) {
        let parameters = self.model.parameters();
        let (saved, off_ns) = (parameters.power_loss_protection, parameters.fault_power_loss_ns);
        let lost = self.contents.as_mut().map_or(0, |contents| contents.lose_power(saved));
        self.fail_all_in_flight(STATUS_FAILED);
        self.translation.close_unit();
        self.translation.steps().for_each(drop);
        self.buffer.restart();
        if let Some(contents) = &mut self.contents {
            contents.restart_at(self.buffer.closed_units());
        }
        self.nand.restart();
        self.background = super::Background::default();
        self.log.stop_all(self.now_ns);
        self.log.note(EventKind::PowerLoss, self.now_ns, self.now_ns + off_ns, lost);
        self.firmware.stall(self.now_ns, off_ns);
        if let Some(slice_ns) = self.firmware.resume_trims(self.now_ns) {
            self.events.schedule(slice_ns, Action::TrimSlice);
        }
        self.begin_background();
    }

    /// Everything that the drive was about to do is forgotten, but for faults that are still to come.
    fn fail_all_in_flight(&mut self, status: i32) {
        let to_come = self.events.take_all(is_fault);
        self.events = Events::default();
        for (at_ns, action) in to_come {
            self.events.schedule(at_ns, action);
        }
        self.waiting_in_host.clear();
        self.waiting_writes.clear();
        self.barriers.clear();
        self.in_drive = self.in_flight as u32;
        for slot in 0..self.slots.len() {
            if let Some(entry) = &mut self.slots[slot] {
                (entry.status, entry.stage) = (status, Stage::Data);
                self.events.schedule(self.now_ns, Action::Completed(slot as u32));
            }
        }
    }
}
