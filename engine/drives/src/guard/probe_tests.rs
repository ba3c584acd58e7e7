//! Every row of the table, written where it says, is found; nothing is found where nothing is.

use super::*;
use crate::guard::signatures::At;

const SIZE_BYTES: u64 = (80 << 20) + 12_288;

fn sparse(size_bytes: u64, writes: &[(u64, &[u8])]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size_bytes).unwrap();
    for (offset, bytes) in writes {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

fn names(file: &File, size_bytes: u64) -> Vec<String> {
    probe(file, size_bytes).into_iter().map(|found| found.name).collect()
}

#[test]
fn every_row_is_found_at_each_of_its_places_and_alone() {
    for magic in PARTITION_TABLES.iter().chain(CONTENTS) {
        for place in magic.places {
            let offset = place.offset_bytes(SIZE_BYTES).unwrap();
            let file = sparse(SIZE_BYTES, &[(offset, magic.bytes)]);
            let found = probe(&file, SIZE_BYTES);
            let seen: Vec<_> = found.iter().map(|each| (each.name.as_str(), each.offset_bytes)).collect();
            assert_eq!(seen, [(magic.name, Some(offset))], "{place:?}");
        }
    }
}

#[test]
fn places_at_the_end_are_found_on_small_and_on_large_devices() {
    let large = 7 << 40;
    for size_bytes in [1 << 20, large] {
        let place = At::End { unit_bytes: 4096, back_bytes: 8192 };
        let offset = place.offset_bytes(size_bytes).unwrap();
        let file = tempfile::tempfile().unwrap();
        // File systems that cannot hold so large a file only test the small one.
        if file.set_len(size_bytes).is_err() {
            eprintln!("SKIPPED: this file system cannot hold a file of {size_bytes} bytes");
            continue;
        }
        file.write_all_at(b"\xfc\x4e\x2b\xa9", offset).unwrap();
        assert_eq!(names(&file, size_bytes), ["linux_raid_member"]);
    }
}

#[test]
fn zeroes_ones_and_counting_bytes_carry_nothing() {
    assert_eq!(names(&sparse(SIZE_BYTES, &[]), SIZE_BYTES), Vec::<String>::new());
    let ones = vec![0xff; 5 << 20];
    assert_eq!(names(&sparse(SIZE_BYTES, &[(0, &ones)]), SIZE_BYTES), Vec::<String>::new());
    let counting: Vec<u8> = (0..5_u32 << 20).map(|index| (index / 7) as u8).collect();
    assert_eq!(names(&sparse(SIZE_BYTES, &[(0, &counting)]), SIZE_BYTES), Vec::<String>::new());
}

#[test]
fn tiny_devices_are_probed_without_a_panic() {
    for size_bytes in [0, 1, 511, 512, 513, 1024, 4095, 4096, 65_536] {
        assert_eq!(names(&sparse(size_bytes, &[]), size_bytes), Vec::<String>::new(), "{size_bytes}");
    }
}

#[test]
fn ext_generations_are_told_apart_by_their_features() {
    let superblock = |compatible: u8, incompatible: u8, read_only: u8| {
        let mut bytes = vec![0; 1024];
        bytes[56..58].copy_from_slice(&[0x53, 0xef]);
        (bytes[92], bytes[96], bytes[100]) = (compatible, incompatible, read_only);
        names(&sparse(SIZE_BYTES, &[(1024, &bytes)]), SIZE_BYTES)
    };
    assert_eq!(superblock(0, 2, 3), ["ext2"]);
    assert_eq!(superblock(4, 6, 3), ["ext3"]);
    assert_eq!(superblock(4, 0x42, 3), ["ext4"]);
    assert_eq!(superblock(4, 2, 0x0b), ["ext4"]);
    assert_eq!(superblock(0, 8, 0), ["jbd"]);
}

#[test]
fn a_zfs_uberblock_in_any_label_is_enough() {
    let end = SIZE_BYTES / (256 << 10) * (256 << 10);
    for label in [0, 256 << 10, end - (512 << 10), end - (256 << 10)] {
        for magic in [0x00ba_b10c_u64.to_le_bytes(), 0x00ba_b10c_u64.to_be_bytes()] {
            let offset = label + (128 << 10) + 4096;
            let found = probe(&sparse(SIZE_BYTES, &[(offset, &magic)]), SIZE_BYTES);
            assert_eq!((found[0].name.as_str(), found[0].offset_bytes), ("zfs_member", Some(offset)));
        }
    }
}

fn boot_sector(entry: [u8; 16]) -> Vec<u8> {
    let mut sector = vec![0; 512];
    sector[446..462].copy_from_slice(&entry);
    sector[510..].copy_from_slice(&[0x55, 0xaa]);
    sector
}

const LINUX_ENTRY: [u8; 16] = [0x80, 1, 1, 0, 0x83, 2, 2, 2, 0, 8, 0, 0, 0, 0, 1, 0];

#[test]
fn boot_sectors_are_told_apart() {
    let found = |sector: &[u8]| names(&sparse(SIZE_BYTES, &[(0, sector)]), SIZE_BYTES);
    assert_eq!(found(&boot_sector([0; 16])), ["dos"]);
    assert_eq!(found(&boot_sector(LINUX_ENTRY)), ["dos"]);
    let mut protective = LINUX_ENTRY;
    (protective[0], protective[4]) = (0, 0xee);
    assert_eq!(found(&boot_sector(protective)), ["PMBR"]);
    assert_eq!(found(&boot_sector([0xaa; 16])), ["boot_sector"]);
    let mut fat = boot_sector([0xaa; 16]);
    fat[82..90].copy_from_slice(b"FAT32   ");
    assert_eq!(found(&fat), ["vfat"]);
    let mut ntfs = boot_sector([0xaa; 16]);
    ntfs[3..11].copy_from_slice(b"NTFS    ");
    assert_eq!(found(&ntfs), ["ntfs"]);
    // LVM's label in the second sector does not explain away a partition table.
    let mut both = boot_sector(LINUX_ENTRY);
    both.extend(b"LABELONE");
    assert_eq!(found(&both), ["LVM2_member", "dos"]);
}

#[test]
fn a_fat_without_its_name_is_known_by_its_figures() {
    let mut sector = vec![0; 512];
    sector[..3].copy_from_slice(&[0xeb, 0x3c, 0x90]);
    sector[11..13].copy_from_slice(&512_u16.to_le_bytes());
    (sector[13], sector[14], sector[16], sector[21]) = (4, 1, 2, 0xf8);
    sector[32..36].copy_from_slice(&100_000_u32.to_le_bytes());
    assert_eq!(names(&sparse(SIZE_BYTES, &[(0, &sector)]), SIZE_BYTES), ["vfat"]);
    sector[16] = 9;
    assert_eq!(names(&sparse(SIZE_BYTES, &[(0, &sector)]), SIZE_BYTES), Vec::<String>::new());
}

#[test]
fn what_cannot_be_read_counts_as_carrying_something() {
    let file = sparse(4096, &[]);
    // The file is shorter than the device was said to be, as when a device shrinks under the probe.
    let found = probe(&file, 8192);
    assert!(found[0].name.starts_with("unreadable"), "{found:?}");
}
