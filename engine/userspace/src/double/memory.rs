//! The memory that the driver shares with the controller in memory, and how the controller finds it by the addresses that it is given.

use super::{Entry, State};
use crate::memory::{Addresses, DmaMemory, PAGE_BYTES};
use std::alloc::{alloc_zeroed, dealloc, Layout};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, Weak};

/// A piece of memory that the controller can reach.
pub(super) struct Region {
    id: usize,
    start: usize,
    length: usize,
    addresses: Addresses,
}

impl State {
    /// Where an address of the driver's is for us. Whatever is not its memory is a fault that no IOMMU would let through.
    pub(super) fn resolve(&self, address: u64, length: usize) -> usize {
        assert!(!self.cut_off, "DMA to {address:#x} after it was cut off");
        for region in &self.regions {
            let offset = match &region.addresses {
                Addresses::Contiguous(start) => address.checked_sub(*start).map(|offset| offset as usize),
                Addresses::Pieces { bytes, starts } => {
                    starts.iter().enumerate().find_map(|(index, start)| {
                        let within = address.checked_sub(*start)? as usize;
                        (within + length <= *bytes).then_some(index * bytes + within)
                    })
                }
            };
            if let Some(offset) = offset.filter(|offset| offset + length <= region.length) {
                return region.start + offset;
            }
        }
        panic!("DMA of {length} bytes to {address:#x}, which is not mapped");
    }

    pub(super) fn load(&self, address: u64, bytes: &mut [u8]) {
        let from = self.resolve(address, bytes.len()) as *const u8;
        // SAFETY: `resolve` found so many bytes of a region that is still registered, and the lock keeps it so.
        unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
    }

    pub(super) fn store(&self, address: u64, bytes: &[u8]) {
        let to = self.resolve(address, bytes.len()) as *mut u8;
        // SAFETY: as in `load`.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
    }

    fn word(&self, address: u64) -> u64 {
        let mut bytes = [0; 8];
        self.load(address, &mut bytes);
        u64::from_le_bytes(bytes)
    }

    /// Sends the answer to a command by its pointers.
    pub(super) fn store_data(&self, entry: &Entry, bytes: &[u8]) {
        let mut at = 0;
        for (address, count) in self.data_of(entry, bytes.len()) {
            self.store(address, &bytes[at..at + count]);
            at += count;
        }
    }

    pub(super) fn data_of(&self, entry: &Entry, length: usize) -> Vec<(u64, usize)> {
        let pointer = |at: usize| u64::from_le_bytes(entry[at..at + 8].try_into().expect("eight bytes"));
        walk(pointer(24), pointer(32), length, |address| self.word(address))
    }
}

/// Memory that the controller reaches until it is dropped.
pub(super) fn allocate(shared: &Arc<Mutex<State>>, length_bytes: usize) -> DmaMemory {
    let length = length_bytes.next_multiple_of(PAGE_BYTES);
    let mut state = shared.lock().expect("no test holds this lock in a panic");
    let (id, start) = state.next_region;
    let addresses = match state.model.scattered_bytes {
        None => Addresses::Contiguous(start),
        // Every second piece is somebody else's.
        Some(bytes) => Addresses::Pieces {
            bytes,
            starts: (0..length.div_ceil(bytes) as u64)
                .rev()
                .map(|piece| start + 2 * piece * bytes as u64)
                .collect(),
        },
    };
    // Never the same addresses again, so that what is used after it was freed is found.
    state.next_region = (id + 1, start + 4 * length.next_multiple_of(1 << 21) as u64);
    let heap = Heap::new(length);
    let start = heap.start;
    let region = Region { id, start: start.as_ptr() as usize, length, addresses: addresses.clone() };
    state.regions.push(region);
    let owner = Registered { id, state: Arc::downgrade(shared), _heap: heap };
    // SAFETY: the heap's memory lives as long as its owner.
    unsafe { DmaMemory::new(start, length, addresses, Box::new(owner)) }
}

/// The pieces of memory that two entries and their list name, by the specification alone (Base 4.1.1).
pub fn walk(prp1: u64, prp2: u64, length: usize, word: impl Fn(u64) -> u64) -> Vec<(u64, usize)> {
    let page = PAGE_BYTES as u64;
    let first = ((page - prp1 % page) as usize).min(length);
    let mut pieces = vec![(prp1, first)];
    let mut left = length - first;
    if left > 0 && left <= PAGE_BYTES {
        assert_eq!(prp2 % page, 0, "a second entry that is no start of a page");
        pieces.push((prp2, left));
        return pieces;
    }
    let mut at = prp2;
    while left > 0 {
        let is_last_of_page = at % page == page - 8;
        let entry = word(at);
        assert_eq!(entry % page, 0, "an entry that is no start of a page");
        if is_last_of_page && left > PAGE_BYTES {
            at = entry;
            continue;
        }
        let bytes = left.min(PAGE_BYTES);
        pieces.push((entry, bytes));
        left -= bytes;
        at += 8;
    }
    pieces
}

/// Zeroed pages of the heap.
struct Heap {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory has one owner, and no thread's.
unsafe impl Send for Heap {}
// SAFETY: nothing is reached through a shared reference to it.
unsafe impl Sync for Heap {}

impl Heap {
    fn new(length: usize) -> Heap {
        let layout = Layout::from_size_align(length, PAGE_BYTES).expect("a test's memory is not that large");
        // SAFETY: the layout has a size.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).expect("a test's memory is there");
        Heap { start, layout }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout, and is freed once.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Memory that the double reaches until this is dropped.
struct Registered {
    id: usize,
    state: Weak<Mutex<State>>,
    _heap: Heap,
}

impl Drop for Registered {
    fn drop(&mut self) {
        if let Some(state) = self.state.upgrade() {
            state
                .lock()
                .expect("no test holds this lock in a panic")
                .regions
                .retain(|region| region.id != self.id);
        }
    }
}

/// Memory with these addresses, of no controller.
pub fn heap_memory(length: usize, addresses: Addresses) -> DmaMemory {
    let heap = Heap::new(length);
    // SAFETY: the heap's memory lives as long as its owner.
    unsafe { DmaMemory::new(heap.start, length, addresses, Box::new(heap)) }
}
