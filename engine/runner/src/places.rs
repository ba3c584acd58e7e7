//! Where generated I/Os go: uniform, in zones, in order, or each place once.

use testdrive_core::{Permutation, SplitMix64};

/// A part of the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where it begins.
    pub offset_bytes: u64,
    /// Its size.
    pub length_bytes: u64,
}

impl Extent {
    /// The `index`-th of `count` parts, each of whole units of `grain_bytes`: the first ones are one larger where they cannot be
    /// equal, and the last one takes what is no whole unit.
    pub fn part(&self, index: u64, count: u64, grain_bytes: u64) -> Extent {
        let grains = self.length_bytes / grain_bytes;
        let start_of = |index: u64| (grains / count * index + index.min(grains % count)) * grain_bytes;
        let start_bytes = start_of(index);
        let end_bytes = if index + 1 == count { self.length_bytes } else { start_of(index + 1) };
        Extent { offset_bytes: self.offset_bytes + start_bytes, length_bytes: end_bytes - start_bytes }
    }
}

/// A part of the span with its share of the I/Os.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Zone {
    /// Where.
    pub extent: Extent,
    /// The share of I/Os that go to it and to the zones before it.
    pub access_until: f64,
}

/// Chooses places.
#[derive(Clone, Debug)]
pub enum Places {
    /// Uniformly anywhere.
    Random {
        /// In this part.
        extent: Extent,
        /// Multiples of it from the part's start; the I/O's length where absent.
        alignment_bytes: Option<u64>,
        /// How many places there are for I/Os of a length, as last asked: a division is most of what a place costs.
        counted: (u64, u64),
    },
    /// Uniformly within a zone, which is drawn first.
    Zones {
        /// In ascending order of `access_until`, the last being 1.
        zones: Vec<Zone>,
        /// As above.
        alignment_bytes: Option<u64>,
    },
    /// One after the other, from the start again at the end.
    Sequential {
        /// In this part.
        extent: Extent,
        /// As above; I/Os touch each other where absent.
        alignment_bytes: Option<u64>,
        /// The next place, from the part's start.
        cursor_bytes: u64,
    },
    /// Each place once, then each once again in another order.
    Once(Once),
}

/// The state of [`Places::Once`].
#[derive(Clone, Debug)]
pub struct Once {
    extent: Extent,
    alignment_bytes: u64,
    count: u64,
    seed: u64,
    turn: u64,
    step: u64,
    pass: u64,
    order: Permutation,
}

impl Once {
    /// Places for I/Os of `length_bytes`. Of `step` threads that share the places, this is number `first`.
    ///
    /// # Panics
    /// When no I/O of that length fits.
    pub fn new(
        extent: Extent,
        length_bytes: u64,
        alignment_bytes: Option<u64>,
        seed: u64,
        (first, step): (u64, u64),
    ) -> Once {
        let alignment_bytes = alignment_bytes.unwrap_or(length_bytes);
        let count = places_in(extent, length_bytes, alignment_bytes);
        let order = Permutation::new(count, seed);
        Once { extent, alignment_bytes, count, seed, turn: first, step, pass: 0, order }
    }

    fn next(&mut self) -> u64 {
        let (pass, place) = (self.turn / self.count, self.turn % self.count);
        self.turn += self.step;
        if pass != self.pass {
            self.pass = pass;
            self.order = Permutation::new(self.count, SplitMix64::new(self.seed ^ pass).next_u64());
        }
        self.extent.offset_bytes + self.order.forward(place) * self.alignment_bytes
    }
}

/// How many places there are for I/Os of a length; at least one.
fn places_in(extent: Extent, length_bytes: u64, alignment_bytes: u64) -> u64 {
    extent.length_bytes.saturating_sub(length_bytes) / alignment_bytes + 1
}

fn uniform(extent: Extent, length_bytes: u64, alignment_bytes: Option<u64>, random: &mut SplitMix64) -> u64 {
    let alignment_bytes = alignment_bytes.unwrap_or(length_bytes);
    extent.offset_bytes + random.below(places_in(extent, length_bytes, alignment_bytes)) * alignment_bytes
}

impl Places {
    /// Where the next I/O goes, and how long it can be there: shorter than asked only at the end of a sequential pass.
    #[inline]
    pub fn next(&mut self, length_bytes: u64, random: &mut SplitMix64) -> (u64, u64) {
        match self {
            Places::Random { extent, alignment_bytes, counted } => {
                let alignment_bytes = alignment_bytes.unwrap_or(length_bytes);
                if counted.0 != length_bytes {
                    *counted = (length_bytes, places_in(*extent, length_bytes, alignment_bytes));
                }
                (extent.offset_bytes + random.below(counted.1) * alignment_bytes, length_bytes)
            }
            Places::Zones { zones, alignment_bytes } => {
                let drawn = unit(random);
                let zone = zones.iter().find(|zone| drawn < zone.access_until).unwrap_or(&zones[0]);
                (uniform(zone.extent, length_bytes, *alignment_bytes, random), length_bytes)
            }
            Places::Sequential { extent, alignment_bytes, cursor_bytes } => {
                let place_bytes = *cursor_bytes;
                let length_bytes = length_bytes.min(extent.length_bytes - place_bytes);
                let step_bytes = length_bytes.next_multiple_of(alignment_bytes.unwrap_or(1));
                *cursor_bytes += step_bytes;
                if *cursor_bytes >= extent.length_bytes {
                    *cursor_bytes = 0;
                }
                (extent.offset_bytes + place_bytes, length_bytes)
            }
            Places::Once(once) => (once.next(), length_bytes),
        }
    }
}

/// A uniform number of 0..1: 53 random bits are one that a double holds exactly.
#[inline]
pub fn unit(random: &mut SplitMix64) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { offset_bytes: 8192, length_bytes: 40 * 4096 + 512 };

    #[test]
    fn random_places_are_aligned_within_the_span_and_reach_all_of_it() {
        let mut random = SplitMix64::new(3);
        for (alignment_bytes, last) in [(None, 39 * 4096), (Some(512), 39 * 4096 + 512)] {
            let mut places = Places::Random { extent: EXTENT, alignment_bytes, counted: (0, 0) };
            let drawn: Vec<u64> =
                (0..5_000).map(|_| places.next(4096, &mut random).0 - EXTENT.offset_bytes).collect();
            assert!(drawn.iter().all(|offset| offset % alignment_bytes.unwrap_or(4096) == 0));
            assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&0), Some(&last)));
        }
    }

    #[test]
    fn zones_get_their_share_of_the_ios() {
        let zone = |index: u64, access_until| Zone { extent: EXTENT.part(index, 4, 4096), access_until };
        let zones = vec![zone(0, 0.8), zone(1, 0.8), zone(2, 0.95), zone(3, 1.0)];
        let mut places = Places::Zones { zones: zones.clone(), alignment_bytes: None };
        let mut random = SplitMix64::new(4);
        let mut hits = [0_u32; 4];
        for _ in 0..20_000 {
            let (offset, length) = places.next(4096, &mut random);
            let inside = |extent: Extent| {
                extent.offset_bytes <= offset && offset + length <= extent.offset_bytes + extent.length_bytes
            };
            let index = zones.iter().position(|zone| inside(zone.extent)).expect("no I/O leaves its zone");
            hits[index] += 1;
        }
        assert!((15_700..16_300).contains(&hits[0]) && hits[1] == 0, "{hits:?}");
        assert!((2_800..3_200).contains(&hits[2]) && (880..1_120).contains(&hits[3]), "{hits:?}");
    }

    #[test]
    fn places_of_threads_together_come_once_before_any_comes_again() {
        let mut random = SplitMix64::new(0);
        let mut threads: Vec<Places> =
            (0..3).map(|index| Places::Once(Once::new(EXTENT, 4096, None, 5, (index, 3)))).collect();
        let mut turns = (0..120).map(|turn| threads[turn % 3].next(4096, &mut random).0).collect::<Vec<_>>();
        let whole: Vec<u64> = (0..40).map(|block| EXTENT.offset_bytes + block * 4096).collect();
        assert_ne!(turns[..40], turns[40..80]);
        for pass in turns.chunks_exact_mut(40) {
            pass.sort_unstable();
            assert_eq!(pass, whole);
        }
    }

    #[test]
    fn a_sequential_pass_covers_every_byte_or_keeps_the_alignment() {
        let mut random = SplitMix64::new(0);
        let mut places = Places::Sequential { extent: EXTENT, alignment_bytes: None, cursor_bytes: 0 };
        let mut end = EXTENT.offset_bytes;
        for length in [4096; 41] {
            let (offset, length) = places.next(length, &mut random);
            assert_eq!(offset, end);
            end += length;
        }
        assert_eq!(end, EXTENT.offset_bytes + EXTENT.length_bytes);
        assert_eq!(places.next(4096, &mut random), (EXTENT.offset_bytes, 4096));
        let mut aligned =
            Places::Sequential { extent: EXTENT, alignment_bytes: Some(16_384), cursor_bytes: 0 };
        let offsets: Vec<u64> = (0..3).map(|_| aligned.next(4096, &mut random).0 - 8192).collect();
        assert_eq!(offsets, [0, 16_384, 32_768]);
    }

    #[test]
    fn parts_are_whole_blocks_and_leave_nothing_out() {
        let parts: Vec<Extent> = (0..3).map(|index| EXTENT.part(index, 3, 4096)).collect();
        let lengths: Vec<u64> = parts.iter().map(|part| part.length_bytes).collect();
        assert_eq!(lengths, [14 * 4096, 13 * 4096, 13 * 4096 + 512]);
        assert_eq!(parts[2].offset_bytes, 8192 + 27 * 4096);
    }
}
