//! Addresses for DMA: which the IOMMU takes, and which of them are free.

use super::abi::{CAPABILITY_IOVA_RANGE, INFO_CAPABILITIES};
use std::ops::RangeInclusive;

/// Where x86 has its interrupts: a write to there is a message, not memory.
const INTERRUPT_WINDOW: RangeInclusive<u64> = 0xfee0_0000..=0xfeef_ffff;
/// Below is what firmware and old devices have to themselves; and an address of 0 is only ever a mistake.
const LOWEST: u64 = 1 << 20;
/// What every IOMMU takes, for kernels that do not tell (before Linux 5.4).
const USUAL: RangeInclusive<u64> = LOWEST..=0xfedf_ffff;
/// Mappings are as large as huge pages at least, and begin where one may.
const ALIGNMENT: u64 = 2 << 20;

/// Hands out addresses.
#[derive(Debug)]
pub struct IovaSpace {
    ranges: Vec<RangeInclusive<u64>>,
    /// Start and length of what is taken, in order.
    taken: Vec<(u64, u64)>,
}

impl IovaSpace {
    /// The ranges that `VFIO_IOMMU_GET_INFO` answered, or the usual ones where it told none.
    pub fn of(info: &[u8]) -> IovaSpace {
        let told = ranges_of(info);
        let told = if told.is_empty() { vec![USUAL] } else { told };
        let mut ranges = Vec::new();
        for range in told {
            let (start, end) = ((*range.start()).max(LOWEST), *range.end());
            let (below, above) = (*INTERRUPT_WINDOW.start() - 1, *INTERRUPT_WINDOW.end() + 1);
            for part in [start..=end.min(below), start.max(above)..=end] {
                if !part.is_empty() {
                    ranges.push(part);
                }
            }
        }
        IovaSpace { ranges, taken: Vec::new() }
    }

    /// The first free place for so many bytes; `None` where there is none.
    pub fn take(&mut self, length: u64) -> Option<u64> {
        let length = length.max(1).checked_next_multiple_of(ALIGNMENT)?;
        for range in &self.ranges {
            let Some(mut start) = range.start().checked_next_multiple_of(ALIGNMENT) else { continue };
            for (taken, taken_length) in &self.taken {
                // The last byte of either, as what ends with the last address there is has no end.
                let (last, taken_last) = (start.saturating_add(length - 1), taken + (taken_length - 1));
                if *taken <= last && start <= taken_last {
                    start = taken_last.saturating_add(1);
                }
            }
            if start.checked_add(length - 1).is_some_and(|end| end <= *range.end()) {
                let place = self.taken.partition_point(|(taken, _)| *taken < start);
                self.taken.insert(place, (start, length));
                return Some(start);
            }
        }
        None
    }

    /// Makes a place free again.
    pub fn give_back(&mut self, start: u64) {
        self.taken.retain(|(taken, _)| *taken != start);
    }
}

/// The ranges in the answer's chain of capabilities. An answer that does not fit together tells none.
fn ranges_of(info: &[u8]) -> Vec<RangeInclusive<u64>> {
    let word = |at: usize| Some(u32::from_ne_bytes(info.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_ne_bytes(info.get(at..at + 8)?.try_into().ok()?));
    if word(4).is_none_or(|flags| flags & INFO_CAPABILITIES == 0) {
        return Vec::new();
    }
    let mut at = word(16).unwrap_or(0) as usize;
    // A chain that comes round ends here, too.
    for _ in 0..64 {
        let Some(head) = word(at).filter(|_| at > 0) else { break };
        if head as u16 == CAPABILITY_IOVA_RANGE {
            let count = word(at + 8).unwrap_or(0) as usize;
            let range = |index: usize| Some(long(at + 16 + 16 * index)?..=long(at + 24 + 16 * index)?);
            return (0..count).map_while(range).collect();
        }
        at = word(at + 4).unwrap_or(0) as usize;
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer as the kernel lays it out, with a capability of another kind before that of the ranges.
    fn info(ranges: &[(u64, u64)]) -> Vec<u8> {
        let mut bytes = vec![0; 24];
        bytes[4..8].copy_from_slice(&3_u32.to_ne_bytes());
        bytes[16..20].copy_from_slice(&24_u32.to_ne_bytes());
        // The number of mappings that are left: identifier 3, version 1, next at 40.
        bytes.extend((3_u32 | 1 << 16).to_ne_bytes());
        bytes.extend(40_u32.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend((1_u32 | 1 << 16).to_ne_bytes());
        bytes.extend(0_u32.to_ne_bytes());
        bytes.extend((ranges.len() as u32).to_ne_bytes());
        bytes.extend([0; 4]);
        for (start, end) in ranges {
            bytes.extend(start.to_ne_bytes());
            bytes.extend(end.to_ne_bytes());
        }
        bytes
    }

    #[test]
    fn places_lie_in_the_ranges_and_never_in_the_interrupt_window() {
        let mut space = IovaSpace::of(&info(&[(0, 0xfedf_ffff), (0xfef0_0000, 0x7f_ffff_ffff)]));
        assert_eq!(space.take(4096), Some(2 << 20));
        assert_eq!(space.take(3 << 20), Some(4 << 20));
        // What does not fit below goes above.
        let large = space.take(0xff00_0000).unwrap();
        assert!(large >= 0xfef0_0000 && large.is_multiple_of(ALIGNMENT));
        assert_eq!(space.take(1 << 40), None);
    }

    #[test]
    fn a_range_across_the_window_is_cut() {
        let mut space = IovaSpace::of(&info(&[(0, u64::MAX)]));
        let mut last = 0;
        for _ in 0..40 {
            let start = space.take(128 << 20).unwrap();
            assert!(start + (128 << 20) <= 0xfee0_0000 || start >= 0xfef0_0000, "{start:#x}");
            assert!(start > last);
            last = start;
        }
        assert!(last > 0xfef0_0000, "forty of them do not fit below the window");
    }

    #[test]
    fn the_last_addresses_there_are_can_be_taken() {
        let top = u64::MAX - (4 << 20) + 1;
        let mut space = IovaSpace::of(&info(&[(top, u64::MAX)]));
        assert_eq!(
            (space.take(1), space.take(2 << 20), space.take(1)),
            (Some(top), Some(top + (2 << 20)), None)
        );
        assert_eq!(IovaSpace::of(&info(&[(u64::MAX - 4095, u64::MAX)])).take(1), None);
        assert_eq!(space.take(u64::MAX), None);
    }

    #[test]
    fn what_was_given_back_is_taken_again() {
        let mut space = IovaSpace::of(&[]);
        let places: Vec<u64> = (0..3).map(|_| space.take(2 << 20).unwrap()).collect();
        space.give_back(places[1]);
        assert_eq!(space.take(4 << 20), Some(places[2] + (2 << 20)));
        assert_eq!(space.take(1), Some(places[1]));
    }

    #[test]
    fn an_answer_that_does_not_fit_together_tells_nothing() {
        let whole = info(&[(0, 0xffff)]);
        for length in 0..whole.len() {
            let _ = ranges_of(&whole[..length]);
        }
        let mut circle = whole.clone();
        circle[28..32].copy_from_slice(&24_u32.to_ne_bytes());
        assert_eq!(ranges_of(&circle), []);
        assert_eq!(ranges_of(&whole), [0..=0xffff]);
    }
}
