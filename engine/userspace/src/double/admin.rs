//! What the controller does with commands of the admin queue.

use super::logs::ERROR_ENTRIES;
use super::rings::{Completion, Submission};
use super::{Entry, State};

impl State {
    pub(super) fn serve_admin(&mut self) {
        if self.faults.admin_silent {
            return;
        }
        while let Some(entry) = self.fetch(0) {
            let cid = u16::from_le_bytes([entry[2], entry[3]]);
            // A format is answered once it is done.
            if let Some((status, result)) = self.administer(&entry, cid) {
                self.complete(0, cid, status, result);
            }
        }
    }

    /// Does a command; its status and dword 0 of its answer, or `None` where it has only begun.
    fn administer(&mut self, entry: &Entry, cid: u16) -> Option<(u16, u32)> {
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        Some(match entry[0] {
            0x02 => (self.get_log(entry, dword(10), dword(11)), 0),
            0x06 => self.identify(entry, dword(1), dword(10) & 0xff),
            0x08 => self.abort(dword(10) as u16, (dword(10) >> 16) as u16),
            0x09 => self.set_feature(entry),
            0x0a => self.get_feature(entry),
            0x80 => return self.format(entry, cid, dword(10)).map(|status| (status, 0)),
            0x84 => (self.sanitize(dword(10)), 0),
            _ => self.change_queues(entry, dword(10), dword(11)),
        })
    }

    fn change_queues(&mut self, entry: &Entry, dword10: u32, dword11: u32) -> (u16, u32) {
        let prp1 = u64::from_le_bytes(entry[24..32].try_into().expect("eight bytes"));
        let (id, entries) = (dword10 as u16, (dword10 >> 16) + 1);
        match entry[0] {
            0x05 if id == 0 || id > self.model.pairs || self.completions.contains_key(&id) => (0x4101, 0),
            0x05 | 0x01 if entries > u32::from(self.model.queue_entries) => (0x4102, 0),
            0x05 => {
                assert_eq!(
                    (prp1 % 4096, dword11 & 1),
                    (0, 1),
                    "a queue in one piece, at the start of a page"
                );
                self.completions
                    .insert(id, Completion { base: prp1, entries, phase: true, ..Completion::default() });
                (0, 0)
            }
            0x01 if self.faults.refuses_queues => (0x4101, 0),
            0x04 if self.faults.keeps_queues => (0x410c, 0),
            0x01 => {
                let completion = (dword11 >> 16) as u16;
                if id == 0
                    || self.submissions.contains_key(&id)
                    || !self.completions.contains_key(&completion)
                {
                    return (0x4101, 0);
                }
                assert_eq!(
                    (prp1 % 4096, dword11 & 1),
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
            _ => (0x4001, 0),
        }
    }

    fn abort(&mut self, queue: u16, cid: u16) -> (u16, u32) {
        let is_meant = |(id, entry): &(u16, Entry)| *id == queue && entry[2..4] == cid.to_le_bytes();
        match self.pending.iter().position(is_meant).filter(|_| self.faults.aborts_work) {
            Some(index) => {
                self.pending.swap_remove(index);
                self.complete(queue, cid, 0x0007, 0);
                (0, 0)
            }
            None => (0, 1),
        }
    }

    fn identify(&self, entry: &Entry, nsid: u32, structure: u32) -> (u16, u32) {
        let mut bytes = [0_u8; 4096];
        match structure {
            0x00 => self.identify_namespace(&mut bytes),
            0x01 => self.identify_controller(&mut bytes),
            0x02 => {
                let above = self.model.namespaces.iter().filter(|id| **id > nsid);
                above
                    .zip(bytes.chunks_exact_mut(4))
                    .for_each(|(id, place)| place.copy_from_slice(&id.to_le_bytes()));
            }
            0x06 if self.model.trim_ranges > 0 => bytes[3] = self.model.trim_ranges,
            _ => return (0x4002, 0),
        }
        self.store_data(entry, &bytes);
        (0, 0)
    }

    fn identify_namespace(&self, bytes: &mut [u8; 4096]) {
        for offset in [0, 8] {
            bytes[offset..offset + 8].copy_from_slice(&self.model.blocks.to_le_bytes());
        }
        bytes[25..27].copy_from_slice(&[self.formats.len() as u8 - 1, self.format_index]);
        bytes[32] = 0x80 | self.format_percent_left();
        for ((block_bytes, metadata_bytes), place) in
            self.formats.iter().zip(bytes[128..].chunks_exact_mut(4))
        {
            let format = u32::from(*metadata_bytes) | block_bytes.trailing_zeros() << 16;
            place.copy_from_slice(&format.to_le_bytes());
        }
    }

    fn identify_controller(&self, bytes: &mut [u8; 4096]) {
        bytes[4..24].copy_from_slice(b"DOUBLE-1            ");
        bytes[24..64].copy_from_slice(b"A controller in memory                  ");
        bytes[64..72].copy_from_slice(b"1.0     ");
        bytes[77] = self.model.mdts;
        // Format NVM.
        bytes[256] = 2;
        bytes[262..264].copy_from_slice(&[ERROR_ENTRIES as u8 - 1, self.model.power_states - 1]);
        bytes[265] = self.model.sleeps.into();
        let (preferred, least) = self.model.host_memory_pages.unwrap_or((0, 0));
        bytes[272..276].copy_from_slice(&preferred.to_le_bytes());
        bytes[276..280].copy_from_slice(&least.to_le_bytes());
        bytes[328..332].copy_from_slice(&self.model.sanitize.to_le_bytes());
        bytes[336..338].copy_from_slice(&self.model.host_memory_pieces.to_le_bytes());
        bytes[520] = if self.model.can_trim { 0x0c } else { 0 };
        bytes[524..526].copy_from_slice(&[self.model.format_is_of_all.into(), self.model.has_cache.into()]);
    }
}
