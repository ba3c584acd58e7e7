//! What the controller tells of itself: its logs (Base 5.16.1), and the features that can be set (Base 5.27.1).

use super::whole::Sanitized;
use super::{Entry, State};

/// The features that it has: power management, volatile write cache, number of queues.
const POWER: u8 = 2;
const CACHE: u8 = 6;
const QUEUES: u8 = 7;
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
}

impl Default for Features {
    fn default() -> Self {
        Features { power_state: 0, has_cache_on: true }
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
    pub(super) fn set_feature(&mut self, feature: u8, value: u32) -> (u16, u32) {
        match feature {
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

    /// Get Features, of what is set now.
    pub(super) fn get_feature(&self, feature: u8) -> (u16, u32) {
        match feature {
            POWER => (0, self.features.power_state),
            CACHE if self.model.has_cache => (0, self.features.has_cache_on.into()),
            _ => (0x4002, 0),
        }
    }
}
