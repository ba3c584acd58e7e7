//! Commands, as the 64 bytes of a submission queue entry have them, without what belongs to the queue: the identifier and the pointers.

/// The size of a submission queue entry (Base 3.3.3.1).
pub const SQE_BYTES: usize = 64;
/// The namespace identifier that means all of them.
pub const ALL_NAMESPACES: u32 = 0xffff_ffff;

/// Opcodes of the NVM command set (NVM 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum NvmOpcode {
    /// Commits the data and metadata of the namespace to non-volatile media.
    Flush = 0x00,
    /// Writes the data of the host to a range of logical blocks.
    Write = 0x01,
    /// Reads a range of logical blocks to the host.
    Read = 0x02,
    /// Sets a range of logical blocks to zero, without data from the host.
    WriteZeroes = 0x08,
    /// Gives attributes to ranges of logical blocks: "deallocate", a trim, is the one that testdrive sets.
    DatasetManagement = 0x09,
}

/// Opcodes of the admin queue (Base 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AdminOpcode {
    /// Deletes an I/O submission queue, before the completion queue that it uses.
    DeleteSubmissionQueue = 0x00,
    /// Creates an I/O submission queue, on a completion queue that there is.
    CreateSubmissionQueue = 0x01,
    /// Returns a log page: errors, health, the progress of a sanitize.
    GetLogPage = 0x02,
    /// Deletes an I/O completion queue that no submission queue uses any more.
    DeleteCompletionQueue = 0x04,
    /// Creates an I/O completion queue.
    CreateCompletionQueue = 0x05,
    /// Returns a data structure that describes the controller, a namespace, or which of them there are.
    Identify = 0x06,
    /// Asks the controller to abort a command of a submission queue, which it may still complete.
    Abort = 0x08,
    /// Sets a feature's value.
    SetFeatures = 0x09,
    /// Returns a feature's value.
    GetFeatures = 0x0a,
    /// Formats a namespace, or all: the LBA format, and whether user data are erased.
    FormatNvm = 0x80,
    /// Starts a sanitize of the NVM subsystem, or leaves the failure of one.
    Sanitize = 0x84,
}

/// A command and how many bytes go with it. Reserved fields are zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NvmCommand {
    /// The opcode, of whichever queue it is for.
    pub opcode: u8,
    /// The namespace; 0 where it is of none.
    pub nsid: u32,
    /// Dwords 10 to 15.
    pub cdw: [u32; 6],
    /// How many bytes are transferred, by the pointers.
    pub data_bytes: u32,
}

impl NvmCommand {
    /// A command of the admin queue.
    pub(crate) fn admin(opcode: AdminOpcode, nsid: u32, cdw10: u32, cdw11: u32) -> NvmCommand {
        NvmCommand { opcode: opcode as u8, nsid, cdw: [cdw10, cdw11, 0, 0, 0, 0], data_bytes: 0 }
    }

    /// The entry of a submission queue, with the identifier and the two PRP entries that the queue's owner chose.
    pub fn entry(&self, cid: u16, prp1: u64, prp2: u64) -> [u8; SQE_BYTES] {
        let mut bytes = [0; SQE_BYTES];
        bytes[0] = self.opcode;
        bytes[2..4].copy_from_slice(&cid.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.nsid.to_le_bytes());
        bytes[24..32].copy_from_slice(&prp1.to_le_bytes());
        bytes[32..40].copy_from_slice(&prp2.to_le_bytes());
        for (index, dword) in self.cdw.iter().enumerate() {
            bytes[40 + 4 * index..][..4].copy_from_slice(&dword.to_le_bytes());
        }
        bytes
    }
}

/// A range of logical blocks: the first, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LbaRange {
    /// The first block.
    pub first: u64,
    /// How many; more than `u32::MAX` fit no command and no range of one.
    pub blocks: u32,
}

/// Forced unit access, in dword 12 of read, write and write zeroes.
const FUA: u32 = 1 << 30;
/// Deallocate, in dword 12 of write zeroes.
const DEALLOCATE: u32 = 1 << 25;
/// The attribute "deallocate" of dataset management, in dword 11.
const ATTRIBUTE_DEALLOCATE: u32 = 1 << 2;

/// Dwords 10 to 12 of the commands that name one range (NVM 3.2.4).
///
/// # Panics
/// When the range is empty or beyond [`crate::NLB_MAX`] blocks: [`crate::parts`] makes ranges that fit.
fn ranged(opcode: NvmOpcode, nsid: u32, range: LbaRange, flags: u32, data_bytes: u32) -> NvmCommand {
    assert!(range.blocks >= 1 && range.blocks <= crate::NLB_MAX, "{} blocks in a command", range.blocks);
    let (low, high) = (range.first as u32, (range.first >> 32) as u32);
    // The number of blocks is 0's based.
    let cdw12 = (range.blocks - 1) | flags;
    NvmCommand { opcode: opcode as u8, nsid, cdw: [low, high, cdw12, 0, 0, 0], data_bytes }
}

/// Read (NVM 3.2.4).
///
/// # Panics
/// When the range is empty or longer than a command can name.
pub fn read(nsid: u32, range: LbaRange, block_bytes: u32, fua: bool) -> NvmCommand {
    ranged(NvmOpcode::Read, nsid, range, if fua { FUA } else { 0 }, range.blocks * block_bytes)
}

/// Write (NVM 3.2.6).
///
/// # Panics
/// When the range is empty or longer than a command can name.
pub fn write(nsid: u32, range: LbaRange, block_bytes: u32, fua: bool) -> NvmCommand {
    ranged(NvmOpcode::Write, nsid, range, if fua { FUA } else { 0 }, range.blocks * block_bytes)
}

/// Write zeroes (NVM 3.2.8). `may_deallocate` lets the drive free the blocks, if they then read as zeroes.
///
/// # Panics
/// When the range is empty or longer than a command can name.
pub fn write_zeroes(nsid: u32, range: LbaRange, fua: bool, may_deallocate: bool) -> NvmCommand {
    let flags = if fua { FUA } else { 0 } | if may_deallocate { DEALLOCATE } else { 0 };
    ranged(NvmOpcode::WriteZeroes, nsid, range, flags, 0)
}

/// Flush (Base 7.1).
pub fn flush(nsid: u32) -> NvmCommand {
    NvmCommand { opcode: NvmOpcode::Flush as u8, nsid, ..NvmCommand::default() }
}

/// Dataset management with the attribute "deallocate" (NVM 3.2.3); its data are the ranges of [`crate::encode_ranges`].
///
/// # Panics
/// When there are no ranges, or more than [`crate::RANGES_MAX`].
pub fn deallocate(nsid: u32, ranges: usize) -> NvmCommand {
    assert!((1..=crate::RANGES_MAX).contains(&ranges), "{ranges} ranges in a command");
    let cdw10 = ranges as u32 - 1;
    NvmCommand {
        opcode: NvmOpcode::DatasetManagement as u8,
        nsid,
        cdw: [cdw10, ATTRIBUTE_DEALLOCATE, 0, 0, 0, 0],
        data_bytes: (ranges * crate::RANGE_BYTES) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_laid_out_as_the_specification_has_it() {
        let range = LbaRange { first: 0x1122_3344_5566_7788, blocks: 8 };
        let entry = write(1, range, 512, true).entry(0xbeef, 0x1000, 0x2000);
        let mut expected = [0_u8; 64];
        // Opcode, no fusing and PRPs, command identifier, namespace.
        expected[..8].copy_from_slice(&[0x01, 0, 0xef, 0xbe, 1, 0, 0, 0]);
        expected[25] = 0x10;
        expected[33] = 0x20;
        // The starting LBA in dwords 10 and 11, seven blocks beyond the first and FUA in dword 12.
        expected[40..48].copy_from_slice(&[0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        expected[48..52].copy_from_slice(&[7, 0, 0, 0x40]);
        assert_eq!(entry, expected);
        assert_eq!(write(1, range, 512, true).data_bytes, 4096);
    }

    #[test]
    fn each_command_has_its_opcode_and_its_bits() {
        let range = LbaRange { first: 5, blocks: 1 };
        assert_eq!(
            (read(2, range, 4096, false).opcode, read(2, range, 4096, false).cdw),
            (2, [5, 0, 0, 0, 0, 0])
        );
        assert_eq!(read(2, range, 4096, true).cdw[2], 0x4000_0000);
        assert_eq!((flush(3).opcode, flush(3).nsid, flush(3).cdw), (0, 3, [0; 6]));
        let zeroes = |fua, may_deallocate| write_zeroes(1, range, fua, may_deallocate);
        assert_eq!((zeroes(false, false).opcode, zeroes(false, false).cdw[2]), (8, 0));
        assert_eq!((zeroes(true, true).cdw[2], zeroes(true, true).data_bytes), (0x4200_0000, 0));
        let most = LbaRange { first: 0, blocks: crate::NLB_MAX };
        assert_eq!(zeroes_of(most), 0xffff);
        let trim = deallocate(1, 256);
        assert_eq!((trim.opcode, trim.cdw[0], trim.cdw[1], trim.data_bytes), (9, 255, 4, 4096));
    }

    fn zeroes_of(range: LbaRange) -> u32 {
        write_zeroes(1, range, false, false).cdw[2]
    }

    #[test]
    #[should_panic(expected = "65537 blocks in a command")]
    fn a_range_that_no_command_can_name_is_a_defect() {
        let _ = read(1, LbaRange { first: 0, blocks: 65_537 }, 512, false);
    }
}
