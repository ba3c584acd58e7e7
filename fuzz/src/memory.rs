//! Memory counted as it is taken, so that a number in a file that is believed too early is found at once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, with a count.
struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

// SAFETY: every call is passed on to the system's allocator as it came; counting touches no memory that is handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let held = HELD_BYTES.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(held, Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the pointer came from `alloc` above, which passed on the system's.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        HELD_BYTES.fetch_sub(layout.size(), Relaxed);
        let held = HELD_BYTES.fetch_add(size, Relaxed) + size;
        PEAK_BYTES.fetch_max(held, Relaxed);
        // SAFETY: the pointer came from `alloc` above, which passed on the system's, and the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

/// The most bytes that were held at once during `work`, beyond those held before, and what it returned.
pub fn peak_of<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = HELD_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let result = work();
    (PEAK_BYTES.load(Relaxed).saturating_sub(before), result)
}
