//! The controller's registers (NVM Express Base Specification 2.0, 3.1).

use crate::function::Function;
use std::time::Duration;

/// Controller capabilities.
pub const CAP: usize = 0x00;
/// Version.
pub const VS: usize = 0x08;
/// Controller configuration.
pub const CC: usize = 0x14;
/// Controller status.
pub const CSTS: usize = 0x1c;
/// Admin queue attributes.
pub const AQA: usize = 0x24;
/// Admin submission queue base address.
pub const ASQ: usize = 0x28;
/// Admin completion queue base address.
pub const ACQ: usize = 0x30;
/// Controller ready timeouts.
pub const CRTO: usize = 0x68;
/// The first doorbell.
pub const DOORBELLS: usize = 0x1000;

/// CC: enable.
pub const CC_ENABLE: u32 = 1;
/// CC: the entries of submission queues have 2^6 bytes, those of completion queues 2^4.
pub const CC_ENTRY_SIZES: u32 = 6 << 16 | 4 << 20;
/// CC: shutdown notification.
pub const CC_SHUTDOWN_MASK: u32 = 3 << 14;
/// CC: a normal shutdown.
pub const CC_SHUTDOWN_NORMAL: u32 = 1 << 14;

/// CSTS: ready.
pub const CSTS_READY: u32 = 1;
/// CSTS: controller fatal status.
pub const CSTS_FATAL: u32 = 1 << 1;
/// CSTS: shutdown status.
pub const CSTS_SHUTDOWN_MASK: u32 = 3 << 2;
/// CSTS: the shutdown is complete.
pub const CSTS_SHUTDOWN_COMPLETE: u32 = 2 << 2;

/// What a function answers that is not there any more.
pub const ALL_ONES: u32 = u32::MAX;

/// What CAP says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The most entries of a queue (MQES, which counts from 0).
    pub queue_entries_max: u32,
    /// Doorbells are so many bytes apart (DSTRD).
    pub doorbell_stride: usize,
    /// How long it may take to become ready, or to stop (TO).
    pub timeout: Duration,
    /// The smallest page, as a power of two (MPSMIN).
    pub page_shift_min: u32,
    /// The largest page, as a power of two (MPSMAX).
    pub page_shift_max: u32,
    /// Whether it has the NVM command set (CSS).
    pub nvm_command_set: bool,
    /// Whether CRTO says how long it may take to become ready (CRMS bit 0), which TO may be too small for.
    ready_timeouts: bool,
}

impl Capabilities {
    /// From the register.
    pub fn decode(cap: u64) -> Capabilities {
        let field = |shift: u32, bits: u32| (cap >> shift & ((1 << bits) - 1)) as u32;
        // 0 is not allowed; a controller that says so would never be waited for.
        let timeout_units = field(24, 8).max(1);
        Capabilities {
            queue_entries_max: field(0, 16) + 1,
            doorbell_stride: 4 << field(32, 4),
            timeout: Duration::from_millis(u64::from(timeout_units) * 500),
            page_shift_min: 12 + field(48, 4),
            page_shift_max: 12 + field(52, 4),
            nvm_command_set: field(37, 8) & 1 == 1,
            ready_timeouts: field(59, 1) == 1,
        }
    }

    /// What a controller says; `None` of one that is not there.
    pub fn of(function: &impl Function) -> Option<Capabilities> {
        let cap = function.read64(CAP);
        let decoded = (cap != u64::MAX).then(|| Capabilities::decode(cap))?;
        Some(match decoded.ready_timeouts {
            true => decoded.with_ready_timeouts(function.read32(CRTO)),
            false => decoded,
        })
    }

    /// With what CRTO says of controllers that are ready with their media, as we start them. Some say less there than in TO: the longer
    /// of the two is waited for.
    fn with_ready_timeouts(self, crto: u32) -> Capabilities {
        let with_media = Duration::from_millis(u64::from(crto & 0xffff) * 500);
        Capabilities { timeout: self.timeout.max(with_media), ..self }
    }

    /// Where the doorbell of a submission queue is; that of its completion queue is one stride further.
    pub fn doorbell(&self, queue: u16) -> usize {
        DOORBELLS + 2 * usize::from(queue) * self.doorbell_stride
    }

    /// How many bytes of registers the doorbells of so many I/O queue pairs take, beside the admin queue's.
    pub fn registers_of(&self, pairs: u16) -> usize {
        DOORBELLS + 2 * (usize::from(pairs) + 1) * self.doorbell_stride
    }

    /// How many I/O queue pairs have their doorbells in so many bytes of registers.
    pub fn pairs_within(&self, registers_bytes: usize) -> u16 {
        let pairs = registers_bytes.saturating_sub(DOORBELLS) / (2 * self.doorbell_stride);
        u16::try_from(pairs.saturating_sub(1)).unwrap_or(u16::MAX)
    }
}

/// Whether the controller is there, and well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// There, and nothing is wrong.
    Good,
    /// It says that it failed.
    Fatal,
    /// Nothing answers.
    Gone,
    /// There, and somebody wants it back.
    WantedBack,
}

/// Looks at CSTS, and at what the host says.
pub fn health(function: &impl Function) -> Health {
    match function.read32(CSTS) {
        ALL_ONES => Health::Gone,
        _ if function.is_wanted_back() => Health::WantedBack,
        status if status & CSTS_FATAL != 0 => Health::Fatal,
        _ => Health::Good,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_decoded_as_the_specification_has_them() {
        // MQES 2047, TO 15 (7.5 s), DSTRD 1, CSS bit 0, MPSMIN 0, MPSMAX 4.
        let cap = 0x7ff | 15 << 24 | 1 << 32 | 1 << 37 | 4 << 52;
        let decoded = Capabilities::decode(cap);
        assert_eq!((decoded.queue_entries_max, decoded.doorbell_stride), (2048, 8));
        assert_eq!(decoded.timeout, Duration::from_millis(7500));
        assert_eq!((decoded.page_shift_min, decoded.page_shift_max, decoded.nvm_command_set), (12, 16, true));
        assert_eq!((decoded.doorbell(0), decoded.doorbell(3)), (0x1000, 0x1030));
        // The admin queue's doorbells come first.
        assert_eq!((decoded.pairs_within(0x2000), decoded.pairs_within(0x1000)), (255, 0));
        assert_eq!((decoded.registers_of(255), decoded.pairs_within(decoded.registers_of(7))), (0x2000, 7));
        assert!(!Capabilities::decode(0).nvm_command_set);
        assert_eq!(Capabilities::decode(0).timeout, Duration::from_millis(500));
    }

    #[test]
    fn the_longer_of_the_times_to_become_ready_counts() {
        let decoded = Capabilities::decode(0xff << 24 | 1 << 59);
        assert!(decoded.ready_timeouts && decoded.timeout == Duration::from_millis(127_500));
        // CRIMT, in the upper half, is of controllers that are ready before their media.
        assert_eq!(decoded.with_ready_timeouts(0xffff_0000 | 400).timeout, Duration::from_secs(200));
        assert_eq!(decoded.with_ready_timeouts(0).timeout, decoded.timeout);
        assert!(!Capabilities::decode(0xff << 24 | 1 << 60).ready_timeouts);
    }
}
