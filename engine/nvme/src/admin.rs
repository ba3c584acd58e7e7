//! Commands of the admin queue (Base 5).

use crate::command::{AdminOpcode, NvmCommand};
use crate::controller::IDENTIFY_BYTES;
use serde::{Deserialize, Serialize};

/// What to identify (Base 5.17).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentifyWhat {
    /// A namespace, for the NVM command set.
    Namespace(u32),
    /// The controller.
    Controller,
    /// The active namespaces with identifiers above this one: a list of identifiers, ended by 0.
    ActiveNamespaces(u32),
    /// The namespaces of the subsystem with identifiers above this one, attached to a controller or not: a list as above.
    AllocatedNamespaces(u32),
    /// The controller's limits for commands of the NVM command set.
    NvmController,
    /// The controllers that a namespace is attached to: their number, then their identifiers.
    AttachedControllers(u32),
    /// The controllers of the subsystem with identifiers from this one on: their number, then their identifiers.
    SubsystemControllers(u16),
    /// The controllers of virtual functions that this controller is the primary of, with identifiers from this one on.
    SecondaryControllers(u16),
}

/// Identify; the answer has [`IDENTIFY_BYTES`].
pub fn identify(what: IdentifyWhat) -> NvmCommand {
    let from = |controller_id: u16, structure| (0, u32::from(controller_id) << 16 | structure);
    let (nsid, cdw10) = match what {
        IdentifyWhat::Namespace(nsid) => (nsid, 0x00),
        IdentifyWhat::Controller => (0, 0x01),
        IdentifyWhat::ActiveNamespaces(above) => (above, 0x02),
        // The command set identifier in dword 11 is 0, the NVM command set.
        IdentifyWhat::NvmController => (0, 0x06),
        IdentifyWhat::AllocatedNamespaces(above) => (above, 0x10),
        IdentifyWhat::AttachedControllers(nsid) => (nsid, 0x12),
        IdentifyWhat::SubsystemControllers(first) => from(first, 0x13),
        IdentifyWhat::SecondaryControllers(first) => from(first, 0x15),
    };
    let command = NvmCommand::admin(AdminOpcode::Identify, nsid, cdw10, 0);
    NvmCommand { data_bytes: IDENTIFY_BYTES as u32, ..command }
}

/// The logs that testdrive asks for (Base 5.16.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LogPage {
    /// Error Information: the last commands that failed.
    Errors = 0x01,
    /// SMART / Health Information: temperature, spare, wear, what was read and written.
    Smart = 0x02,
    /// Sanitize Status: how far the last sanitize is, and how it ended.
    Sanitize = 0x81,
}

/// Get log page, from its start. Events that the log stands for are retained: somebody else may wait for them.
///
/// # Panics
/// When the length is 0 or no multiple of 4.
pub fn get_log_page(page: LogPage, nsid: u32, length_bytes: u32) -> NvmCommand {
    assert!(length_bytes > 0 && length_bytes.is_multiple_of(4), "a log of {length_bytes} bytes");
    const RETAIN_ASYNCHRONOUS_EVENT: u32 = 1 << 15;
    // The number of dwords is 0's based, its lower half in dword 10.
    let dwords = length_bytes / 4 - 1;
    let cdw10 = page as u32 | RETAIN_ASYNCHRONOUS_EVENT | (dwords & 0xffff) << 16;
    let command = NvmCommand::admin(AdminOpcode::GetLogPage, nsid, cdw10, dwords >> 16);
    NvmCommand { data_bytes: length_bytes, ..command }
}

/// What Format NVM does to the data beyond making them unreadable by chance (Base 5.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum SecureErase {
    /// Nothing that is asked for.
    #[default]
    None = 0,
    /// All user data are erased.
    UserData = 1,
    /// By deleting the key that they are encrypted with.
    Cryptographic = 2,
}

/// A Format NVM. Metadata and protection information, which testdrive does not use, are switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FormatNvm {
    /// The namespace, or [`crate::ALL_NAMESPACES`].
    pub nsid: u32,
    /// Index of the LBA format.
    pub lba_format: u8,
    /// What becomes of the data.
    pub secure_erase: SecureErase,
}

/// Format NVM (Base 5.14).
///
/// # Panics
/// When the index is not below 64, the most that there can be.
pub fn format_nvm(format: FormatNvm) -> NvmCommand {
    assert!(format.lba_format < 64, "LBA format {}", format.lba_format);
    let (low, high) = (u32::from(format.lba_format & 0xf), u32::from(format.lba_format >> 4));
    let cdw10 = low | (format.secure_erase as u32) << 9 | high << 12;
    NvmCommand::admin(AdminOpcode::FormatNvm, format.nsid, cdw10, 0)
}

/// What Sanitize does (Base 5.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SanitizeAction {
    /// Blocks of the medium are erased.
    BlockErase,
    /// Everything is written over, once, with zeroes.
    Overwrite,
    /// The key is deleted.
    CryptoErase,
    /// Leaves the failure of an earlier sanitize behind.
    ExitFailure,
}

/// Sanitize, of the whole NVM subsystem (Base 5.24). A failure may be left without another sanitize ("unrestricted"): a drive that
/// could only be sanitized again would be lost to whoever tries it.
pub fn sanitize(action: SanitizeAction) -> NvmCommand {
    const UNRESTRICTED_EXIT: u32 = 1 << 3;
    let action = match action {
        SanitizeAction::ExitFailure => 1,
        SanitizeAction::BlockErase => 2 | UNRESTRICTED_EXIT,
        SanitizeAction::Overwrite => 3 | UNRESTRICTED_EXIT | 1 << 4,
        SanitizeAction::CryptoErase => 4 | UNRESTRICTED_EXIT,
    };
    NvmCommand::admin(AdminOpcode::Sanitize, 0, action, 0)
}

/// Abort of a command by its queue and identifier (Base 5.1).
pub fn abort(queue: u16, cid: u16) -> NvmCommand {
    NvmCommand::admin(AdminOpcode::Abort, 0, u32::from(queue) | u32::from(cid) << 16, 0)
}

/// Create I/O completion queue (Base 5.4), physically contiguous. `interrupt` is its vector; without one it is polled.
///
/// # Panics
/// When the queue has fewer than two entries.
pub fn create_completion_queue(queue: u16, entries: u32, interrupt: Option<u16>) -> NvmCommand {
    let enabled = u32::from(interrupt.is_some()) << 1;
    let cdw11 = 1 | enabled | u32::from(interrupt.unwrap_or(0)) << 16;
    NvmCommand::admin(AdminOpcode::CreateCompletionQueue, 0, queue_and_size(queue, entries), cdw11)
}

/// Create I/O submission queue (Base 5.5), physically contiguous, of the urgent class where classes are weighed.
///
/// # Panics
/// When the queue has fewer than two entries.
pub fn create_submission_queue(queue: u16, entries: u32, completion_queue: u16) -> NvmCommand {
    let cdw11 = 1 | u32::from(completion_queue) << 16;
    NvmCommand::admin(AdminOpcode::CreateSubmissionQueue, 0, queue_and_size(queue, entries), cdw11)
}

fn queue_and_size(queue: u16, entries: u32) -> u32 {
    assert!((2..=1 << 16).contains(&entries), "a queue of {entries} entries");
    u32::from(queue) | (entries - 1) << 16
}

/// Delete I/O completion queue (Base 5.6), after its submission queues.
pub fn delete_completion_queue(queue: u16) -> NvmCommand {
    NvmCommand::admin(AdminOpcode::DeleteCompletionQueue, 0, queue.into(), 0)
}

/// Delete I/O submission queue (Base 5.7).
pub fn delete_submission_queue(queue: u16) -> NvmCommand {
    NvmCommand::admin(AdminOpcode::DeleteSubmissionQueue, 0, queue.into(), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dwords(command: NvmCommand) -> (u8, u32, u32, u32) {
        (command.opcode, command.nsid, command.cdw[0], command.cdw[1])
    }

    #[test]
    fn identify_names_its_structure() {
        assert_eq!(dwords(identify(IdentifyWhat::Controller)), (6, 0, 1, 0));
        assert_eq!(dwords(identify(IdentifyWhat::Namespace(7))), (6, 7, 0, 0));
        assert_eq!(dwords(identify(IdentifyWhat::ActiveNamespaces(0))), (6, 0, 2, 0));
        assert_eq!(dwords(identify(IdentifyWhat::AllocatedNamespaces(9))), (6, 9, 0x10, 0));
        assert_eq!(dwords(identify(IdentifyWhat::AttachedControllers(1))), (6, 1, 0x12, 0));
        assert_eq!(dwords(identify(IdentifyWhat::SubsystemControllers(3))), (6, 0, 0x0003_0013, 0));
        assert_eq!(dwords(identify(IdentifyWhat::SecondaryControllers(0x1234))), (6, 0, 0x1234_0015, 0));
        assert_eq!(identify(IdentifyWhat::NvmController).data_bytes, 4096);
    }

    #[test]
    fn the_length_of_a_log_is_in_dwords_and_0s_based() {
        // 512 bytes are 128 dwords.
        assert_eq!(dwords(get_log_page(LogPage::Smart, 0xffff_ffff, 512)), (2, 0xffff_ffff, 0x007f_8002, 0));
        assert_eq!(dwords(get_log_page(LogPage::Sanitize, 0, 20)), (2, 0, 0x0004_8081, 0));
        // Beyond 256 KiB the upper half is used.
        assert_eq!(get_log_page(LogPage::Errors, 0, (1 << 18) + 4).cdw[..2], [0x0000_8001, 1]);
    }

    #[test]
    fn format_and_sanitize_are_laid_out_as_the_specification_has_them() {
        let format =
            |lba_format, secure_erase| dwords(format_nvm(FormatNvm { nsid: 1, lba_format, secure_erase }));
        assert_eq!(format(4, SecureErase::None), (0x80, 1, 4, 0));
        assert_eq!(format(0x12, SecureErase::UserData), (0x80, 1, 0x1202, 0));
        assert_eq!(format(0, SecureErase::Cryptographic).2, 0x400);
        assert_eq!(dwords(sanitize(SanitizeAction::BlockErase)), (0x84, 0, 0xa, 0));
        assert_eq!(sanitize(SanitizeAction::Overwrite).cdw[0], 0x1b);
        assert_eq!(sanitize(SanitizeAction::CryptoErase).cdw[0], 0xc);
        assert_eq!(sanitize(SanitizeAction::ExitFailure).cdw[0], 1);
    }

    #[test]
    fn queues_are_made_and_deleted_by_number() {
        assert_eq!(dwords(create_completion_queue(1, 64, None)), (5, 0, 0x003f_0001, 1));
        assert_eq!(dwords(create_completion_queue(2, 2, Some(3))), (5, 0, 0x0001_0002, 0x0003_0003));
        assert_eq!(dwords(create_submission_queue(1, 1 << 16, 1)), (1, 0, 0xffff_0001, 0x0001_0001));
        assert_eq!(dwords(delete_submission_queue(1)), (0, 0, 1, 0));
        assert_eq!(dwords(delete_completion_queue(1)), (4, 0, 1, 0));
        assert_eq!(dwords(abort(3, 0x1234)), (8, 0, 0x1234_0003, 0));
    }
}
