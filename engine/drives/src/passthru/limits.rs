//! How much one command may carry through the kernel to a drive.

use crate::sysfs::BlockDevice;
use testdrive_nvme::{blocks_max_of_mdts, BlockSize, ControllerIdentity, NvmLimits, TrimLimits, NLB_MAX};

/// The memory page of the host, of which the kernel makes a segment each.
const PAGE_BYTES: u64 = 4096;

/// How much one command may carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandLimits {
    /// Blocks of a read or write.
    pub transfer_blocks: u32,
    /// Blocks of a write zeroes.
    pub zeroes_blocks: u32,
    /// Ranges of a deallocate.
    pub trim: TrimLimits,
}

impl CommandLimits {
    /// Those of a drive that was not asked yet: nothing fits.
    pub(super) fn none() -> CommandLimits {
        CommandLimits { transfer_blocks: 1, zeroes_blocks: 1, trim: TrimLimits::default() }
    }

    /// What the controller says, no more than the kernel takes for this namespace.
    ///
    /// Where the controller has a limit for transfers and none for write zeroes, the kernel's block layer holds write zeroes to that
    /// of transfers, since drives are known that need it: so does this path.
    pub fn of(
        controller: &ControllerIdentity,
        limits: &NvmLimits,
        block: BlockSize,
        disk: &BlockDevice,
    ) -> CommandLimits {
        let queue = |name: &str| disk.attribute_number(&format!("queue/{name}")).filter(|value| *value > 0);
        let kernel_bytes = queue("max_hw_sectors_kb").map(|kib| kib << 10);
        // A transfer of whole pages has a segment for each.
        let segments_bytes = queue("max_segments").map(|segments| segments * PAGE_BYTES);
        let in_blocks =
            |bytes: u64| u32::try_from(bytes / u64::from(block.bytes())).unwrap_or(NLB_MAX).max(1);
        let drive_blocks = blocks_max_of_mdts(controller.mdts, PAGE_BYTES, block);
        let held = [kernel_bytes, segments_bytes].into_iter().flatten().map(in_blocks);
        let transfer_blocks = held.chain(drive_blocks).fold(NLB_MAX, u32::min);
        let zeroes_blocks = match limits.write_zeroes_size {
            0 => kernel_bytes.map(in_blocks).into_iter().chain(drive_blocks).fold(NLB_MAX, u32::min),
            size => blocks_max_of_mdts(size, PAGE_BYTES, block).unwrap_or(NLB_MAX).min(NLB_MAX),
        };
        CommandLimits { transfer_blocks, zeroes_blocks, trim: TrimLimits::of(limits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sysfs::{DeviceNumber, SystemRoots};
    use std::fs;

    fn disk(kib: &str, segments: &str) -> (tempfile::TempDir, BlockDevice) {
        let folder = tempfile::tempdir().unwrap();
        let disk = folder.path().join("dev/block/259:0");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::write(disk.join("dev"), "259:0\n").unwrap();
        fs::write(disk.join("queue/max_hw_sectors_kb"), kib).unwrap();
        fs::write(disk.join("queue/max_segments"), segments).unwrap();
        let roots = SystemRoots { sys: folder.path().into(), ..SystemRoots::default() };
        let device = roots.block_device(DeviceNumber { major: 259, minor: 0 }).unwrap();
        (folder, device)
    }

    fn limits_of(mdts: u8, wzsl: u8, kib: &str, segments: &str) -> CommandLimits {
        let controller = ControllerIdentity { mdts, ..ControllerIdentity::default() };
        let limits = NvmLimits { write_zeroes_size: wzsl, ..NvmLimits::default() };
        let (_folder, disk) = disk(kib, segments);
        CommandLimits::of(&controller, &limits, BlockSize::new(512).unwrap(), &disk)
    }

    #[test]
    fn the_least_of_what_drive_and_kernel_take_holds() {
        assert_eq!(limits_of(7, 0, "4096\n", "127\n").transfer_blocks, 127 * 8);
        assert_eq!(limits_of(5, 0, "4096\n", "127\n").transfer_blocks, 256);
        assert_eq!(limits_of(7, 0, "64\n", "127\n").transfer_blocks, 128);
        assert_eq!(limits_of(0, 0, "65536\n", "65535\n").transfer_blocks, NLB_MAX);
    }

    #[test]
    fn write_zeroes_have_their_own_limit_or_that_of_transfers_without_segments() {
        assert_eq!(limits_of(7, 0, "4096\n", "127\n").zeroes_blocks, 1024);
        assert_eq!(limits_of(5, 9, "128\n", "32\n").zeroes_blocks, 4096);
        assert_eq!(limits_of(5, 60, "128\n", "32\n").zeroes_blocks, NLB_MAX);
    }
}
