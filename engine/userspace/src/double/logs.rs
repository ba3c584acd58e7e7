//! What the controller tells of itself: its logs (Base 5.16.1), and the features that can be set (Base 5.27.1).

use super::whole::Sanitized;
use super::{Entry, State};

/// The features that it has: power management, volatile write cache, number of queues, interrupt coalescing, autonomous power state
/// transitions, host memory buffer.
const POWER: u8 = 2;
const CACHE: u8 = 6;
const QUEUES: u8 = 7;
const COALESCING: u8 = 8;
const TRANSITIONS: u8 = 0x0c;
const HOST_MEMORY: u8 = 0x0d;
/// Entries of the error log.
pub(super) const ERROR_ENTRIES: usize = 4;

/// What the logs count.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// Entries of 64 bytes, the newest last.
    pub(super) errors: Vec<Entry>,
}

/// What features are set to, until a reset.
pub(super) struct Features {
    power_state: u32,
    has_cache_on: bool,
    /// Memory of the host: the address and the size of each piece.
    pub(super) lent: Vec<(u64, u64)>,
}

impl Default for Features {
    fn default() -> Self {
        Features { power_state: 0, has_cache_on: true, lent: Vec::new() }
    }
}

impl State {
    /// Counts an I/O command that is done.
    pub(super) fn count(&mut self, queue: u16, entry: &Entry, status: u16) {
        match entry[0] {
            0x01 => self.counters.writes += 1,
            0x02 => self.counters.reads += 1,
            _ => {}
        }
        if status != 0 {
            let mut error = [0; 64];
            error[..8].copy_from_slice(&(self.counters.errors.len() as u64 + 1).to_le_bytes());
            error[8..10].copy_from_slice(&queue.to_le_bytes());
            error[10..12].copy_from_slice(&entry[2..4]);
            error[12..14].copy_from_slice(&(status << 1).to_le_bytes());
            error[16..24].copy_from_slice(&entry[40..48]);
            error[24..28].copy_from_slice(&entry[4..8]);
            self.counters.errors.push(error);
        }
    }

    /// Get Log Page, from its start.
    pub(super) fn get_log(&self, entry: &Entry, dword10: u32, dword11: u32) -> u16 {
        let length = ((dword10 >> 16 | dword11 << 16) as usize + 1) * 4;
        let log = match dword10 & 0xff {
            0x01 => self.counters.errors.iter().rev().take(ERROR_ENTRIES).flatten().copied().collect(),
            0x02 => self.smart(),
            0x81 => self.sanitize_log(),
            _ => return 0x4109,
        };
        let mut bytes = log;
        bytes.resize(length, 0);
        self.store_data(entry, &bytes);
        0
    }

    fn smart(&self) -> Vec<u8> {
        let mut bytes = vec![0; 512];
        bytes[1..3].copy_from_slice(&310_u16.to_le_bytes());
        bytes[3..6].copy_from_slice(&[100, 10, 1]);
        let counters = [(64, self.counters.reads), (80, self.counters.writes)];
        for (offset, value) in
            counters.into_iter().chain([(112, 7), (128, 1234), (176, self.counters.errors.len() as u64)])
        {
            bytes[offset..offset + 8].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    fn sanitize_log(&self) -> Vec<u8> {
        let mut bytes = vec![0xff; 32];
        let (status, progress) = match self.sanitized {
            Sanitized::Never => (0, u16::MAX),
            Sanitized::Done => (1, u16::MAX),
            Sanitized::Running => (2, (u32::from(self.faults.done_percent) * 65_536 / 100) as u16),
            Sanitized::Failed => (3, u16::MAX),
        };
        bytes[..2].copy_from_slice(&progress.to_le_bytes());
        bytes[2..8].copy_from_slice(&[status, 0, 0, 0, 0, 0]);
        bytes
    }

    /// Set Features; the status, and dword 0 of the answer.
    pub(super) fn set_feature(&mut self, entry: &Entry) -> (u16, u32) {
        let dword =
            |index: usize| u32::from_le_bytes(entry[index * 4..][..4].try_into().expect("four bytes"));
        let (feature, value) = (dword(10) as u8, dword(11));
        match feature {
            HOST_MEMORY if self.model.host_memory_pages.is_some() && !self.faults.refuses_memory => {
                let list = u64::from(dword(13)) | u64::from(dword(14)) << 32;
                let pieces = if value & 1 == 1 { self.pieces_of(list, dword(15)) } else { Vec::new() };
                let bytes: u64 = pieces.iter().map(|(_, bytes)| bytes).sum();
                assert_eq!(bytes, u64::from(dword(12)) * 4096, "the list is of as much as is lent");
                self.features.lent = pieces;
                (0, 0)
            }
            QUEUES => {
                let granted = (value & 0xffff).min(u32::from(self.model.pairs) - 1);
                (0, granted | granted << 16)
            }
            POWER if value & 0x1f < u32::from(self.model.power_states) => {
                self.features.power_state = value & 0x1f;
                (0, 0)
            }
            CACHE if self.model.has_cache => {
                self.features.has_cache_on = value & 1 == 1;
                (0, 0)
            }
            _ => (0x4002, 0),
        }
    }

    /// The pieces of memory that a list names.
    fn pieces_of(&self, list: u64, count: u32) -> Vec<(u64, u64)> {
        let piece = |index: u32| {
            let mut bytes = [0; 16];
            self.load(list + u64::from(index) * 16, &mut bytes);
            let (address, pages) = bytes.split_at(8);
            let address = u64::from_le_bytes(address.try_into().expect("eight bytes"));
            let pages = u32::from_le_bytes(pages[..4].try_into().expect("four bytes"));
            assert!(address % 4096 == 0 && pages > 0, "{pages} pages at {address:#x}");
            (address, u64::from(pages) * 4096)
        };
        (0..count).map(piece).collect()
    }

    /// Keeps its tables in what it was lent: whatever it cannot reach any more is a fault.
    pub(super) fn use_lent_memory(&mut self) {
        if self.cut_off {
            return;
        }
        for (address, bytes) in &self.features.lent {
            self.store(*address, &self.random.to_le_bytes());
            self.store(address + bytes - 8, &self.random.to_le_bytes());
        }
    }

    /// Get Features, of what is set now.
    pub(super) fn get_feature(&self, entry: &Entry) -> (u16, u32) {
        match entry[40] {
            COALESCING => (0, 0),
            TRANSITIONS if self.model.sleeps => {
                self.store_data(entry, &[0; 256]);
                (0, 0)
            }
            HOST_MEMORY if self.model.host_memory_pages.is_some() => {
                let bytes: u64 = self.features.lent.iter().map(|(_, bytes)| bytes).sum();
                let mut attributes = [0; 4096];
                attributes[..4].copy_from_slice(&((bytes / 4096) as u32).to_le_bytes());
                self.store_data(entry, &attributes);
                (0, (bytes > 0).into())
            }
            POWER => (0, self.features.power_state),
            CACHE if self.model.has_cache => (0, self.features.has_cache_on.into()),
            _ => (0x4002, 0),
        }
    }
}
