//! What an I/O is: the command, its completion, and the row that is recorded of both.

use serde::{Deserialize, Serialize};

/// `latency_ns` of an I/O whose completion was never seen.
pub const NO_COMPLETION: i64 = -1;

/// What an I/O does. The discriminants are the recording format's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum Opcode {
    /// Transfers from the drive.
    Read = 0,
    /// Transfers to the drive.
    Write = 1,
    /// Tells the drive that the range holds nothing any more (discard, deallocate, UNMAP).
    Trim = 2,
    /// Makes everything acknowledged durable.
    Flush = 3,
    /// Writes zeroes without transferring them.
    WriteZeroes = 4,
}

impl Opcode {
    /// Every opcode, in the order of its number.
    pub const ALL: [Opcode; 5] =
        [Opcode::Read, Opcode::Write, Opcode::Trim, Opcode::Flush, Opcode::WriteZeroes];

    /// The name used in manifests, reports and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Opcode::Read => "read",
            Opcode::Write => "write",
            Opcode::Trim => "trim",
            Opcode::Flush => "flush",
            Opcode::WriteZeroes => "write_zeroes",
        }
    }

    /// The opcode of a number in a recording, or `None` where there is none.
    pub const fn from_number(number: i32) -> Option<Opcode> {
        match number {
            0 => Some(Opcode::Read),
            1 => Some(Opcode::Write),
            2 => Some(Opcode::Trim),
            3 => Some(Opcode::Flush),
            4 => Some(Opcode::WriteZeroes),
            _ => None,
        }
    }

    /// The opcode of a name; plurals are accepted, since people write `--only reads,writes`.
    pub fn from_name(name: &str) -> Option<Opcode> {
        let name = name.trim().to_ascii_lowercase();
        Opcode::ALL.into_iter().find(|opcode| {
            let own = opcode.name();
            name == own || name.strip_suffix('s') == Some(own) || name.strip_suffix("es") == Some(own)
        })
    }

    /// Whether the drive's content changes, so that consent is needed.
    pub const fn modifies(self) -> bool {
        matches!(self, Opcode::Write | Opcode::Trim | Opcode::WriteZeroes)
    }

    /// Whether bytes move between host and drive.
    pub const fn transfers(self) -> bool {
        matches!(self, Opcode::Read | Opcode::Write)
    }
}

/// Modifiers of an I/O; the bits are the recording format's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flags(pub u8);

impl Flags {
    /// No modifier.
    pub const NONE: Flags = Flags(0);
    /// Forced unit access: complete only once durable.
    pub const FUA: Flags = Flags(1);
    /// Flush the drive's cache before this I/O.
    pub const PREFLUSH: Flags = Flags(2);
    /// The submitter waits for it.
    pub const SYNC: Flags = Flags(4);
    /// File system metadata.
    pub const METADATA: Flags = Flags(8);
    /// Read ahead of need.
    pub const READ_AHEAD: Flags = Flags(16);

    /// Every modifier with its name in files that people read.
    pub const NAMED: [(Flags, &'static str); 5] = [
        (Flags::FUA, "fua"),
        (Flags::PREFLUSH, "preflush"),
        (Flags::SYNC, "sync"),
        (Flags::METADATA, "metadata"),
        (Flags::READ_AHEAD, "read_ahead"),
    ];

    /// The modifier of a name, whatever its case.
    pub fn from_name(name: &str) -> Option<Flags> {
        let named = Flags::NAMED.iter().find(|(_, own)| own.eq_ignore_ascii_case(name));
        named.map(|(flag, _)| *flag)
    }

    /// These modifiers without those of `other`.
    #[must_use]
    pub const fn without(self, other: Flags) -> Flags {
        Flags(self.0 & !other.0)
    }

    /// Whether every bit of `other` is set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

/// One I/O to be issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Command {
    /// Where on the drive; ignored by a flush.
    pub offset_bytes: u64,
    /// How much; 0 for a flush.
    pub length_bytes: u64,
    /// What to do.
    pub opcode: Opcode,
    /// How.
    pub flags: Flags,
}

/// What a drive says when a command is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The slot that the command was submitted with.
    pub slot: u32,
    /// When, on the drive's clock.
    pub complete_ns: i64,
    /// 0, a positive errno, or an NVMe status with bit 16 set (`testdrive_nvme::Status::recorded`). A short transfer is `EIO`.
    pub status: i32,
}

/// One row of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoRecord {
    /// When the workload wanted it issued.
    pub intended_ns: i64,
    /// When it was handed to the device.
    pub submit_ns: i64,
    /// Completion - submission, or [`NO_COMPLETION`].
    pub latency_ns: i64,
    /// On the drive that it was issued to; -1 where the source does not tell.
    pub offset_bytes: i64,
    /// 0 for a flush.
    pub length_bytes: i64,
    /// Submitting CPU or worker; -1 where the source does not tell.
    pub stream: i32,
    /// 0, a positive errno, or an NVMe status with bit 16 set.
    pub status: i32,
    /// Index into the manifest's phases.
    pub phase: u16,
    /// What it did.
    pub opcode: Opcode,
    /// How.
    pub flags: Flags,
}

impl IoRecord {
    /// When it completed, or `None` where that was not seen.
    pub fn complete_ns(&self) -> Option<i64> {
        (self.latency_ns >= 0).then(|| self.submit_ns.saturating_add(self.latency_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_lead_back_to_the_opcode() {
        for opcode in Opcode::ALL {
            assert_eq!(Opcode::from_number(opcode as i32), Some(opcode));
            assert_eq!(Opcode::from_name(opcode.name()), Some(opcode));
        }
        assert_eq!(Opcode::from_number(5), None);
        assert_eq!(Opcode::from_number(-1), None);
    }

    #[test]
    fn every_modifier_has_one_name_and_one_bit() {
        let mut all = Flags::NONE;
        for (flag, name) in Flags::NAMED {
            assert_eq!((Flags::from_name(name), flag.0.count_ones()), (Some(flag), 1));
            assert!(!all.contains(flag), "{name}");
            all |= flag;
        }
        assert_eq!((all, all.without(Flags::SYNC).contains(Flags::SYNC)), (Flags(31), false));
        assert_eq!(Flags::from_name("atomic"), None);
    }

    #[test]
    fn plural_names_are_understood_and_others_are_not() {
        assert_eq!(Opcode::from_name("Reads"), Some(Opcode::Read));
        assert_eq!(Opcode::from_name("flushes"), Some(Opcode::Flush));
        assert_eq!(Opcode::from_name("reading"), None);
        assert_eq!(Opcode::from_name(""), None);
    }
}
