//! Looks for signatures on an open device or file. Only reads.

use crate::guard::signatures::{Magic, Signature, CONTENTS, PARTITION_TABLES};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

/// Every place of the table but btrfs' second superblock is within so much of the start, or of the end.
const HEAD_BYTES: u64 = (4 << 20) + 4096;
const TAIL_BYTES: u64 = 1 << 20;
const BTRFS_SECOND: (u64, u64) = (64 << 20, 4096);
/// What direct I/O asks of addresses and offsets, on any drive that Linux has.
const ALIGN_BYTES: usize = 4096;

/// The parts of a device that signatures stand in.
struct Image {
    size_bytes: u64,
    windows: Vec<(u64, Vec<u8>)>,
}

/// Everything that marks the device as carrying something. A part that cannot be read counts as carrying something.
pub fn probe(file: &File, size_bytes: u64) -> Vec<Signature> {
    let mut windows = Vec::new();
    let mut found = Vec::new();
    for (start, length) in windows_of(size_bytes) {
        match read_aligned(file, start, length) {
            Ok(bytes) => windows.push((start, bytes)),
            Err(error) => found.push(signature(&format!("unreadable ({error})"), start, false)),
        }
    }
    let image = Image { size_bytes, windows };
    image.find(PARTITION_TABLES, true, &mut found);
    image.find(CONTENTS, false, &mut found);
    found.extend(image.ext());
    found.extend(image.zfs());
    found.extend(image.boot_sector(&found));
    found
}

fn signature(name: &str, offset_bytes: u64, is_partition_table: bool) -> Signature {
    Signature { name: name.to_string(), offset_bytes: Some(offset_bytes), is_partition_table }
}

fn windows_of(size_bytes: u64) -> Vec<(u64, u64)> {
    if size_bytes <= HEAD_BYTES + TAIL_BYTES {
        return vec![(0, size_bytes)];
    }
    // Rounded down, so that direct reads are aligned; the rest of the device after it is then a little more than the tail.
    let tail = (size_bytes - TAIL_BYTES) / ALIGN_BYTES as u64 * ALIGN_BYTES as u64;
    let mut windows = vec![(0, HEAD_BYTES), (tail, size_bytes - tail)];
    if BTRFS_SECOND.0 + BTRFS_SECOND.1 <= size_bytes {
        windows.push(BTRFS_SECOND);
    }
    windows
}

/// Reads past the page cache where the file was opened so, hence into aligned memory and in aligned lengths.
fn read_aligned(file: &File, start: u64, length: u64) -> io::Result<Vec<u8>> {
    let length = length as usize;
    let padded = length.next_multiple_of(ALIGN_BYTES);
    let mut memory = vec![0_u8; padded + ALIGN_BYTES];
    let skip = memory.as_ptr().align_offset(ALIGN_BYTES);
    let buffer = &mut memory[skip..skip + padded];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut buffer[filled..], start + filled as u64) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer[..length].to_vec())
}

fn le32(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte))
}

impl Image {
    fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.windows.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(length)?)
        })
    }

    fn find(&self, table: &[Magic], is_partition_table: bool, found: &mut Vec<Signature>) {
        for magic in table {
            for offset in magic.places.iter().filter_map(|place| place.offset_bytes(self.size_bytes)) {
                let seen = self.at(offset, magic.bytes.len()) == Some(magic.bytes);
                let known =
                    |other: &Signature| other.name == magic.name && other.offset_bytes == Some(offset);
                if seen && !found.iter().any(known) {
                    found.push(signature(magic.name, offset, is_partition_table));
                }
            }
        }
    }

    /// ext2, 3 and 4 share a superblock and differ in its features (Linux Documentation/filesystems/ext4/super.rst).
    fn ext(&self) -> Option<Signature> {
        const SUPERBLOCK: u64 = 1024;
        const HAS_JOURNAL: u32 = 0x4;
        const JOURNAL_DEVICE: u32 = 0x8;
        // What ext3 already had: directory types, a journal to recover, meta block groups. Of read-only features: sparse
        // superblocks, large files.
        const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x10;
        const EXT3_READ_ONLY: u32 = 0x1 | 0x2;
        let superblock = self.at(SUPERBLOCK, 1024)?;
        if superblock[56..58] != [0x53, 0xef] {
            return None;
        }
        let (compatible, incompatible) = (le32(&superblock[92..96]), le32(&superblock[96..100]));
        let read_only = le32(&superblock[100..104]);
        let name = if incompatible & JOURNAL_DEVICE != 0 {
            "jbd"
        } else if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0 {
            "ext4"
        } else if compatible & HAS_JOURNAL != 0 {
            "ext3"
        } else {
            "ext2"
        };
        Some(signature(name, SUPERBLOCK + 56, false))
    }

    /// ZFS writes four labels, two at each end, each with a ring of uberblocks in its second half (ZFS On-Disk Specification,
    /// chapter 1). One uberblock is enough: its magic is eight bytes.
    fn zfs(&self) -> Option<Signature> {
        const LABEL: u64 = 256 << 10;
        const RING: u64 = 128 << 10;
        const UBERBLOCK: u64 = 1024;
        const MAGIC: u64 = 0x00ba_b10c;
        let end = self.size_bytes / LABEL * LABEL;
        let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
        let slots = labels
            .into_iter()
            .flatten()
            .flat_map(|label| (0..RING / UBERBLOCK).map(move |index| label + RING + index * UBERBLOCK));
        let is_uberblock = |offset: &u64| {
            self.at(*offset, 8)
                .is_some_and(|bytes| bytes == MAGIC.to_le_bytes() || bytes == MAGIC.to_be_bytes())
        };
        slots.into_iter().find(is_uberblock).map(|offset| signature("zfs_member", offset, false))
    }

    /// A first sector that ends in 55 AA: a FAT, a DOS partition table, GPT's protective one, or other boot code.
    fn boot_sector(&self, found: &[Signature]) -> Option<Signature> {
        let sector = self.at(0, 512)?;
        let is_fat = is_fat(sector);
        if sector[510..] != [0x55, 0xaa] {
            // A floppy's FAT may lack the two bytes.
            return is_fat.then(|| signature("vfat", 0, false));
        }
        let entries: Vec<&[u8]> = sector[446..510].chunks(16).collect();
        let is_empty = |entry: &&[u8]| entry.iter().all(|byte| *byte == 0);
        // Status, type, and the count of sectors of an entry.
        let is_entry =
            |entry: &&[u8]| matches!(entry[0], 0 | 0x80) && entry[4] != 0 && le32(&entry[12..16]) != 0;
        let is_table = entries.iter().all(|entry| is_empty(entry) || is_entry(entry));
        if entries.iter().any(|entry| is_entry(entry) && entry[4] == 0xee) {
            return Some(signature("PMBR", 510, true));
        }
        if is_fat {
            return Some(signature("vfat", 0, false));
        }
        // NTFS, exFAT and their like, seen already, end in the same two bytes.
        let other_boot_sector =
            found.iter().any(|other| other.offset_bytes.is_some_and(|offset| offset < 446));
        match (is_table, other_boot_sector) {
            (true, false) => Some(signature("dos", 510, true)),
            (true, true) if !entries.iter().all(is_empty) => Some(signature("dos", 510, true)),
            (_, true) => None,
            (false, false) => Some(signature("boot_sector", 510, false)),
        }
    }
}

/// A FAT's parameter block (Microsoft FAT specification, 3.1): its names are only a hint there, so the figures are held against what
/// they may be.
fn is_fat(sector: &[u8]) -> bool {
    let named = [(54, &b"FAT12   "[..]), (54, b"FAT16   "), (54, b"FAT     "), (82, b"FAT32   ")];
    if named.iter().any(|(offset, name)| sector[*offset..].starts_with(name)) {
        return true;
    }
    let bytes_per_sector = u16::from_le_bytes([sector[11], sector[12]]);
    let reserved_sectors = u16::from_le_bytes([sector[14], sector[15]]);
    let total_sectors = u32::from(u16::from_le_bytes([sector[19], sector[20]])) | le32(&sector[32..36]);
    matches!(sector[0], 0xeb | 0xe9)
        && matches!(bytes_per_sector, 512 | 1024 | 2048 | 4096)
        && sector[13].is_power_of_two()
        && reserved_sectors != 0
        && matches!(sector[16], 1 | 2)
        && (sector[21] == 0xf0 || sector[21] >= 0xf8)
        && total_sectors != 0
}

#[cfg(test)]
#[path = "probe_tests.rs"]
mod tests;
