//! The way of a command into the drive and out of it.

use super::write::AfterBarrier;
use super::{InFlight, SimulatedDrive};
use crate::command::{touched_pages, whole_pages};
use crate::events::Action;
use crate::log::EventKind;
use crate::server::transfer_ns;
use testdrive_core::{Completion, Opcode};

impl SimulatedDrive {
    /// Takes a command from the host into the drive.
    pub(super) fn admit(&mut self, now_ns: i64, slot: u32) {
        self.in_drive += 1;
        let InFlight { command, status, .. } = self.command(slot);
        let pages = touched_pages(&command);
        let count = u64::from(pages.end - pages.start);
        let parameters = self.model.parameters();
        let (at_ns, action) = match command.opcode {
            _ if status != 0 => {
                (self.firmware.metadata(now_ns) + parameters.acknowledge_ns, Action::Completed(slot))
            }
            Opcode::Read => {
                (self.firmware.read(now_ns, count) + parameters.read_pipeline_ns, Action::ReadDecoded(slot))
            }
            Opcode::Write => {
                let decoded_ns = self.firmware.write(now_ns, count);
                let link_ns = transfer_ns(command.length_bytes, parameters.host_link_bytes_per_s);
                (self.link_in.serve(decoded_ns, link_ns), Action::WriteArrived(slot))
            }
            Opcode::Trim => {
                let done_ns = self.firmware.trim(now_ns, count);
                if let Some(work_ns) = self.firmware.trims_at_once_ns(count) {
                    self.log.note(EventKind::TrimService, done_ns - work_ns, done_ns, count);
                }
                (done_ns, Action::MetadataDecoded(slot))
            }
            Opcode::Flush | Opcode::WriteZeroes => {
                (self.firmware.metadata(now_ns), Action::MetadataDecoded(slot))
            }
        };
        self.events.schedule(at_ns, action);
    }

    pub(super) fn metadata_decoded(&mut self, slot: u32) {
        let command = self.command(slot).command;
        if command.opcode == Opcode::Flush {
            return self.await_durability(slot, AfterBarrier::Acknowledge);
        }
        let pages = touched_pages(&command);
        if command.opcode == Opcode::Trim {
            if let Some(slice_ns) =
                self.firmware.owe_for_trim(self.now_ns, u64::from(pages.end - pages.start))
            {
                self.events.schedule(slice_ns, Action::TrimSlice);
            }
        }
        self.translation.unmap(whole_pages(&command));
        if let Some(contents) = &mut self.contents {
            contents.trim(whole_pages(&command));
        }
        self.acknowledge(slot);
    }

    pub(super) fn work_on_trims(&mut self) {
        let slice = self.firmware.work_on_trims(self.now_ns);
        self.log.note(EventKind::TrimService, slice.start_ns, slice.end_ns, slice.pages);
        if let Some(next_ns) = slice.next_ns {
            self.events.schedule(next_ns, Action::TrimSlice);
        }
    }

    pub(super) fn acknowledge(&mut self, slot: u32) {
        let at_ns = self.now_ns + self.model.parameters().acknowledge_ns + self.outlier_ns();
        self.events.schedule(at_ns, Action::Completed(slot));
    }

    pub(super) fn complete(&mut self, slot: u32) {
        let entry = self.slots[slot as usize].take().expect("a command that completes is in flight");
        if entry.status == 0 {
            self.host.count(&entry.command);
        }
        self.completed.push_back(Completion { slot, complete_ns: self.now_ns, status: entry.status });
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.nand.power.rest(self.now_ns);
        }
        self.in_drive -= 1;
        if let Some(next) = self.waiting_in_host.pop_front() {
            self.admit(self.now_ns, next);
        }
    }
}
