//! Arrays of many gigabytes that take memory only where they were written.

use serde::de::{Error, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Numbers that are all 0 at first, on huge pages where the host gives them.
///
/// The mapping of a drive of a terabyte has half a billion entries that are reached at random: on small pages every second
/// access would miss the processor's table of pages. And a replay touches few of them, so that the rest must cost nothing.
#[derive(Debug)]
pub(crate) struct LazyArray {
    start: NonNull<u32>,
    len: usize,
}

/// What is copied at a time.
const COPY_CHUNK: usize = 16_384;
/// What is saved at a time: a drive on which garbage was collected has few numbers here and there.
const SAVE_CHUNK: usize = 64;

impl LazyArray {
    /// So many zeroes.
    ///
    /// # Panics
    /// When the process may not have so much address space.
    pub(crate) fn new(len: usize) -> LazyArray {
        if len == 0 {
            return LazyArray { start: NonNull::dangling(), len };
        }
        let bytes = len * size_of::<u32>();
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: a new private mapping at a place of the kernel's choice touches no memory that exists.
        let start = unsafe {
            libc::mmap(std::ptr::null_mut(), bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
        };
        assert!(start != libc::MAP_FAILED, "no address space for the {bytes} bytes of a drive's mapping");
        // SAFETY: the range is the mapping just made. The advice may be refused, which costs speed only.
        unsafe { libc::madvise(start, bytes, libc::MADV_HUGEPAGE) };
        LazyArray { start: NonNull::new(start.cast()).expect("a mapping is not at address 0"), len }
    }

    /// Tells the processor that this entry is wanted soon. Any index will do.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        #[cfg(target_arch = "x86_64")]
        if index < self.len {
            use std::arch::x86_64::{_mm_prefetch, _MM_HINT_T0};
            // SAFETY: the address is within the mapping, and a prefetch changes nothing.
            unsafe { _mm_prefetch(self.start.as_ptr().add(index).cast::<i8>(), _MM_HINT_T0) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = index;
    }

    /// The chunks of so many numbers that are not all 0, each with the index of its first number.
    pub(crate) fn written_chunks(&self, size: usize) -> impl Iterator<Item = (usize, &[u32])> {
        // Or-ed, which the compiler turns into wide instructions, as a look at one after the other is not.
        let is_written = |chunk: &&[u32]| chunk.iter().fold(0, |all, number| all | number) != 0;
        self.chunks(size)
            .enumerate()
            .filter(move |(_, chunk)| is_written(chunk))
            .map(move |(at, chunk)| (at * size, chunk))
    }
}

impl Deref for LazyArray {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        // SAFETY: the mapping has `len` numbers, is initialised by the kernel and lives as long as this.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for LazyArray {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u32] {
        // SAFETY: as above, and nobody else has it.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Clone for LazyArray {
    fn clone(&self) -> LazyArray {
        let mut copy = LazyArray::new(self.len);
        for (at, chunk) in self.written_chunks(COPY_CHUNK) {
            copy[at..at + chunk.len()].copy_from_slice(chunk);
        }
        copy
    }
}

impl Drop for LazyArray {
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the mapping was made by `new` with this length, and nothing refers to it any more.
            unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * size_of::<u32>()) };
        }
    }
}

/// As its length, and the chunks that are not all 0 behind the index of their first number.
impl Serialize for LazyArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let chunks = self.written_chunks(SAVE_CHUNK).count();
        let mut elements = serializer.serialize_seq(Some(chunks + 1))?;
        elements.serialize_element(&(self.len as u64, &[] as &[u32]))?;
        for (at, chunk) in self.written_chunks(SAVE_CHUNK) {
            elements.serialize_element(&(at as u64, chunk))?;
        }
        elements.end()
    }
}

impl<'de> Deserialize<'de> for LazyArray {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<LazyArray, D::Error> {
        deserializer.deserialize_seq(ChunksVisitor)
    }
}

struct ChunksVisitor;

impl<'de> Visitor<'de> for ChunksVisitor {
    type Value = LazyArray;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the length of an array and chunks of it")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<LazyArray, A::Error> {
        let first: Option<(u64, Vec<u32>)> = elements.next_element()?;
        let len = first.map_or(u64::MAX, |(len, _)| len);
        // Whatever bytes say, no more address space is asked for than a drive can need.
        let len = usize::try_from(len).ok().filter(|len| *len <= super::ENTRIES_MAX as usize + 1);
        let mut array = LazyArray::new(len.ok_or_else(|| A::Error::custom("an array has no length"))?);
        while let Some((at, chunk)) = elements.next_element::<(u64, Vec<u32>)>()? {
            let range = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(chunk.len())?));
            let place = range.and_then(|range| array.get_mut(range));
            place.ok_or_else(|| A::Error::custom("a chunk lies beyond its array"))?.copy_from_slice(&chunk);
        }
        Ok(array)
    }
}

// SAFETY: it owns its mapping as a vector owns its memory; there is no other access.
unsafe impl Send for LazyArray {}
// SAFETY: as above, shared access only reads.
unsafe impl Sync for LazyArray {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_zero_until_written_and_a_copy_is_its_own() {
        let mut array = LazyArray::new(1 << 20);
        assert_eq!(array.iter().copied().max(), Some(0));
        array[700_000] = 7;
        let mut copy = array.clone();
        copy[3] = 1;
        assert_eq!((array[700_000], array[3], copy[700_000], copy[3]), (7, 0, 7, 1));
        let written: Vec<usize> = copy.written_chunks(COPY_CHUNK).map(|(at, _)| at).collect();
        assert_eq!(written, [0, 700_000 / COPY_CHUNK * COPY_CHUNK]);
    }

    #[test]
    fn sixteen_gibibytes_cost_nothing_until_they_are_used() {
        let mut array = LazyArray::new(4 << 30);
        array[(4 << 30) - 1] = 1;
        array.prefetch(usize::MAX);
        assert_eq!(array[0], 0);
        assert!(LazyArray::new(0).clone().is_empty());
    }
}
