//! The table of signatures: what marks a device as carrying a file system, a volume, a RAID member or a partition table.
//!
//! Magics and offsets are facts of each on-disk format; every row names where it is documented. libblkid's names are used where
//! it knows the format, so that its verdict and ours can be joined.

use serde::Serialize;

/// What was found on a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Signature {
    /// The format, as libblkid names it.
    pub name: String,
    /// Where its magic stands; none where only blkid saw it.
    pub offset_bytes: Option<u64>,
    /// Whether it is a partition table.
    #[serde(skip)]
    pub is_partition_table: bool,
}

/// Where a magic stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// From the start.
    Start(u64),
    /// This far before the end, the end rounded down to a unit.
    End {
        /// The unit that the size is rounded down to.
        unit_bytes: u64,
        /// How far before.
        back_bytes: u64,
    },
}

impl At {
    /// The offset on a device of a size; `None` where the device is too small.
    pub fn offset_bytes(self, size_bytes: u64) -> Option<u64> {
        match self {
            At::Start(offset) => (offset < size_bytes).then_some(offset),
            At::End { unit_bytes, back_bytes } => {
                (size_bytes / unit_bytes * unit_bytes).checked_sub(back_bytes)
            }
        }
    }
}

/// One row: a format, its magic, every place where it may stand, and the source.
#[derive(Clone, Copy, Debug)]
pub struct Magic {
    /// The format, as libblkid names it.
    pub name: &'static str,
    /// The bytes.
    pub bytes: &'static [u8],
    /// Every place.
    pub places: &'static [At],
    /// Where this is documented.
    pub source: &'static str,
}

const fn row(name: &'static str, bytes: &'static [u8], places: &'static [At], source: &'static str) -> Magic {
    Magic { name, bytes, places, source }
}

const START: &[At] = &[At::Start(0)];
const SECTOR: u64 = 512;
const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;

/// The last ten bytes of the first page, for every page size that Linux has.
const FIRST_PAGE_END: &[At] =
    &[At::Start(0xff6), At::Start(0x1ff6), At::Start(0x3ff6), At::Start(0x7ff6), At::Start(0xfff6)];
const FIRST_FOUR_SECTORS: &[At] = &[At::Start(0), At::Start(512), At::Start(1024), At::Start(1536)];
/// Volume descriptors stand at 32 KiB and on, in sectors of 2048 bytes.
const VOLUME_DESCRIPTORS: &[At] =
    &[At::Start(32_769), At::Start(34_817), At::Start(36_865), At::Start(38_913)];
const LUKS2_SECOND_HEADERS: &[At] = &[
    At::Start(0x4000),
    At::Start(0x8000),
    At::Start(0x1_0000),
    At::Start(0x2_0000),
    At::Start(0x4_0000),
    At::Start(0x8_0000),
    At::Start(0x10_0000),
    At::Start(0x20_0000),
    At::Start(0x40_0000),
];
const LAST_4K_PLUS_60: &[At] = &[At::End { unit_bytes: SECTOR, back_bytes: 4096 - 60 }];
/// The header of a 0.90 superblock, at the last whole 64 KiB; of 1.0, at least 8 KiB before the end, on a 4 KiB boundary; of 1.1 and
/// 1.2 at the start.
const MD_0_90: &[At] = &[At::End { unit_bytes: 64 * KIB, back_bytes: 64 * KIB }];
const MD_ANY: &[At] = &[
    At::End { unit_bytes: 64 * KIB, back_bytes: 64 * KIB },
    At::End { unit_bytes: 4 * KIB, back_bytes: 8 * KIB },
    At::Start(0),
    At::Start(4096),
];
/// A backup header is the last block; blocks of 512 and of 4096 bytes are both in use.
const GPT: &[At] = &[
    At::Start(512),
    At::Start(4096),
    At::End { unit_bytes: SECTOR, back_bytes: SECTOR },
    At::End { unit_bytes: 4096, back_bytes: 4096 },
];
const DDF: &[At] = &[
    At::End { unit_bytes: SECTOR, back_bytes: SECTOR },
    At::End { unit_bytes: SECTOR, back_bytes: 257 * SECTOR },
];
const UFS1: &[At] =
    &[At::Start(8192 + 1372), At::Start(1372), At::Start(65_536 + 1372), At::Start(262_144 + 1372)];

/// Partition tables. The DOS table is not here, for its two bytes also end a FAT boot sector: `probe` looks closer.
pub const PARTITION_TABLES: &[Magic] = &[
    row("gpt", b"EFI PART", GPT, "UEFI specification 2.10, 5.3.2"),
    row("sgi", b"\x0b\xe5\xa9\x41", START, "Linux block/partitions/sgi.c"),
    row("sun", b"\xda\xbe", &[At::Start(508)], "Linux block/partitions/sun.c"),
    row(
        "mac",
        b"PM\0\0",
        &[At::Start(512)],
        "Inside Macintosh: Devices, partition map entry; Linux block/partitions/mac.h",
    ),
    row("bsd", b"\x57\x45\x56\x82", &[At::Start(512), At::Start(64)], "FreeBSD disklabel(5)"),
    row("amiga", b"RDSK", START, "Linux include/uapi/linux/affs_hardblocks.h"),
];

/// File systems, volumes, RAID members, encryption, swap and disk images.
pub const CONTENTS: &[Magic] = &[
    row("xfs", b"XFSB", START, "Linux fs/xfs/libxfs/xfs_format.h"),
    row("xfs_external_log", b"\xfe\xed\xba\xbe", START, "Linux fs/xfs/libxfs/xfs_log_format.h"),
    row(
        "btrfs",
        b"_BHRfS_M",
        &[At::Start(64 * KIB + 64), At::Start(64 * MIB + 64)],
        "btrfs documentation, on-disk format",
    ),
    row("f2fs", b"\x10\x20\xf5\xf2", &[At::Start(1024), At::Start(5120)], "Linux include/linux/f2fs_fs.h"),
    row("iso9660", b"CD001", VOLUME_DESCRIPTORS, "ECMA-119, 8.1.2"),
    row("udf", b"BEA01", VOLUME_DESCRIPTORS, "ECMA-167, 2/9.2"),
    row("udf", b"NSR02", VOLUME_DESCRIPTORS, "ECMA-167, 3/9.1"),
    row("udf", b"NSR03", VOLUME_DESCRIPTORS, "ECMA-167, 3/9.1"),
    row("squashfs", b"hsqs", START, "Linux fs/squashfs/squashfs_fs.h"),
    row("squashfs3", b"sqsh", START, "Linux fs/squashfs/squashfs_fs.h"),
    row("erofs", b"\xe2\xe1\xf5\xe0", &[At::Start(1024)], "Linux fs/erofs/erofs_fs.h"),
    row("cramfs", b"\x45\x3d\xcd\x28", &[At::Start(0), At::Start(512)], "Linux include/uapi/linux/magic.h"),
    row("romfs", b"-rom1fs-", START, "Linux Documentation/filesystems/romfs.rst"),
    row("jfs", b"JFS1", &[At::Start(32 * KIB)], "Linux fs/jfs/jfs_superblock.h"),
    row(
        "reiserfs",
        b"ReIsErFs",
        &[At::Start(64 * KIB + 52), At::Start(8 * KIB + 52)],
        "Linux 6.12 fs/reiserfs/reiserfs.h",
    ),
    row("reiserfs", b"ReIsEr2Fs", &[At::Start(64 * KIB + 52)], "Linux 6.12 fs/reiserfs/reiserfs.h"),
    row("reiserfs", b"ReIsEr3Fs", &[At::Start(64 * KIB + 52)], "Linux 6.12 fs/reiserfs/reiserfs.h"),
    row("reiser4", b"ReIsEr4", &[At::Start(64 * KIB)], "util-linux libblkid, reiserfs"),
    row("nilfs2", b"\x34\x34", &[At::Start(1024 + 6)], "Linux include/uapi/linux/nilfs2_ondisk.h"),
    row("gfs2", b"\x01\x16\x19\x70", &[At::Start(64 * KIB)], "Linux include/uapi/linux/gfs2_ondisk.h"),
    row(
        "ocfs2",
        b"OCFSV2",
        &[At::Start(1024), At::Start(2048), At::Start(4096), At::Start(8192)],
        "Linux fs/ocfs2/ocfs2_fs.h",
    ),
    row("oracleasm", b"ORCLDISK", &[At::Start(32)], "util-linux libblkid, ocfs"),
    row("vxfs", b"\xf5\xfc\x01\xa5", &[At::Start(1024)], "Linux fs/freevxfs/vxfs.h"),
    row("ufs", b"\x54\x19\x01\x00", UFS1, "FreeBSD sys/ufs/ffs/fs.h"),
    row("ufs", b"\x19\x01\x54\x19", UFS1, "FreeBSD sys/ufs/ffs/fs.h"),
    row("hfsplus", b"H+\x00\x04", &[At::Start(1024)], "Apple technical note 1150"),
    row("hfsplus", b"HX\x00\x05", &[At::Start(1024)], "Apple technical note 1150"),
    row("hfs", b"BD", &[At::Start(1024)], "Inside Macintosh: Files, 2-60"),
    row("apfs", b"NXSB", &[At::Start(32)], "Apple File System Reference, nx_superblock_t"),
    row("zonefs", b"SFOZ", START, "Linux fs/zonefs/zonefs.h"),
    row("exfat", b"EXFAT   ", &[At::Start(3)], "Microsoft exFAT specification, 3.1"),
    row("ntfs", b"NTFS    ", &[At::Start(3)], "Linux fs/ntfs3/ntfs.h"),
    row("ReFS", b"\0\0\0ReFS\0", START, "util-linux libblkid, refs"),
    row(
        "BitLocker",
        b"-FVE-FS-",
        &[At::Start(3)],
        "Microsoft BitLocker drive encryption; libbde format notes",
    ),
    row("VMFS_volume_member", b"\x0d\xd0\x01\xc0", &[At::Start(MIB)], "util-linux libblkid, vmfs"),
    row("VMFS", b"\x5e\xf1\xab\x2f", &[At::Start(2 * MIB)], "util-linux libblkid, vmfs"),
    row("ceph_bluestore", b"bluestore block device", START, "Ceph src/os/bluestore/BlueStore.cc"),
    row("LVM2_member", b"LABELONE", FIRST_FOUR_SECTORS, "LVM2 lib/label/label.h"),
    row(
        "stratis",
        b"!Stra0tis\x86\xff\x02^\x41rh",
        &[At::Start(516), At::Start(4612)],
        "Stratis software design, static header",
    ),
    row("vdo", b"dmvdo001", START, "Linux Documentation/admin-guide/device-mapper/vdo-design.rst"),
    row(
        "bcache",
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
        &[At::Start(4120)],
        "Linux drivers/md/bcache/bcache_ondisk.h",
    ),
    row(
        "bcachefs",
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
        &[At::Start(4120)],
        "bcachefs principles of operation, superblock",
    ),
    row("linux_raid_member", b"\xfc\x4e\x2b\xa9", MD_ANY, "Linux include/uapi/linux/raid/md_p.h"),
    row(
        "linux_raid_member",
        b"\xa9\x2b\x4e\xfc",
        MD_0_90,
        "Linux include/uapi/linux/raid/md_p.h, a host of the other byte order",
    ),
    row("drbd", b"\x83\x74\x02\x6b", LAST_4K_PLUS_60, "DRBD drbdmeta, version 08"),
    row("drbd", b"\x83\x74\x02\x6c", LAST_4K_PLUS_60, "DRBD drbdmeta, version 8.4 unclean"),
    row("drbd", b"\x83\x74\x02\x6d", LAST_4K_PLUS_60, "DRBD drbdmeta, version 09"),
    row("ddf_raid_member", b"\xde\x11\xde\x11", DDF, "SNIA Common RAID Disk Data Format 2.0"),
    row("ddf_raid_member", b"\x11\xde\x11\xde", DDF, "SNIA Common RAID Disk Data Format 2.0"),
    row(
        "isw_raid_member",
        b"Intel Raid ISM Cfg Sig. ",
        &[At::End { unit_bytes: SECTOR, back_bytes: 1024 }],
        "mdadm super-intel.c",
    ),
    row("crypto_LUKS", b"LUKS\xba\xbe", START, "LUKS2 on-disk format specification, 2.1"),
    row("crypto_LUKS", b"SKUL\xba\xbe", LUKS2_SECOND_HEADERS, "LUKS2 on-disk format specification, 2.2"),
    row("swap", b"SWAPSPACE2", FIRST_PAGE_END, "Linux include/linux/swap.h"),
    row("swap", b"SWAP-SPACE", FIRST_PAGE_END, "Linux include/linux/swap.h"),
    row("swsuspend", b"S1SUSPEND", FIRST_PAGE_END, "Linux kernel/power/swap.c"),
    row("swsuspend", b"S2SUSPEND", FIRST_PAGE_END, "uswsusp"),
    row("swsuspend", b"ULSUSPEND", FIRST_PAGE_END, "uswsusp"),
    row("swsuspend", b"LINHIB0001", FIRST_PAGE_END, "Linux kernel/power/swap.c"),
    row("qcow2", b"QFI\xfb", START, "QEMU docs/interop/qcow2.txt"),
    row("vhdx", b"vhdxfile", START, "Microsoft MS-VHDX, 2.2.1"),
    row("vmdk", b"KDMV", START, "VMware virtual disk format 5.0"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_a_source_and_a_magic_of_at_least_two_bytes() {
        for magic in PARTITION_TABLES.iter().chain(CONTENTS) {
            assert!(!magic.source.is_empty() && !magic.places.is_empty(), "{}", magic.name);
            assert!(magic.bytes.len() >= 2, "{}", magic.name);
        }
    }

    #[test]
    fn places_before_the_end_are_aligned_first() {
        let place = At::End { unit_bytes: 65_536, back_bytes: 65_536 };
        assert_eq!(place.offset_bytes(10 * 65_536 + 4096), Some(9 * 65_536));
        assert_eq!(place.offset_bytes(65_535), None);
        assert_eq!(At::Start(512).offset_bytes(512), None);
    }
}
