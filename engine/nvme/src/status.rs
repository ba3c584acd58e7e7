//! How a command ended: the status field of a completion (Base 3.3.3.2.1), as recorded, and in words.

use serde::{Serialize, Serializer};
use std::fmt;

/// Set in a recorded status that is NVMe's: what lies below is the status field. No errno reaches so far.
pub const RECORDED_NVME: i32 = 0x1_0000;

/// The status field without the phase: 15 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

/// The status code type: whose code it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusKind {
    /// 0h: of any command.
    Generic,
    /// 1h: of this command or its command set, so that a code means something else for each opcode.
    CommandSpecific,
    /// 2h: the medium failed, or the integrity of data could not be confirmed.
    MediaAndDataIntegrity,
    /// 3h: the path between host and namespace, not the namespace itself.
    PathRelated,
    /// 4h to 6h, with the type itself.
    Reserved(u8),
    /// 7h: what the vendor says it is.
    VendorSpecific,
}

impl Status {
    /// The status of a command that did what it was asked.
    pub const SUCCESS: Status = Status(0);

    /// From the field as the kernel hands it on: code, type, retry delay, more, do not retry, from bit 0.
    pub fn from_field(field: u16) -> Status {
        Status(field & 0x7fff)
    }

    /// From the upper half of a completion's dword 3, whose bit 0 is the phase.
    pub fn from_completion(half: u16) -> Status {
        Status(half >> 1)
    }

    /// The field, 15 bits.
    pub fn field(self) -> u16 {
        self.0
    }

    /// Whether the command did what it was asked.
    pub fn is_success(self) -> bool {
        self.0 & 0x7ff == 0
    }

    /// The status code (SC).
    pub fn code(self) -> u8 {
        self.0 as u8
    }

    /// The status code type (SCT).
    pub fn kind(self) -> StatusKind {
        match (self.0 >> 8 & 7) as u8 {
            0 => StatusKind::Generic,
            1 => StatusKind::CommandSpecific,
            2 => StatusKind::MediaAndDataIntegrity,
            3 => StatusKind::PathRelated,
            7 => StatusKind::VendorSpecific,
            other => StatusKind::Reserved(other),
        }
    }

    /// Whether the drive says that trying again is in vain (DNR).
    pub fn do_not_retry(self) -> bool {
        self.0 >> 14 & 1 == 1
    }

    /// Whether the error log has more on it (M).
    pub fn has_more(self) -> bool {
        self.0 >> 13 & 1 == 1
    }

    /// As rows have it: 0, or beyond every errno.
    pub fn recorded(self) -> i32 {
        if self.is_success() {
            0
        } else {
            RECORDED_NVME | i32::from(self.0)
        }
    }

    /// Back from a row; `None` of 0 and of an errno.
    pub fn from_recorded(status: i32) -> Option<Status> {
        (status & !0x7fff == RECORDED_NVME).then_some(Status((status & 0x7fff) as u16))
    }

    /// The name of code and type as the specification has it; `None` of those that are reserved, or the vendor's own.
    pub fn name(self) -> Option<&'static str> {
        let names: &[(u8, &'static str)] = match self.kind() {
            StatusKind::Generic => GENERIC,
            StatusKind::CommandSpecific => COMMAND_SPECIFIC,
            StatusKind::MediaAndDataIntegrity => MEDIA,
            StatusKind::PathRelated => PATH,
            StatusKind::Reserved(_) | StatusKind::VendorSpecific => &[],
        };
        names.iter().find(|(code, _)| *code == self.code()).map(|(_, name)| *name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name(), self.kind()) {
            (Some(name), _) => f.write_str(name)?,
            (None, StatusKind::VendorSpecific) => f.write_str("the vendor's own status")?,
            (None, _) => f.write_str("a status without a name")?,
        }
        write!(f, " (NVMe status 0x{:x}, type {}, code 0x{:02x}", self.0, self.0 >> 8 & 7, self.code())?;
        f.write_str(if self.do_not_retry() { ", do not retry)" } else { ")" })
    }
}

impl Serialize for Status {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.recorded().serialize(serializer)
    }
}

/// Base figure "Status Code - Generic Command Status", and NVM's own from 80h on.
const GENERIC: &[(u8, &str)] = &[
    (0x00, "success"),
    (0x01, "invalid command opcode"),
    (0x02, "invalid field in command"),
    (0x03, "command identifier conflict"),
    (0x04, "data transfer error"),
    (0x05, "aborted due to power loss notification"),
    (0x06, "internal error"),
    (0x07, "abort requested"),
    (0x08, "aborted due to submission queue deletion"),
    (0x09, "aborted due to failed fused command"),
    (0x0a, "aborted due to missing fused command"),
    (0x0b, "invalid namespace or format"),
    (0x0c, "command sequence error"),
    (0x0d, "invalid scatter gather list segment descriptor"),
    (0x0e, "invalid number of scatter gather list descriptors"),
    (0x0f, "invalid scatter gather list data length"),
    (0x10, "invalid metadata scatter gather list length"),
    (0x11, "invalid scatter gather list descriptor type"),
    (0x12, "invalid use of controller memory buffer"),
    (0x13, "invalid PRP offset"),
    (0x14, "atomic write unit exceeded"),
    (0x15, "operation denied"),
    (0x16, "invalid scatter gather list offset"),
    (0x18, "inconsistent host identifier format"),
    (0x19, "keep alive timer expired"),
    (0x1a, "invalid keep alive timeout"),
    (0x1b, "aborted due to preempt and abort"),
    (0x1c, "sanitize failed"),
    (0x1d, "sanitize in progress"),
    (0x1e, "invalid scatter gather list data block granularity"),
    (0x1f, "command not supported for queue in controller memory buffer"),
    (0x20, "namespace is write protected"),
    (0x21, "command interrupted"),
    (0x22, "transient transport error"),
    (0x23, "command prohibited by lockdown"),
    (0x24, "media not ready"),
    (0x80, "LBA out of range"),
    (0x81, "capacity exceeded"),
    (0x82, "namespace not ready"),
    (0x83, "reservation conflict"),
    (0x84, "format in progress"),
    (0x85, "invalid value size"),
    (0x86, "invalid key size"),
];

/// Base figure "Status Code - Command Specific Status", of the commands that testdrive sends, and NVM's own from 80h on.
const COMMAND_SPECIFIC: &[(u8, &str)] = &[
    (0x00, "invalid completion queue"),
    (0x01, "invalid queue identifier"),
    (0x02, "invalid queue size"),
    (0x03, "abort command limit exceeded"),
    (0x05, "asynchronous event request limit exceeded"),
    (0x08, "invalid interrupt vector"),
    (0x09, "invalid log page"),
    (0x0a, "invalid format"),
    (0x0b, "firmware activation requires a conventional reset"),
    (0x0c, "invalid queue deletion"),
    (0x0d, "feature identifier not saveable"),
    (0x0e, "feature not changeable"),
    (0x0f, "feature not namespace specific"),
    (0x10, "firmware activation requires an NVM subsystem reset"),
    (0x11, "firmware activation requires a controller level reset"),
    (0x12, "firmware activation requires maximum time violation"),
    (0x13, "firmware activation prohibited"),
    (0x14, "overlapping range"),
    (0x1d, "device self-test in progress"),
    (0x1f, "invalid controller identifier"),
    (0x23, "sanitize prohibited while persistent memory region is enabled"),
    (0x80, "conflicting attributes"),
    (0x81, "invalid protection information"),
    (0x82, "attempted write to read only range"),
    (0x83, "command size limit exceeded"),
];

/// Base figure "Status Code - Media and Data Integrity Errors".
const MEDIA: &[(u8, &str)] = &[
    (0x80, "write fault"),
    (0x81, "unrecovered read error"),
    (0x82, "end-to-end guard check error"),
    (0x83, "end-to-end application tag check error"),
    (0x84, "end-to-end reference tag check error"),
    (0x85, "compare failure"),
    (0x86, "access denied"),
    (0x87, "deallocated or unwritten logical block"),
    (0x88, "end-to-end storage tag check error"),
];

/// Base figure "Status Code - Path Related Status".
const PATH: &[(u8, &str)] = &[
    (0x00, "internal path error"),
    (0x01, "asymmetric access persistent loss"),
    (0x02, "asymmetric access inaccessible"),
    (0x03, "asymmetric access transition"),
    (0x60, "controller pathing error"),
    (0x70, "host pathing error"),
    (0x71, "command aborted by host"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_taken_apart() {
        // LBA out of range, do not retry.
        let status = Status::from_field(0x4080);
        assert_eq!((status.kind(), status.code()), (StatusKind::Generic, 0x80));
        assert!(status.do_not_retry() && !status.has_more() && !status.is_success());
        assert_eq!(
            status.to_string(),
            "LBA out of range (NVMe status 0x4080, type 0, code 0x80, do not retry)"
        );
        // Unrecovered read error, with more in the log.
        let status = Status::from_field(0x2281);
        assert_eq!(
            (status.kind(), status.name()),
            (StatusKind::MediaAndDataIntegrity, Some("unrecovered read error"))
        );
        assert!(status.has_more() && !status.do_not_retry());
    }

    #[test]
    fn a_completion_has_the_phase_below_the_field() {
        assert_eq!(Status::from_completion(0x8101), Status::from_field(0x4080));
        assert_eq!(Status::from_completion(1), Status::SUCCESS);
    }

    #[test]
    fn a_recorded_status_is_beyond_every_errno_and_leads_back() {
        for field in 1..0x8000_u16 {
            let status = Status::from_field(field);
            if status.is_success() {
                assert_eq!(status.recorded(), 0);
                continue;
            }
            assert!(status.recorded() > 4095);
            assert_eq!(Status::from_recorded(status.recorded()), Some(status));
        }
        assert_eq!(Status::from_field(0x4080).recorded(), 0x1_4080);
        assert_eq!((Status::from_recorded(0), Status::from_recorded(libc_eio())), (None, None));
        assert_eq!((Status::from_recorded(-1), Status::from_recorded(0x2_0001)), (None, None));
    }

    fn libc_eio() -> i32 {
        5
    }

    #[test]
    fn statuses_without_a_name_say_whose_they_are() {
        assert!(Status::from_field(0x7c1)
            .to_string()
            .starts_with("the vendor's own status (NVMe status 0x7c1"));
        assert!(Status::from_field(0x4ff).to_string().starts_with("a status without a name"));
    }

    #[test]
    fn no_code_stands_twice_in_a_table() {
        for table in [GENERIC, COMMAND_SPECIFIC, MEDIA, PATH] {
            assert!(table.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
