//! Physical region pages: how a command says where its data are (NVM Express Base Specification 2.0, 4.1.1).
//!
//! The first entry may point anywhere in a page (at a multiple of four); every further one points to the start of a page. Two entries fit
//! in the command. With more, the second points to a list of entries, and the last entry of a full page of the list to its next page.

use crate::memory::{DmaMemory, PAGE_BYTES};

/// Entries in a page of a list.
const ENTRIES: usize = PAGE_BYTES / 8;

/// How many pages the list of the longest transfer takes, wherever in a page its data begin.
pub fn list_pages(transfer_bytes_max: usize) -> usize {
    // A transfer that begins at the last dword of a page touches one page more.
    let entries = transfer_bytes_max.div_ceil(PAGE_BYTES);
    let mut pages = 1;
    // Every page but the last holds one entry less, for the pointer to the next.
    while pages * (ENTRIES - 1) + 1 < entries {
        pages += 1;
    }
    pages
}

/// The two entries of a command whose `length` bytes of data begin at byte `offset` of `data`. The list is written from byte `list_offset`
/// of `list` on, where there must be room for [`list_pages`] of that length.
///
/// # Panics
/// When there are no bytes, more than the memory has, or their start is no multiple of four: callers align their buffers.
pub fn describe(
    data: &DmaMemory,
    offset: usize,
    length: usize,
    list: &DmaMemory,
    list_offset: usize,
) -> (u64, u64) {
    assert!(length > 0 && offset.is_multiple_of(4), "{length} bytes at {offset}");
    assert!(offset + length <= data.length(), "{length} bytes at {offset} of {}", data.length());
    let first = data.address(offset);
    // From here on whole pages follow.
    let mut next = (offset / PAGE_BYTES + 1) * PAGE_BYTES;
    let end = offset + length;
    if next >= end {
        return (first, 0);
    }
    let further = (end - next).div_ceil(PAGE_BYTES);
    if further == 1 {
        return (first, data.address(next));
    }
    let (mut page, mut entry) = (list_offset, 0);
    for left in (1..=further).rev() {
        if entry == ENTRIES - 1 && left > 1 {
            list.write64(page + entry * 8, list.address(page + PAGE_BYTES));
            (page, entry) = (page + PAGE_BYTES, 0);
        }
        list.write64(page + entry * 8, data.address(next));
        entry += 1;
        next += PAGE_BYTES;
    }
    (first, list.address(list_offset))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::double::{heap_memory, walk};
    use crate::memory::Addresses;
    use proptest::prelude::*;

    /// The addresses of the bytes, one after the other, by the plainest rule.
    fn model(data: &DmaMemory, offset: usize, length: usize) -> Vec<u64> {
        (offset..offset + length).step_by(4).map(|at| data.address(at)).collect()
    }

    fn check(data: &DmaMemory, offset: usize, length: usize) {
        const LIST: u64 = 0x7_0000_0000;
        let pages = list_pages(length);
        let list = heap_memory((pages + 1) * PAGE_BYTES, Addresses::Contiguous(LIST));
        let (prp1, prp2) = describe(data, offset, length, &list, PAGE_BYTES);
        let word = |at: u64| {
            let offset = (at - LIST) as usize;
            assert!(offset >= PAGE_BYTES && offset < (pages + 1) * PAGE_BYTES, "outside the list");
            u64::from(list.read32(offset)) | u64::from(list.read32(offset + 4)) << 32
        };
        let named: Vec<u64> = walk(prp1, prp2, length, word)
            .into_iter()
            .flat_map(|(start, bytes)| (0..bytes as u64).step_by(4).map(move |at| start + at))
            .collect();
        assert_eq!(named, model(data, offset, length), "{length} bytes at {offset}");
    }

    #[test]
    fn every_place_in_a_page_and_every_number_of_pages_is_named() {
        let data = heap_memory(8 * PAGE_BYTES, Addresses::Contiguous(0x10_0000));
        for offset in (0..PAGE_BYTES).step_by(4) {
            for length in [4, 512, 4092, 4096, 4100, 8192, 12_288, 16_384, 28_672] {
                check(&data, offset, length);
            }
        }
        // The edges of a list's pages: with 512 entries it is full, with one more it goes on.
        let large = heap_memory(1100 * PAGE_BYTES, Addresses::Contiguous(0x4000_0000));
        for pages in [511, 512, 513, 514, 1023, 1024, 1025, 1026] {
            check(&large, 0, pages * PAGE_BYTES);
            check(&large, 512, pages * PAGE_BYTES);
            check(&large, 512, pages * PAGE_BYTES - 512);
        }
    }

    #[test]
    fn a_list_has_the_pages_that_it_needs_and_no_more() {
        assert_eq!([4, 4096, 512 * 4096, 512 * 4096 + 1].map(list_pages), [1, 1, 1, 2]);
        assert_eq!([1023 * 4096, 1023 * 4096 + 1].map(list_pages), [2, 3]);
    }

    proptest! {
        #[test]
        fn any_range_of_memory_in_pieces_anywhere_is_named(
            pieces in 1_usize..40, piece_shift in 0_u32..3, seed in any::<u64>(), from in any::<u64>(), bytes in any::<u64>(),
        ) {
            let piece_bytes = PAGE_BYTES << piece_shift;
            let starts = (0..pieces as u64)
                .map(|index| (seed.rotate_left(index as u32).wrapping_mul(index | 1) % (1 << 30)) * piece_bytes as u64)
                .collect();
            let length = pieces * piece_bytes;
            let data = heap_memory(length, Addresses::Pieces { bytes: piece_bytes, starts });
            let offset = from as usize % (length / 4) * 4;
            let bytes = bytes as usize % ((length - offset) / 4) * 4 + 4;
            check(&data, offset, bytes);
        }
    }
}
