//! The way of a read: which of its pages come from where, and back to the host.

use super::{SimulatedDrive, Stage, NOBODY};
use crate::command::touched_pages;
use crate::events::Action;
use crate::log::EventKind;
use crate::mapping_cache::{Found, MappingCache};
use crate::server::transfer_ns;
use std::ops::Range;
use testdrive_core::SplitMix64;

/// Pages of a read that lie in one NAND page.
struct Group {
    nand_page: u64,
    place: u32,
    pages: u32,
}

impl SimulatedDrive {
    /// Looks the pages of a read up, in the NAND if the mapping has to come from there.
    pub(super) fn read(&mut self, slot: u32) {
        let pages = touched_pages(&self.command(slot).command);
        let misses = self.look_up(&pages, false, slot);
        if misses > 0 {
            self.await_groups(slot, Stage::Mapping, misses);
        } else {
            self.read_data(slot);
        }
    }

    fn read_data(&mut self, slot: u32) {
        let pages = touched_pages(&self.command(slot).command);
        let groups = self.read_pages(slot, pages);
        if groups == 0 {
            self.return_data(slot);
        } else {
            self.await_groups(slot, Stage::Data, groups);
        }
    }

    pub(super) fn await_groups(&mut self, slot: u32, stage: Stage, groups: u32) {
        let entry = self.command_mut(slot);
        (entry.stage, entry.groups_left) = (stage, groups);
    }

    /// Reads what is not in memory of the mapping of these pages, for the command of this slot; returns how many reads that takes.
    pub(super) fn look_up(&mut self, pages: &Range<u32>, changes: bool, slot: u32) -> u32 {
        let Some(cache) = &mut self.mapping_cache else { return 0 };
        let mut misses = 0;
        for page in MappingCache::covering(pages) {
            if let Found::InNand { writes_back } = cache.access(page, changes) {
                misses += 1;
                // The mapping lies anywhere.
                let planes = u64::from(self.nand.dies() * self.model.parameters().planes_per_die);
                let plane = SplitMix64::new(u64::from(page)).below(planes) as u32;
                self.nand.read(self.now_ns, plane, slot, 1, &mut self.events);
                if writes_back {
                    self.overhead.owe_for_page();
                }
            }
        }
        if misses > 0 {
            self.log.extend(EventKind::MappingMisses, self.now_ns, u64::from(misses));
        }
        misses
    }

    /// Sends each NAND page of these to its plane; what is in DRAM or holds nothing needs none. Returns how many there are.
    pub(super) fn read_pages(&mut self, slot: u32, pages: impl Iterator<Item = u32>) -> u32 {
        let mut groups = 0;
        let mut group: Option<Group> = None;
        for page in pages {
            let Some(place) = self.translation.slot_of(page) else {
                self.unmapped_pages_read += 1;
                continue;
            };
            if self.buffer.holds(self.translation.unit_of(place)) {
                self.buffered_pages_read += 1;
                continue;
            }
            let nand_page = self.placement.nand_page_of(place);
            match &mut group {
                Some(group) if group.nand_page == nand_page => group.pages += 1,
                _ => {
                    groups += u32::from(group.is_some());
                    self.read_group(slot, group.replace(Group { nand_page, place, pages: 1 }));
                }
            }
        }
        groups += u32::from(group.is_some());
        self.read_group(slot, group);
        groups
    }

    #[inline]
    fn read_group(&mut self, slot: u32, group: Option<Group>) {
        if let Some(Group { place, pages, .. }) = group {
            let plane = self.placement.plane_of(place);
            self.nand.read(self.now_ns, plane, slot, pages, &mut self.events);
        }
    }

    pub(super) fn group_transferred(&mut self, slot: u32) {
        if slot == NOBODY {
            return;
        }
        let entry = self.command_mut(slot);
        entry.groups_left -= 1;
        if entry.groups_left == 0 {
            match entry.stage {
                Stage::Mapping => self.read_data(slot),
                Stage::Data => self.return_data(slot),
                Stage::Merge => self.queue_write(slot),
            }
        }
    }

    /// A read crosses the host link once all of it is there.
    fn return_data(&mut self, slot: u32) {
        let command = self.command(slot).command;
        self.command_mut(slot).status = self.read_status(&command);
        let link_ns = transfer_ns(command.length_bytes, self.model.parameters().host_link_bytes_per_s);
        let done_ns = self.link_out.serve(self.now_ns, link_ns) + self.outlier_ns();
        self.events.schedule(done_ns, Action::Completed(slot));
    }
}
