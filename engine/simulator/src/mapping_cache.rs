//! The part of the mapping that a drive has in memory, where not all of it fits.

use crate::parameters::Parameters;
use crate::PAGE_BYTES;
use serde::{Deserialize, Serialize};

/// Bytes of an entry of the mapping: a page of it covers 4 MiB, and 64 MB cover 64 GB.
const ENTRY_BYTES: u64 = 4;
/// Entries of a page of the mapping.
const ENTRIES: u32 = (PAGE_BYTES / ENTRY_BYTES) as u32;
const NONE: u32 = u32::MAX;

/// What is in memory, replaced by the CLOCK rule: the hand passes over what was used since it came by last.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct MappingCache {
    /// For each page of the mapping its frame.
    frame_of: Vec<u32>,
    frames: Vec<Frame>,
    hand: u32,
    filled: u32,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Frame {
    holds: u32,
    used: bool,
    changed: bool,
}

/// What an access found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    InMemory,
    /// It is to be read; `writes_back` tells that what it replaces is to be written first.
    InNand {
        writes_back: bool,
    },
}

impl MappingCache {
    /// `None` where all of the mapping is in memory.
    pub(crate) fn new(parameters: &Parameters) -> Option<MappingCache> {
        if parameters.mapping_cache_bytes == 0 {
            return None;
        }
        let frames = (parameters.mapping_cache_bytes / PAGE_BYTES).max(1) as usize;
        let pages = parameters.pages().div_ceil(ENTRIES) as usize;
        Some(MappingCache {
            frame_of: vec![NONE; pages],
            frames: vec![Frame { holds: NONE, used: false, changed: false }; frames.min(pages)],
            hand: 0,
            filled: 0,
            hits: 0,
            misses: 0,
        })
    }

    /// The pages of the mapping that cover these pages.
    pub(crate) fn covering(pages: &std::ops::Range<u32>) -> std::ops::Range<u32> {
        pages.start / ENTRIES..pages.end.div_ceil(ENTRIES)
    }

    /// Asks for a page of the mapping, to change it if so.
    #[inline]
    pub(crate) fn access(&mut self, page: u32, changes: bool) -> Found {
        if let Some(frame) = self.frames.get_mut(self.frame_of[page as usize] as usize) {
            frame.used = true;
            frame.changed |= changes;
            self.hits += 1;
            return Found::InMemory;
        }
        self.misses += 1;
        let at = self.free_frame();
        let frame = &mut self.frames[at as usize];
        let writes_back = frame.holds != NONE && frame.changed;
        if frame.holds != NONE {
            self.frame_of[frame.holds as usize] = NONE;
        }
        *frame = Frame { holds: page, used: false, changed: changes };
        self.frame_of[page as usize] = at;
        Found::InNand { writes_back }
    }

    fn free_frame(&mut self) -> u32 {
        if (self.filled as usize) < self.frames.len() {
            self.filled += 1;
            return self.filled - 1;
        }
        loop {
            let at = self.hand;
            self.hand = (at + 1) % self.filled;
            if !std::mem::replace(&mut self.frames[at as usize].used, false) {
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;
    use testdrive_core::SplitMix64;

    fn cache(capacity: &str, cached: &str) -> MappingCache {
        let mut model = Model::builtin("enterprise-mixed").unwrap();
        model.set_all([("capacity", capacity), ("mapping_cache", cached)]).unwrap();
        MappingCache::new(model.parameters()).unwrap()
    }

    #[test]
    fn random_accesses_hit_at_the_share_of_the_mapping_that_fits() {
        for (cached, expected) in [("16MiB", 0.25), ("32MiB", 0.5), ("60MiB", 0.9375)] {
            let mut cache = cache("64GiB", cached);
            let mut random = SplitMix64::new(1);
            for index in 0..400_000 {
                if index == 100_000 {
                    (cache.hits, cache.misses) = (0, 0);
                }
                cache.access(random.below(16_384) as u32, false);
            }
            let rate = cache.hits as f64 / (cache.hits + cache.misses) as f64;
            assert!((rate - expected).abs() < 0.005, "{cached}: {rate}");
        }
    }

    #[test]
    fn sixty_four_mebibytes_hold_the_mapping_of_sixty_four_gibibytes() {
        let mut cache = cache("64GiB", "64MiB");
        for round in 0..2 {
            for page in 0..16_384 {
                let found = cache.access(page, true);
                assert_eq!(found == Found::InMemory, round == 1);
            }
        }
    }

    #[test]
    fn what_was_changed_is_written_back_and_what_was_used_stays() {
        let mut cache = cache("64GiB", "8KiB");
        cache.access(1, true);
        cache.access(2, false);
        cache.access(2, false);
        assert_eq!(cache.access(3, false), Found::InNand { writes_back: true });
        assert_eq!(cache.access(2, false), Found::InMemory);
        assert_eq!(cache.access(1, false), Found::InNand { writes_back: false });
    }
}
