//! A random order of the numbers below a bound that needs no memory for it: what random preconditioning leaves on a modelled drive, and
//! the order in which a workload visits each place once.

use crate::SplitMix64;
use serde::{Deserialize, Serialize};

/// A bijection of `0..count` that looks random, and its inverse.
///
/// A Feistel network over the next power of two; what falls outside is sent through again until it is inside, which keeps it a
/// bijection (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; 4],
}

impl Permutation {
    /// The order of `count` numbers that belongs to a seed.
    ///
    /// # Panics
    /// When `count` is 0.
    pub fn new(count: u64, seed: u64) -> Permutation {
        assert!(count > 0, "an order of no numbers was asked for");
        let bits = (64 - count.saturating_sub(1).leading_zeros()).max(2);
        let low_bits = bits / 2;
        let mut random = SplitMix64::new(seed);
        Permutation {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// Where `index`, which is below the count, goes. The walk takes two steps on average: the network is over less than twice the count.
    #[inline]
    pub fn forward(&self, index: u64) -> u64 {
        self.walk(index, [0, 1, 2, 3])
    }

    /// What goes to `index`.
    #[inline]
    pub fn backward(&self, index: u64) -> u64 {
        self.walk(index, [3, 2, 1, 0])
    }

    #[inline]
    fn walk(&self, index: u64, rounds: [usize; 4]) -> u64 {
        debug_assert!(index < self.count);
        let mut at = index;
        loop {
            let (mut low, mut high) = (at & self.low_mask, at >> self.low_bits);
            // Each round changes one half by a function of the other, and so is its own inverse.
            for round in rounds {
                if round % 2 == 0 {
                    low ^= mix(high ^ self.keys[round]) & self.low_mask;
                } else {
                    high ^= mix(low ^ self.keys[round]) & self.high_mask;
                }
            }
            at = high << self.low_bits | low;
            if at < self.count {
                return at;
            }
        }
    }
}

#[inline]
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (bits ^ (bits >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_has_one_place_and_the_way_back_leads_to_it() {
        for count in [1, 2, 3, 63, 64, 65, 1000, 4097] {
            let permutation = Permutation::new(count, 7);
            let mut places: Vec<u64> = (0..count).map(|page| permutation.forward(page)).collect();
            for (page, place) in places.iter().enumerate() {
                assert_eq!(permutation.backward(*place), page as u64);
            }
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }

    #[test]
    fn neighbours_are_spread_as_random_numbers_are() {
        let count = 1 << 20;
        let permutation = Permutation::new(count, 3);
        let mut bins = [0_i64; 64];
        for page in 0..64_000 {
            bins[(permutation.forward(page) * 64 / count) as usize] += 1;
        }
        // Six standard deviations of a binomial with mean 1,000.
        assert!(bins.iter().all(|bin| (bin - 1000).abs() < 190), "{bins:?}");
    }

    #[test]
    fn orders_look_random_and_differ_by_seed() {
        let count = 10_000;
        let (one, other) = (Permutation::new(count, 1), Permutation::new(count, 2));
        let same = (0..count).filter(|&place| one.forward(place) == other.forward(place)).count();
        let in_place = (0..count).filter(|&place| one.forward(place) == place).count();
        let next = (1..count).filter(|&place| one.forward(place) == one.forward(place - 1) + 1).count();
        // Each is 1 on average for a random order.
        assert!(same < 10 && in_place < 10 && next < 10, "{same} {in_place} {next}");
    }

    #[test]
    fn a_bound_as_large_as_a_drive_of_blocks_can_be_is_walked_quickly() {
        let order = Permutation::new((1 << 55) + 1, 9);
        assert!((0..1000).all(|place| order.forward(place) <= 1 << 55));
    }
}
