//! A seeded order of the numbers below a bound, without memory for it: a Feistel network over the next power of two, walked
//! until the number falls below the bound.
//!
//! Source: Black and Rogaway, "Ciphers with Arbitrary Finite Domains", CT-RSA 2002 (cycle walking).

use testdrive_core::SplitMix64;

/// Rounds of the network; three already mix every bit into every other.
const ROUNDS: usize = 6;

/// A bijection of `0..count`.
#[derive(Clone, Debug)]
pub struct Permutation {
    count: u64,
    low_bits: u32,
    low_mask: u64,
    high_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// The order of `count` numbers that belongs to a seed.
    ///
    /// # Panics
    /// When `count` is 0.
    pub fn new(count: u64, seed: u64) -> Permutation {
        assert!(count > 0, "an order of no numbers was asked for");
        let bits = (u64::BITS - (count - 1).leading_zeros()).max(1);
        let low_bits = bits.div_ceil(2);
        let mut random = SplitMix64::new(seed);
        Permutation {
            count,
            low_bits,
            low_mask: (1 << low_bits) - 1,
            high_mask: (1 << (bits - low_bits)) - 1,
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// The number that stands at `place`.
    ///
    /// # Panics
    /// In debug builds, when `place` is not below the count.
    pub fn at(&self, place: u64) -> u64 {
        debug_assert!(place < self.count, "place {place} of {}", self.count);
        let mut number = place;
        // The network is a bijection of the power of two, below twice the count: the walk returns after two steps on average.
        loop {
            number = self.mixed(number);
            if number < self.count {
                return number;
            }
        }
    }

    fn mixed(&self, number: u64) -> u64 {
        let (mut low, mut high) = (number & self.low_mask, number >> self.low_bits);
        for keys in self.keys.chunks_exact(2) {
            low ^= scrambled(high, keys[0]) & self.low_mask;
            high ^= scrambled(low, keys[1]) & self.high_mask;
        }
        high << self.low_bits | low
    }
}

/// Bits that depend on each of `half` and the key.
fn scrambled(half: u64, key: u64) -> u64 {
    SplitMix64::new(half ^ key).next_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_stands_at_exactly_one_place() {
        for count in [1, 2, 3, 4, 5, 7, 8, 9, 100, 255, 256, 257, 1000, 4097, 65_537] {
            for seed in [0, 1, u64::MAX] {
                let order = Permutation::new(count, seed);
                let mut seen = vec![false; count as usize];
                for place in 0..count {
                    let number = order.at(place) as usize;
                    assert!(!std::mem::replace(&mut seen[number], true), "{number} of {count} came twice");
                }
            }
        }
    }

    #[test]
    fn orders_look_random_and_differ_by_seed() {
        let count = 10_000;
        let (one, other) = (Permutation::new(count, 1), Permutation::new(count, 2));
        let same = (0..count).filter(|&place| one.at(place) == other.at(place)).count();
        let in_place = (0..count).filter(|&place| one.at(place) == place).count();
        let next = (1..count).filter(|&place| one.at(place) == one.at(place - 1) + 1).count();
        // Each is 1 on average for a random order.
        assert!(same < 10 && in_place < 10 && next < 10, "{same} {in_place} {next}");
        // The first tenth of the places takes its numbers from everywhere.
        let mean = (0..count / 10).map(|place| one.at(place)).sum::<u64>() / (count / 10);
        assert!((4_600..5_400).contains(&mean), "{mean}");
    }

    #[test]
    fn a_bound_as_large_as_a_drive_of_blocks_can_be_is_walked_quickly() {
        let order = Permutation::new((1 << 55) + 1, 9);
        assert!((0..1000).all(|place| order.at(place) <= 1 << 55));
    }
}
