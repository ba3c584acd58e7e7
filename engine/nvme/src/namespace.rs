//! What a namespace says of itself: the Identify Namespace structure of the NVM command set (NVM 4.1.5.1).

use crate::bytes::{le16, le32, le64};
use crate::controller::IDENTIFY_BYTES;
use serde::Serialize;

/// One of the ways in which a namespace can be formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LbaFormat {
    /// Its index, by which Format NVM names it.
    pub index: u8,
    /// The size of a logical block.
    pub block_bytes: u32,
    /// Metadata beside each block.
    pub metadata_bytes: u16,
    /// How fast it is against the others, by the drive: 0 is best, 3 degraded.
    pub relative_performance: u8,
}

/// What deallocated blocks read as (DLFEAT).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeallocatedReads {
    /// The drive does not tell.
    #[default]
    NotReported,
    /// Zeroes.
    Zeroes,
    /// Ones.
    Ones,
}

/// What matters of the Identify Namespace structure.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NamespaceIdentity {
    /// Blocks that can be addressed (NSZE).
    pub blocks: u64,
    /// Blocks that may be allocated at a time (NCAP).
    pub capacity_blocks: u64,
    /// Blocks that are allocated (NUSE), where the drive tells.
    pub used_blocks: u64,
    /// Index of the format in use.
    pub format_index: u8,
    /// Whether metadata follow each block within the data ("extended LBA").
    pub metadata_within_data: bool,
    /// Type of the protection information; 0 for none.
    pub protection_type: u8,
    /// Whether more than one controller can have it (NMIC bit 0).
    pub is_shared: bool,
    /// What deallocated blocks read as.
    pub deallocated_reads: DeallocatedReads,
    /// Whether a write zeroes may deallocate (DLFEAT bit 3).
    pub write_zeroes_deallocates: bool,
    /// Share of a running format that is still to do, in percent; 0 where none runs, `None` where the drive does not tell (FPI).
    pub format_percent_left: Option<u8>,
    /// What an I/O should be a multiple of (NOIOB), in blocks; 0 where it is not told.
    pub optimal_boundary_blocks: u16,
    /// Blocks of the preferred granularity of writes and of deallocates, where the drive tells.
    pub preferred_write_blocks: Option<u32>,
    /// The same of deallocates.
    pub preferred_deallocate_blocks: Option<u32>,
    /// The formats that there are.
    pub formats: Vec<LbaFormat>,
}

impl NamespaceIdentity {
    /// Takes the structure apart. An inactive namespace has zeroes everywhere.
    pub fn parse(bytes: &[u8; IDENTIFY_BYTES]) -> NamespaceIdentity {
        let features = bytes[24];
        // Without the bit OPTPERF the fields of granularity have no meaning. They are 0's based.
        let granularity = |offset| (features >> 4 & 1 == 1).then(|| u32::from(le16(bytes, offset)) + 1);
        NamespaceIdentity {
            blocks: le64(bytes, 0),
            capacity_blocks: le64(bytes, 8),
            used_blocks: le64(bytes, 16),
            // The upper two bits of the index stand apart, and count only where there are more than 16 formats.
            format_index: (bytes[26] & 0xf) | if bytes[25] >= 16 { (bytes[26] >> 5 & 3) << 4 } else { 0 },
            metadata_within_data: bytes[26] >> 4 & 1 == 1,
            protection_type: bytes[29] & 7,
            is_shared: bytes[30] & 1 == 1,
            format_percent_left: (bytes[32] >> 7 == 1).then_some(bytes[32] & 0x7f),
            deallocated_reads: match bytes[33] & 7 {
                1 => DeallocatedReads::Zeroes,
                2 => DeallocatedReads::Ones,
                _ => DeallocatedReads::NotReported,
            },
            write_zeroes_deallocates: bytes[33] >> 3 & 1 == 1,
            optimal_boundary_blocks: le16(bytes, 46),
            preferred_write_blocks: granularity(64),
            preferred_deallocate_blocks: granularity(68),
            formats: formats(bytes),
        }
    }

    /// The format in use; `None` of an inactive namespace.
    pub fn format(&self) -> Option<LbaFormat> {
        self.formats.iter().find(|format| format.index == self.format_index).copied()
    }

    /// The size of a logical block; 0 of an inactive namespace.
    pub fn block_bytes(&self) -> u32 {
        self.format().map_or(0, |format| format.block_bytes)
    }

    /// The size of all blocks.
    pub fn size_bytes(&self) -> u64 {
        self.blocks.saturating_mul(self.block_bytes().into())
    }

    /// Whether a block is more than its data, which testdrive does not transfer.
    pub fn has_metadata(&self) -> bool {
        self.protection_type != 0 || self.format().is_some_and(|format| format.metadata_bytes > 0)
    }

    /// The format with blocks of this size and no metadata; of several the one that the drive says is fastest.
    pub fn format_of(&self, block_bytes: u32) -> Option<LbaFormat> {
        let fits = |format: &&LbaFormat| format.block_bytes == block_bytes && format.metadata_bytes == 0;
        self.formats.iter().filter(fits).min_by_key(|format| format.relative_performance).copied()
    }
}

/// NLBAF is 0's based; a format whose data size is 0 is not there.
fn formats(bytes: &[u8; IDENTIFY_BYTES]) -> Vec<LbaFormat> {
    let count = bytes[25].min(63) + 1;
    let format = |index: u8| {
        let field = le32(bytes, 128 + 4 * usize::from(index));
        let shift = field >> 16 & 0xff;
        (9..32).contains(&shift).then_some(LbaFormat {
            index,
            block_bytes: 1 << shift,
            metadata_bytes: field as u16,
            relative_performance: (field >> 24 & 3) as u8,
        })
    };
    (0..count).filter_map(format).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A namespace of 1 TB with formats of 512 B, 512 B with 8 B of metadata, and 4 KiB, in use with 4 KiB.
    fn structure() -> [u8; IDENTIFY_BYTES] {
        let mut bytes = [0; IDENTIFY_BYTES];
        bytes[..8].copy_from_slice(&244_190_646_u64.to_le_bytes());
        bytes[8..16].copy_from_slice(&244_190_645_u64.to_le_bytes());
        bytes[16..24].copy_from_slice(&9_u64.to_le_bytes());
        bytes[24..27].copy_from_slice(&[0x10, 2, 2]);
        bytes[30] = 1;
        bytes[32..34].copy_from_slice(&[0x80 | 37, 0x09]);
        bytes[46..48].copy_from_slice(&[0, 1]);
        bytes[64..66].copy_from_slice(&[7, 0]);
        bytes[68..70].copy_from_slice(&[0xff, 0]);
        bytes[128..132].copy_from_slice(&[0, 0, 9, 2]);
        bytes[132..136].copy_from_slice(&[8, 0, 9, 0]);
        bytes[136..140].copy_from_slice(&[0, 0, 12, 0]);
        bytes
    }

    #[test]
    fn every_field_is_read_where_the_specification_has_it() {
        let namespace = NamespaceIdentity::parse(&structure());
        assert_eq!(
            (namespace.blocks, namespace.capacity_blocks, namespace.used_blocks),
            (244_190_646, 244_190_645, 9)
        );
        assert_eq!((namespace.format_index, namespace.block_bytes()), (2, 4096));
        assert_eq!(namespace.size_bytes(), 1_000_204_886_016);
        assert!(namespace.is_shared && !namespace.metadata_within_data && !namespace.has_metadata());
        assert_eq!(namespace.deallocated_reads, DeallocatedReads::Zeroes);
        assert!(namespace.write_zeroes_deallocates);
        assert_eq!((namespace.format_percent_left, namespace.optimal_boundary_blocks), (Some(37), 256));
        assert_eq!(namespace.preferred_write_blocks, Some(8));
        assert_eq!(namespace.preferred_deallocate_blocks, Some(256));
        let metadata = LbaFormat { index: 1, block_bytes: 512, metadata_bytes: 8, relative_performance: 0 };
        assert_eq!((namespace.formats.len(), namespace.formats[1]), (3, metadata));
    }

    #[test]
    fn a_format_is_found_by_its_block_size_and_never_one_with_metadata() {
        let namespace = NamespaceIdentity::parse(&structure());
        assert_eq!(namespace.format_of(512).map(|format| format.index), Some(0));
        assert_eq!(namespace.format_of(4096).map(|format| format.index), Some(2));
        assert_eq!(namespace.format_of(8192), None);
    }

    #[test]
    fn the_upper_bits_of_the_index_count_only_among_more_than_sixteen_formats() {
        let mut bytes = structure();
        bytes[26] = 0x22;
        assert_eq!(NamespaceIdentity::parse(&bytes).format_index, 2);
        bytes[25] = 19;
        assert_eq!(NamespaceIdentity::parse(&bytes).format_index, 18);
    }

    #[test]
    fn metadata_and_protection_are_seen() {
        let mut bytes = structure();
        bytes[26] = 0x11;
        let namespace = NamespaceIdentity::parse(&bytes);
        assert!(namespace.has_metadata() && namespace.metadata_within_data);
        bytes[26] = 0;
        bytes[29] = 1;
        assert!(NamespaceIdentity::parse(&bytes).has_metadata());
    }

    #[test]
    fn an_inactive_namespace_has_nothing() {
        let namespace = NamespaceIdentity::parse(&[0; IDENTIFY_BYTES]);
        assert_eq!((namespace.size_bytes(), namespace.format(), namespace.formats.len()), (0, None, 0));
        assert_eq!((namespace.format_percent_left, namespace.preferred_write_blocks), (None, None));
    }
}
