//! One record of binary blktrace, to the byte.

use crate::event::{BlockEvent, Device, EventKind};
use testdrive_core::{Flags, Opcode, SECTOR_BYTES};

/// The first word of a record, without the version in its last byte.
const MAGIC: u32 = 0x6561_7400;
const HEADER_BYTES_V7: usize = 48;
const HEADER_BYTES_V8: usize = 64;
/// The longer of the two headers.
pub(super) const HEADER_BYTES_MAX: usize = HEADER_BYTES_V8;

/// Categories: what an event is of, as bits.
mod category {
    pub const READ: u64 = 1 << 0;
    pub const FLUSH: u64 = 1 << 2;
    pub const SYNC: u64 = 1 << 3;
    pub const PASSTHROUGH: u64 = 1 << 9;
    pub const NOTE: u64 = 1 << 10;
    pub const AHEAD: u64 = 1 << 11;
    pub const META: u64 = 1 << 12;
    pub const DISCARD: u64 = 1 << 13;
    pub const FUA: u64 = 1 << 15;
    /// Zone append, reset, reset all, finish, open and close: version 8 only.
    pub const ZONE: u64 = 0b11_1111 << 16;
    /// Version 8 only: version 7 has write zeroes as plain writes.
    pub const WRITE_ZEROES: u64 = 1 << 22;
}

/// An eight-byte cgroup stands before what else is attached.
const ACT_WITH_CGROUP: u64 = 0x100;
const CGROUP_BYTES: usize = 8;

/// Which end of a number comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ByteOrder {
    Little,
    Big,
}

impl ByteOrder {
    /// The order in which the magic number is one; `None` where it is none in either.
    pub fn of_magic(bytes: &[u8]) -> Option<ByteOrder> {
        let word = bytes.first_chunk::<4>()?;
        if u32::from_le_bytes(*word) & !0xff == MAGIC {
            Some(ByteOrder::Little)
        } else if u32::from_be_bytes(*word) & !0xff == MAGIC {
            Some(ByteOrder::Big)
        } else {
            None
        }
    }

    #[inline(always)]
    fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        match self {
            ByteOrder::Little => u16::from_le_bytes(word),
            ByteOrder::Big => u16::from_be_bytes(word),
        }
    }

    #[inline(always)]
    fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        match self {
            ByteOrder::Little => u32::from_le_bytes(word),
            ByteOrder::Big => u32::from_be_bytes(word),
        }
    }

    #[inline(always)]
    fn u64(self, bytes: &[u8], at: usize) -> u64 {
        let word = bytes[at..].first_chunk().copied().unwrap_or_default();
        match self {
            ByteOrder::Little => u64::from_le_bytes(word),
            ByteOrder::Big => u64::from_be_bytes(word),
        }
    }
}

/// The bytes end before the header does.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Short;

/// The fixed part of a record; the versions differ in order and width only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub time_ns: u64,
    pub sector: u64,
    pub bytes: u32,
    /// Category above sixteen bits of act.
    pub action: u64,
    pub device: u32,
    pub cpu: u32,
    pub error: u16,
    pub pdu_bytes: u16,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    Event(BlockEvent),
    /// A command that was handed through to the driver: no I/O of the workload's.
    Passthrough,
    Zone,
    /// A note, or an event that pairing does not need.
    Nothing,
}

impl Header {
    /// The header at the start of `bytes` and its length; `None` where no known version stands there.
    #[inline]
    pub fn parse(bytes: &[u8], order: ByteOrder) -> Option<Result<(Header, usize), Short>> {
        let magic = order.u32(bytes, 0);
        match magic.checked_sub(MAGIC)? {
            7 if bytes.len() < HEADER_BYTES_V7 => Some(Err(Short)),
            7 => Some(Ok((Header::parse_v7(bytes, order), HEADER_BYTES_V7))),
            8 if bytes.len() < HEADER_BYTES_V8 => Some(Err(Short)),
            8 => Some(Ok((Header::parse_v8(bytes, order), HEADER_BYTES_V8))),
            _ => None,
        }
    }

    #[inline]
    fn parse_v7(bytes: &[u8], order: ByteOrder) -> Header {
        Header {
            time_ns: order.u64(bytes, 8),
            sector: order.u64(bytes, 16),
            bytes: order.u32(bytes, 24),
            action: u64::from(order.u32(bytes, 28)),
            device: order.u32(bytes, 36),
            cpu: order.u32(bytes, 40),
            error: order.u16(bytes, 44),
            pdu_bytes: order.u16(bytes, 46),
        }
    }

    #[inline]
    fn parse_v8(bytes: &[u8], order: ByteOrder) -> Header {
        Header {
            time_ns: order.u64(bytes, 8),
            sector: order.u64(bytes, 16),
            bytes: order.u32(bytes, 24),
            action: order.u64(bytes, 32),
            device: order.u32(bytes, 40),
            cpu: order.u32(bytes, 44),
            error: order.u16(bytes, 48),
            pdu_bytes: order.u16(bytes, 50),
        }
    }

    /// What the record says, with what is attached to it.
    #[inline]
    pub fn meaning(&self, pdu: &[u8]) -> Meaning {
        let category = self.action >> 16;
        if category & category::NOTE != 0 {
            return Meaning::Nothing;
        }
        let act = self.action & 0xffff;
        let attached = if act & ACT_WITH_CGROUP != 0 { pdu.get(CGROUP_BYTES..).unwrap_or(&[]) } else { pdu };
        let kind = match act & !ACT_WITH_CGROUP {
            1 => EventKind::Queue,
            6 => EventKind::Requeue,
            7 => EventKind::Issue,
            8 => EventKind::Complete,
            15 => match remap_origin(attached) {
                Some((from, from_sector)) => EventKind::Remap { from, from_sector },
                None => return Meaning::Nothing,
            },
            _ => return Meaning::Nothing,
        };
        if category & (category::PASSTHROUGH | category::ZONE) != 0 {
            // One command has several events; its issue is counted.
            return match (kind, category & category::PASSTHROUGH != 0) {
                (EventKind::Issue, true) => Meaning::Passthrough,
                (EventKind::Issue, false) => Meaning::Zone,
                _ => Meaning::Nothing,
            };
        }
        let (opcode, flags) = self.opcode_and_flags(category);
        Meaning::Event(BlockEvent {
            time_ns: i64::try_from(self.time_ns).unwrap_or(i64::MAX),
            device: Device::from_kernel(self.device),
            kind,
            opcode,
            flags,
            sector: self.sector,
            sectors: u64::from(self.bytes).div_ceil(SECTOR_BYTES),
            cpu: i32::try_from(self.cpu).unwrap_or(-1),
            // The kernel writes a negative errno into sixteen bits.
            status: i32::from(self.error.cast_signed().unsigned_abs()),
        })
    }

    fn opcode_and_flags(&self, category: u64) -> (Opcode, Flags) {
        let has = |bit: u64| category & bit != 0;
        let is_flush = has(category::FLUSH) && has(category::READ) && self.bytes == 0;
        let opcode = if has(category::DISCARD) {
            Opcode::Trim
        } else if has(category::WRITE_ZEROES) {
            Opcode::WriteZeroes
        } else if is_flush {
            Opcode::Flush
        } else if has(category::READ) {
            Opcode::Read
        } else {
            Opcode::Write
        };
        let mut flags = Flags::NONE;
        for (bit, flag) in [
            (category::FLUSH, Flags::PREFLUSH),
            (category::FUA, Flags::FUA),
            (category::SYNC, Flags::SYNC),
            (category::META, Flags::METADATA),
            (category::AHEAD, Flags::READ_AHEAD),
        ] {
            if has(bit) {
                flags |= flag;
            }
        }
        if opcode == Opcode::Flush {
            flags = Flags(flags.0 & !(Flags::PREFLUSH.0 | Flags::FUA.0));
        }
        (opcode, flags)
    }
}

/// Where a remapped bio was queued; big-endian whatever the trace's order.
fn remap_origin(pdu: &[u8]) -> Option<(Device, u64)> {
    let device = u32::from_be_bytes(*pdu.first_chunk()?);
    let sector = u64::from_be_bytes(*pdu.get(8..)?.first_chunk()?);
    Some((Device::from_kernel(device), sector))
}
