//! The way of a read: which of its pages come from where, and back to the host.

use super::SimulatedDrive;
use crate::command::touched_pages;
use crate::events::Action;
use crate::server::transfer_ns;

/// Pages of a read that lie in one NAND page.
struct Group {
    nand_page: u32,
    place: u32,
    pages: u32,
}

impl SimulatedDrive {
    /// Sends each NAND page that a read touches to its plane; what is in DRAM or holds nothing needs none.
    pub(super) fn read(&mut self, slot: u32) {
        let mut groups = 0;
        let mut group: Option<Group> = None;
        for page in touched_pages(&self.command(slot).command) {
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
        if groups == 0 {
            self.return_data(slot);
        } else {
            self.command_mut(slot).groups_left = groups;
        }
    }

    #[inline]
    fn read_group(&mut self, slot: u32, group: Option<Group>) {
        if let Some(Group { place, pages, .. }) = group {
            let plane = self.placement.plane_of(place);
            self.nand.read(self.now_ns, plane, slot, pages, &mut self.events);
        }
    }

    pub(super) fn group_transferred(&mut self, slot: u32) {
        let entry = self.command_mut(slot);
        entry.groups_left -= 1;
        if entry.groups_left == 0 {
            self.return_data(slot);
        }
    }

    /// A read crosses the host link once all of it is there.
    fn return_data(&mut self, slot: u32) {
        let length_bytes = self.command(slot).command.length_bytes;
        let link_ns = transfer_ns(length_bytes, self.model.parameters().host_link_bytes_per_s);
        self.events.schedule(self.link_out.serve(self.now_ns, link_ns), Action::Completed(slot));
    }
}
