//! What the controller does with commands of the admin queue.

use super::rings::{Completion, Submission};
use super::{Entry, State};

impl State {
    pub(super) fn serve_admin(&mut self) {
        if self.faults.admin_silent {
            return;
        }
        while let Some(entry) = self.fetch(0) {
            let cid = u16::from_le_bytes([entry[2], entry[3]]);
            let (status, result) = self.administer(&entry);
            self.complete(0, cid, status, result);
        }
    }

    fn administer(&mut self, entry: &Entry) -> (u16, u32) {
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        let prp1 = u64::from_le_bytes(entry[24..32].try_into().expect("eight bytes"));
        let (id, entries) = (dword(10) as u16, (dword(10) >> 16) + 1);
        match entry[0] {
            0x05 if id == 0 || id > self.model.pairs || self.completions.contains_key(&id) => (0x4101, 0),
            0x05 | 0x01 if entries > u32::from(self.model.queue_entries) => (0x4102, 0),
            0x05 => {
                assert_eq!(
                    (prp1 % 4096, dword(11) & 1),
                    (0, 1),
                    "a queue in one piece, at the start of a page"
                );
                self.completions
                    .insert(id, Completion { base: prp1, entries, phase: true, ..Completion::default() });
                (0, 0)
            }
            0x01 => {
                let completion = (dword(11) >> 16) as u16;
                if id == 0
                    || self.submissions.contains_key(&id)
                    || !self.completions.contains_key(&completion)
                {
                    return (0x4101, 0);
                }
                assert_eq!(
                    (prp1 % 4096, dword(11) & 1),
                    (0, 1),
                    "a queue in one piece, at the start of a page"
                );
                self.submissions
                    .insert(id, Submission { base: prp1, entries, completion, ..Submission::default() });
                (0, 0)
            }
            0x00 => {
                self.pending.retain(|(queue, _)| *queue != id);
                (if self.submissions.remove(&id).is_some() { 0 } else { 0x4101 }, 0)
            }
            0x04 => {
                let in_use = self.submissions.values().any(|queue| queue.completion == id);
                match (in_use, self.completions.remove(&id)) {
                    (false, Some(_)) => (0, 0),
                    _ => (0x410c, 0),
                }
            }
            0x06 => self.identify(entry, dword(1), dword(10) & 0xff),
            0x08 => {
                let (queue, cid) = (dword(10) as u16, (dword(10) >> 16) as u16);
                let found = self
                    .pending
                    .iter()
                    .position(|(id, entry)| *id == queue && entry[2..4] == cid.to_le_bytes());
                match found.filter(|_| self.faults.aborts_work) {
                    Some(index) => {
                        self.pending.swap_remove(index);
                        self.complete(queue, cid, 0x0007, 0);
                        (0, 0)
                    }
                    None => (0, 1),
                }
            }
            0x09 if dword(10) == 7 => {
                let granted = (dword(11) & 0xffff).min(u32::from(self.model.pairs) - 1);
                (0, granted | granted << 16)
            }
            _ => (0x4001, 0),
        }
    }

    fn identify(&self, entry: &Entry, nsid: u32, structure: u32) -> (u16, u32) {
        let mut bytes = [0_u8; 4096];
        match structure {
            0x00 => {
                for offset in [0, 8] {
                    bytes[offset..offset + 8].copy_from_slice(&self.model.blocks.to_le_bytes());
                }
                let format =
                    u32::from(self.model.metadata_bytes) | self.model.block_bytes.trailing_zeros() << 16;
                bytes[128..132].copy_from_slice(&format.to_le_bytes());
            }
            0x01 => {
                bytes[4..24].copy_from_slice(b"DOUBLE-1            ");
                bytes[24..64].copy_from_slice(b"A controller in memory                  ");
                bytes[64..72].copy_from_slice(b"1.0     ");
                bytes[77] = self.model.mdts;
                bytes[520] = if self.model.can_trim { 0x0c } else { 0 };
            }
            0x02 => {
                let above = self.model.namespaces.iter().filter(|id| **id > nsid);
                above
                    .zip(bytes.chunks_exact_mut(4))
                    .for_each(|(id, place)| place.copy_from_slice(&id.to_le_bytes()));
            }
            _ => return (0x4002, 0),
        }
        let mut at = 0;
        for (address, count) in self.data_of(entry, bytes.len()) {
            self.store(address, &bytes[at..at + count]);
            at += count;
        }
        (0, 0)
    }
}
