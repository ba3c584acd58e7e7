//! I/Os as commands on the rings: parts that a command can carry, and trims of a burst together.

use super::{PassthruDrive, TRIM_TAG};
use crate::passthru::ioctl::{uring_command, NVME_URING_CMD_IO};
use io_uring::{opcode, squeue, types};
use testdrive_nvme::{flush, NvmCommand};

impl PassthruDrive {
    fn entry(&self, command: &NvmCommand, address: u64, user_data: u64) -> squeue::Entry128 {
        let bytes = uring_command(command, address);
        let buffer = match command.data_bytes {
            0 => None,
            length_bytes => self.registered.index_of(address, length_bytes),
        };
        let entry = if self.registered_file {
            opcode::UringCmd80::new(types::Fixed(0), NVME_URING_CMD_IO).cmd(bytes).buf_index(buffer).build()
        } else {
            let file = types::Fd(self.device.fd());
            opcode::UringCmd80::new(file, NVME_URING_CMD_IO).cmd(bytes).buf_index(buffer).build()
        };
        entry.user_data(user_data)
    }

    /// Sends what is waiting, as far as there is room.
    pub(super) fn send(&mut self) {
        while let Some(&slot) = self.backlog.front() {
            if !self.send_parts(slot) {
                break;
            }
            self.backlog.pop_front();
        }
        self.send_trims();
    }

    /// Sends the parts of an I/O; false where there was no room for all of them.
    pub(super) fn send_parts(&mut self, slot: u32) -> bool {
        let maker = self.device.commands();
        loop {
            let io = self.ios[slot as usize];
            if io.flushes_next() {
                if !self.plain.has_room_for(1) {
                    return false;
                }
                let entry = self.entry(&flush(maker.nsid), 0, slot.into());
                // SAFETY: a flush points to nothing.
                unsafe { self.plain.push([&entry]) };
                self.ios[slot as usize].take_flush();
                // A write goes on when its flush is done.
                return true;
            }
            let Some(part) = io.next(maker.blocks_max(io.opcode)) else { return true };
            let Some(command) = maker.command(io.opcode, part, io.fua) else {
                if !self.trims.add(slot, part) {
                    self.trims.close();
                    return false;
                }
                self.ios[slot as usize].took(part, maker.block);
                continue;
            };
            let address = if command.data_bytes > 0 { io.address } else { 0 };
            let entry = self.entry(&command, address, slot.into());
            let lane = match &mut self.polled {
                Some(lane) if command.data_bytes > 0 => lane,
                _ => &mut self.plain,
            };
            if !lane.has_room_for(1) {
                return false;
            }
            // SAFETY: the command points into the buffers, mapped until the ring is gone.
            unsafe { lane.push([&entry]) };
            self.ios[slot as usize].took(part, maker.block);
        }
    }

    /// Sends the trims whose burst is over.
    fn send_trims(&mut self) {
        while self.trims.has_ready() && self.plain.has_room_for(1) {
            let Some((index, command, address)) = self.trims.take(self.device.nsid) else { return };
            let entry = self.entry(&command, address, u64::from(index) | TRIM_TAG);
            // SAFETY: the command points into the trims' memory, mapped until the ring is gone, and its place is not free until then.
            unsafe { self.plain.push([&entry]) };
        }
    }
}
