//! The way of a read: which of its pages come from where, and back to the host.

use super::SimulatedDrive;
use crate::command::touched_pages;
use crate::events::Action;
use crate::server::transfer_ns;

impl SimulatedDrive {
    /// Sends each NAND page that a read touches to its plane; what is in DRAM or holds nothing needs none.
    pub(super) fn read(&mut self, slot: u32) {
        let mut pages = touched_pages(&self.command(slot).command);
        let mut groups = 0;
        while pages.start < pages.end {
            let nand_page = self.mapping.nand_page_of(pages.start);
            let mut wanted = 0;
            while pages.start < pages.end && self.mapping.nand_page_of(pages.start) == nand_page {
                if self.buffer.holds(pages.start) {
                    self.buffered_pages_read += 1;
                } else if self.mapping.is_mapped(pages.start) {
                    wanted += 1;
                } else {
                    self.unmapped_pages_read += 1;
                }
                pages.start += 1;
            }
            if wanted > 0 {
                groups += 1;
                let plane = self.mapping.plane_of(nand_page);
                self.nand.read(self.now_ns, plane, slot, wanted, &mut self.events);
            }
        }
        if groups == 0 {
            self.return_data(slot);
        } else {
            self.command_mut(slot).groups_left = groups;
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
