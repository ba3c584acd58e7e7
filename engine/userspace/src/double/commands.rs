//! What the controller does with commands of I/O queues.

use super::{Entry, State};
use crate::memory::PAGE_BYTES;
use crate::registers::CSTS_FATAL;

impl State {
    /// Fetches what is there, and completes one of it, whichever.
    pub(super) fn serve(&mut self) {
        let ids: Vec<u16> = self.submissions.keys().copied().filter(|id| *id > 0).collect();
        for id in ids {
            while let Some(entry) = self.fetch(id) {
                self.log.push(entry);
                self.pending.push((id, entry));
            }
        }
        self.serve_admin();
        self.use_lent_memory();
        self.go_on_erasing();
        // What was fetched stays so, as in a controller whose medium hangs.
        if self.faults.silent || self.csts & CSTS_FATAL != 0 {
            return;
        }
        if self.pending.is_empty() {
            return;
        }
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chosen = (self.random >> 33) as usize % self.pending.len();
        let (id, entry) = self.pending.swap_remove(chosen);
        let status = self.carry_out(&entry);
        self.count(id, &entry, status);
        let cid = u16::from_le_bytes([entry[2], entry[3]]);
        if self.faults.nonsense {
            self.complete(id, cid ^ 0x7000, 0, 0);
        }
        self.complete(id, cid, status, 0);
        self.answered += 1;
    }

    /// Does one I/O command; its status.
    fn carry_out(&mut self, entry: &Entry) -> u16 {
        const OUT_OF_RANGE: u16 = 0x4080;
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        if !self.model.namespaces.contains(&dword(1)) {
            return 0x400b;
        }
        let block = self.model.block_bytes as usize;
        let first = u64::from(dword(10)) | u64::from(dword(11)) << 32;
        let blocks = u64::from(dword(12) & 0xffff) + 1;
        let within =
            |first: u64, blocks: u64| first.checked_add(blocks).is_some_and(|end| end <= self.model.blocks);
        if let Some(status) = self.refusal() {
            return status;
        }
        match entry[0] {
            0x00 => 0,
            0x01 | 0x02 | 0x08 if !within(first, blocks) => OUT_OF_RANGE,
            0x01 | 0x02 | 0x08
                if self.faults.bad_block.is_some_and(|bad| (first..first + blocks).contains(&bad)) =>
            {
                0x281
            }
            opcode @ (0x01 | 0x02) => {
                let length = blocks as usize * block;
                if self.model.mdts > 0 && length > PAGE_BYTES << self.model.mdts {
                    return 0x4002;
                }
                let mut at = first as usize * block;
                for (address, bytes) in self.data_of(entry, length) {
                    if opcode == 0x01 {
                        let mut piece = vec![0; bytes];
                        self.load(address, &mut piece);
                        self.storage[at..at + bytes].copy_from_slice(&piece);
                    } else {
                        self.store(address, &self.storage[at..at + bytes]);
                    }
                    at += bytes;
                }
                0
            }
            0x08 => {
                let at = first as usize * block;
                self.storage[at..at + blocks as usize * block].fill(0);
                0
            }
            0x09 => self.deallocate(entry, dword(10), dword(11)),
            _ => 0x4001,
        }
    }

    fn deallocate(&mut self, entry: &Entry, ranges: u32, attributes: u32) -> u16 {
        assert_eq!(attributes, 4, "deallocate and nothing else");
        let length = (ranges as usize & 0xff) * 16 + 16;
        let mut bytes = Vec::new();
        for (address, count) in self.data_of(entry, length) {
            let mut piece = vec![0; count];
            self.load(address, &mut piece);
            bytes.extend(piece);
        }
        let block = self.model.block_bytes as usize;
        for range in bytes.chunks_exact(16) {
            let count = u32::from_le_bytes(range[4..8].try_into().expect("four bytes"));
            let first = u64::from_le_bytes(range[8..].try_into().expect("eight bytes"));
            if first + u64::from(count) > self.model.blocks {
                return 0x4080;
            }
            self.storage[first as usize * block..][..count as usize * block].fill(0);
        }
        0
    }
}
